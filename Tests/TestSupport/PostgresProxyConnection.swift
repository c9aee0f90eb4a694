#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// A client's connection to a ``PostgresProxy``, with the proxy's connection to the server.
final class ProxyConnection {
  private let control: ProxyControl
  private var toServer: ProxyFlow
  private var toClient: ProxyFlow
  private var conversation = PostgresConversation()
  /// A Boolean value that indicates whether the client has sent messages since the latest answer.
  private var awaitsAnswer = false
  /// A Boolean value that indicates whether the client listens or notifies, which no caller waits for, so its round
  /// trips are not counted.
  private var notifies = false
  /// A Boolean value that indicates whether the server's connection stays open after that of the client.
  private var keepsServer = false
  private var isClientClosed = false
  private(set) var isClosed = false

  init(client: Int32, server: Int32, _ control: ProxyControl) {
    toServer = ProxyFlow(source: client, target: server, isClient: true)
    toClient = ProxyFlow(source: server, target: client, isClient: false)
    self.control = control
  }

  /// The events to wait for.
  var polls: [pollfd] {
    guard !isClientClosed else { return [] }
    return [(toServer, toClient), (toClient, toServer)].compactMap { incoming, outgoing in
      let events = (incoming.isReading ? POLLIN : 0) | (outgoing.isBlocked ? POLLOUT : 0)
      // The end of a connection is an event that is not asked for.
      return events == 0 ? nil : pollfd(fd: incoming.source, events: Int16(events), revents: 0)
    }
  }

  /// The time when the next delayed message is due.
  var nextDue: ContinuousClock.Instant? {
    isClientClosed ? nil : [toServer.nextDue, toClient.nextDue].compactMap { $0 }.min()
  }

  /// Receives and sends all that is ready.
  func transfer() {
    guard !isClientClosed else { return }
    receiveFromClient()
    receiveFromServer()
    toServer.send()
    toClient.send { [self] in
      // The answer is counted before the client can see it.
      guard awaitsAnswer else { return }
      awaitsAnswer = false
      control.withState { $0.roundTrips += 1 }
    }
    guard toServer.isAtEnd || toClient.isAtEnd else { return }
    if keepsServer { closeClient() } else { close() }
  }

  /// Closes the connections.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    closeClient()
    ProxySockets.close(toServer.target)
  }

  private func closeClient() {
    guard !isClientClosed else { return }
    isClientClosed = true
    ProxySockets.close(toServer.source)
  }

  private func receiveFromClient() {
    guard toServer.isReading else { return }
    let messages = toServer.receive()
    let due = ContinuousClock.now + control.read(\.delayToServer)
    for message in messages {
      guard !message.isEncryptionRequest else {
        toClient.append([UInt8(ascii: "N")], due: .now)
        continue
      }
      notifies = notifies || message.notifies
      let message = message.notifies && control.read(\.refusesNotifications) ? message.misspelled : message
      if conversation.isReady, !notifies { awaitsAnswer = true }
      if conversation.commits(client: message), let instant = control.withState({ $0.takeCut(afterCommit: false) }) {
        keepsServer = instant == .beforeCommitInNetwork
        toServer.end(due: due)
        return
      }
      toServer.append(message.bytes, due: due)
    }
    if !toServer.isReading { toServer.end(due: due) }
  }

  private func receiveFromServer() {
    guard toClient.isReading else { return }
    let messages = toClient.receive()
    let due = ContinuousClock.now + control.read(\.delayToClient)
    for message in messages {
      if conversation.answersCommit(server: message), control.withState({ $0.takeCut(afterCommit: true) }) != nil {
        toClient.end(due: due)
        return
      }
      toClient.append(message.bytes, due: due)
    }
    if !toClient.isReading { toClient.end(due: due) }
  }
}

extension PostgresMessage {
  /// A Boolean value that indicates whether the message is of a client that listens to notifications or sends some.
  fileprivate var notifies: Bool {
    let sql =
      switch type {
      case "P": strings(2)[1]
      case "Q": strings(1)[0]
      default: ""
      }
    return sql.hasPrefix("LISTEN ") || sql.contains("pg_notify(")
  }

  /// The message with names that no server knows, as long as before.
  fileprivate var misspelled: PostgresMessage {
    let bytes = bytes.replacing("LISTEN ".utf8, with: "LISTEM ".utf8)
    return PostgresMessage(type: type, bytes: bytes.replacing("pg_notify(".utf8, with: "pg_notifi(".utf8))
  }
}

/// The messages on their way in one direction.
private struct ProxyFlow {
  private struct Item {
    var bytes: [UInt8]
    let due: ContinuousClock.Instant
    var isEnd = false
  }

  let source: Int32
  let target: Int32
  /// A Boolean value that indicates whether more can be received.
  private(set) var isReading = true
  /// A Boolean value that indicates whether the target takes no more bytes for now.
  private(set) var isBlocked = false
  /// A Boolean value that indicates whether all messages before the end have been sent.
  private(set) var isAtEnd = false

  private var reader: PostgresMessageReader
  private var items: [Item] = []
  /// The number of bytes of the first item that have been sent.
  private var sent = 0

  init(source: Int32, target: Int32, isClient: Bool) {
    (self.source, self.target) = (source, target)
    reader = PostgresMessageReader(isClient: isClient)
  }

  /// The time when the first message is due, if the target takes it.
  var nextDue: ContinuousClock.Instant? { isBlocked ? nil : items.first?.due }

  mutating func receive() -> [PostgresMessage] {
    // No connection delays the others by more than a few buffers.
    for _ in 0..<16 {
      var isOpen = true
      let bytes = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
        let received = recv(source, buffer.baseAddress, buffer.count, 0)
        isOpen = received > 0 || received < 0 && [EAGAIN, EINTR].contains(errno)
        count = max(0, received)
      }
      isReading = isOpen
      guard !bytes.isEmpty else { break }
      reader.append(bytes)
    }
    var messages: [PostgresMessage] = []
    while let message = reader.next() { messages.append(message) }
    return messages
  }

  mutating func append(_ bytes: [UInt8], due: ContinuousClock.Instant) {
    guard let last = items.indices.last, items[last].due == due else {
      items.append(Item(bytes: bytes, due: due))
      return
    }
    items[last].bytes += bytes
  }

  /// Receives no more, and ends when all earlier messages have been sent.
  mutating func end(due: ContinuousClock.Instant) {
    isReading = false
    items.append(Item(bytes: [], due: due, isEnd: true))
  }

  /// Sends the messages that are due.
  ///
  /// - Parameter willSend: Is called before the messages of each instant.
  mutating func send(willSend: () -> Void = {}) {
    isBlocked = false
    while let item = items.first, item.due <= .now {
      guard !item.isEnd else {
        isAtEnd = true
        return
      }
      if sent == 0 { willSend() }
      let count = ProxySockets.send(item.bytes.dropFirst(sent), to: target)
      if count < 0, errno == EAGAIN {
        isBlocked = true
        return
      }
      // A side that is gone also ends the other direction, once the messages it has sent are delivered.
      sent += count < 0 ? item.bytes.count - sent : count
      guard sent == item.bytes.count else { continue }
      items.removeFirst()
      sent = 0
    }
  }
}
