#if Postgres
import Foundation
import Larder

/// The thread that waits for the answers to all sessions of a database.
///
/// The thread runs while there are sessions. Callers send by themselves, so it only receives, and ends what takes too long.
final class Poller: Sendable {
  private struct State {
    var sessions: [Session] = []

    /// The number of changes of `sessions`.
    var version = 0

    var isRunning = false

    /// The time when the sessions must be looked at, even if nothing has arrived.
    var nextLook: ContinuousClock.Instant?

    /// A Boolean value that indicates whether the thread was woken and has not looked here yet.
    var isSignalled = false
  }

  private let state = Locked(State())

  /// A pipe with which other threads wake the one that waits for the sockets.
  private let (reader, writer): (Int32, Int32)

  /// Creates a poller without sessions.
  ///
  /// - Throws: ``PostgresError`` if the process has no file descriptors left.
  init() throws(PostgresError) {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else {
      throw PostgresError(sqlState: "", message: "no pipe can be made: \(String(cString: strerror(errno)))")
    }
    (reader, writer) = (ends[0], ends[1])
    for end in ends {
      _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK)
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
    }
  }

  deinit {
    close(reader)
    close(writer)
  }

  /// Watches a session until it is removed.
  func add(_ session: Session) {
    change { state in
      state.sessions.append(session)
      state.version += 1
      return true
    }
  }

  /// Stops watching a session.
  func remove(_ session: Session) {
    change { state in
      state.sessions.removeAll { $0 === session }
      state.version += 1
      return true
    }
  }

  /// Looks at the sessions at a time at the latest.
  func look(by time: ContinuousClock.Instant) {
    change { state in
      // Few deadlines are earlier than those before them, so that the thread is hardly ever woken.
      guard state.nextLook.map({ time < $0 }) ?? true else { return false }
      state.nextLook = time
      return true
    }
  }

  /// Changes the state, and lets the thread look at it.
  ///
  /// - Parameter change: A closure that returns whether the thread must look.
  private func change(_ change: (inout State) -> Bool) {
    let (starts, wakes) = state.withLock { state in
      guard change(&state), !state.isSignalled else { return (false, false) }
      state.isSignalled = true
      defer { state.isRunning = true }
      return (!state.isRunning, state.isRunning)
    }
    if starts { Thread.detachNewThread { self.serve() } }
    // It holds at most one byte, so that it is never full.
    if wakes { _ = withUnsafeBytes(of: 0 as UInt8) { write(writer, $0.baseAddress, 1) } }
  }

  /// Receives for the sessions as long as there are any.
  private func serve() {
    var sessions: [Session] = []
    var version: Int?
    var descriptors: [pollfd] = []
    while true {
      let turn = state.withLock {
        state -> (sessions: [Session]?, version: Int, isDue: Bool, nextLook: ContinuousClock.Instant?)? in
        state.isSignalled = false
        state.isRunning = !state.sessions.isEmpty
        guard state.isRunning else { return nil }
        // Together with the sessions, so that a look includes all whose deadlines it was planned for.
        let isDue = state.nextLook.map { $0 <= .now } ?? false
        if isDue { state.nextLook = nil }
        return (state.version == version ? nil : state.sessions, state.version, isDue, state.nextLook)
      }
      guard let turn else { return }
      if let changed = turn.sessions {
        (sessions, version) = (changed, turn.version)
        descriptors = ([reader] + sessions.map(\.socket)).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      }
      if turn.isDue {
        // Each one plans the look at its deadline again.
        for session in sessions { session.look() }
        continue
      }
      _ = poll(&descriptors, until: turn.nextLook)
      if descriptors[0].revents != 0 {
        _ = withUnsafeTemporaryAllocation(byteCount: 8, alignment: 1) { read(reader, $0.baseAddress, 8) }
      }
      for (index, session) in sessions.enumerated() where descriptors[index + 1].revents != 0 { session.receive() }
    }
  }
}

/// Waits until one of some descriptors is ready.
///
/// - Parameters:
///   - descriptors: The descriptors.
///   - deadline: The time until which it waits, or `nil` for no limit.
/// - Returns: The number of those that are ready.
func poll(_ descriptors: inout [pollfd], until deadline: ContinuousClock.Instant?) -> Int32 {
  while true {
    let limit = deadline.map {
      Int32(clamping: max(0, (ContinuousClock.now.duration(to: $0).wholeMicroseconds + 999) / 1000))
    }
    let ready = poll(&descriptors, nfds_t(descriptors.count), limit ?? -1)
    if ready >= 0 || errno != EINTR { return ready }
  }
}
#endif
