import Foundation

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// The thread of a ``PostgresProxy``, which waits for all its sockets.
struct ProxyLoop {
  private let sockets: ProxySockets
  private let control: ProxyControl
  private var connections: [ProxyConnection] = []

  /// Creates the state of the thread.
  init(_ sockets: ProxySockets, _ control: ProxyControl) {
    (self.sockets, self.control) = (sockets, control)
  }

  /// Forwards messages until the proxy is closed.
  mutating func run() {
    while !control.read(\.isClosing) {
      wait()
      // Taken before connections are accepted, so that those are cut that were waiting when the caller asked for it.
      let cutters = control.withState { state in
        defer { state.cutters = [] }
        return state.cutters
      }
      accept()
      for connection in connections {
        if cutters.isEmpty { connection.transfer() } else { connection.close() }
      }
      connections.removeAll { $0.isClosed }
      for cutter in cutters { cutter.resume() }
    }
    let waiters = control.withState { state in
      defer { (state.cutters, state.closers, state.alarm) = ([], [], nil) }
      return state.cutters + state.closers
    }
    for connection in connections { connection.close() }
    sockets.close()
    for waiter in waiters { waiter.resume() }
  }

  /// Waits until a socket or the next delayed message is ready.
  private func wait() {
    var polls = [sockets.alarm, sockets.listener].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    for connection in connections { polls += connection.polls }
    let now = ContinuousClock.now
    let delay = connections.compactMap(\.nextDue).min().map { max(.zero, now.duration(to: $0)) }
    let milliseconds = delay.map { Int32($0 / .milliseconds(1)) } ?? -1
    let count = poll(&polls, nfds_t(polls.count), milliseconds)
    // The timeout of poll has whole milliseconds. The rest of a delay takes short naps, in which no socket is ignored for
    // long.
    if count == 0, milliseconds == 0, let delay, delay > .zero {
      usleep(useconds_t(min(100, 1 + delay / .microseconds(1))))
    }
    if polls[0].revents != 0 {
      var bytes = [UInt8](repeating: 0, count: 4096)
      _ = read(sockets.alarm, &bytes, bytes.count)
    }
  }

  private mutating func accept() {
    while let client = sockets.accept() {
      control.withState { $0.connections += 1 }
      guard let server = ProxySockets.connect(sockets.server) else {
        ProxySockets.close(client)
        continue
      }
      connections.append(ProxyConnection(client: client, server: server, control))
    }
  }
}
