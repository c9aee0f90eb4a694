import Foundation
import Larder
import LarderCBOR
import LarderQueue
import LarderTesting
import TestSupport
import Testing

/// The code of the guide `Modules/Stores/LarderQueue/LarderQueue.docc/UsingQueueStore.md` and of the page of the
/// module.
@Suite struct QueueGuideTests {
  struct Event: Codable, Sendable {
    var name: String
  }

  struct SendingFailed: Error {}

  /// The destination of the events.
  final class Receiver: Sendable {
    private let taken = Locked<[String]>([])

    var names: [String] { taken.withLock { $0 } }

    /// Takes an event, and returns the number of its deliveries.
    func take(_ name: String) -> Int {
      taken.withLock { taken in
        taken.append(name)
        return taken.count
      }
    }
  }

  @Test func `the guide`() async throws {
    let scratch = try TemporaryFolder()
    let folder = scratch.path
    let receiver = Receiver()
    @Sendable func send(_ event: Event) async throws {
      if receiver.take(event.name) == 2 { throw SendingFailed() }
    }
    func sendAll(_ events: [Event]) async throws {
      for event in events { try await send(event) }
    }

    do {
      // snippet.overview
      let outbox = try await QueueStore<Event>(
        path: folder + "/outbox", configuration: QueueConfiguration(policy: QueuePolicy(maximumDeliveries: nil)))
      try await outbox.enqueue(Event(name: "opened"))
      try await outbox.enqueue(Event(name: "paid"), id: "payment:17")  // repeating it with this id has no effect

      try await outbox.withNext(lease: .seconds(30)) { delivery in
        try await send(delivery.value)  // acknowledged when this returns, released when it throws
      }
      try await outbox.close()
      // snippet.end
    }
    // Time stands still from here on, so that no delayed or leased item comes back while the test runs.
    let now = Date.now
    let outbox = try await QueueStore<Event>(
      path: folder + "/outbox", codec: .cbor(), environment: QueueEnvironment(clock: ManualClock(), now: { now }))
    // snippet.enqueuing-2
    let results = try await outbox.enqueue([
      QueueInput(Event(name: "opened")),
      QueueInput(Event(name: "reminder"), id: "reminder:17", after: .seconds(3600)),
    ])
    print(results.map(\.sequence))
    // snippet.end
    #expect(results.map(\.sequence) == [3, 4])

    // snippet.enqueuing
    let capacity = QueueCapacity(items: 10_000, bytes: 50_000_000, policy: .dropOldest)
    let bounded = try await QueueStore<Event>(
      path: folder + "/bounded",
      configuration: QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 10), capacity: capacity))
    // snippet.end
    try await bounded.close()

    let consuming = Task {
      // snippet.receiving-4
      for try await result in outbox.deliveries(lease: .seconds(30)) {
        switch result {
        case .success(let delivery):
          do {
            try await send(delivery.value)
            try await outbox.acknowledge(delivery.receipt)
          } catch is SendingFailed {
            try await outbox.release(delivery.receipt)
          }
        case .failure(let error):
          print("an item cannot be decoded:", error)
        }
      }
      // snippet.end
    }
    while try await outbox.counts() != QueueCounts(delayed: 2) { await Task.yield() }
    consuming.cancel()
    await #expect(throws: CancellationError.self) { try await consuming.value }
    #expect(receiver.names == ["opened", "paid", "opened"])

    try await outbox.setValue(Event(name: "last"), forKey: "last")
    // snippet.receiving-3
    let deliveries = try await outbox.receive(max: 100, lease: .seconds(60))
    try await sendAll(deliveries.map(\.value))
    let stale = try await outbox.acknowledge(deliveries.map(\.receipt))
    print("will be delivered again:", stale.count)
    // snippet.end
    #expect(stale.isEmpty && deliveries.count == 1)

    await expectStoreError(.conflict) { try await conflicting(outbox) }
    try await outbox.removeValue(forKey: "payment:17")
    // snippet.receiving-2
    for letter in try await outbox.deadLetters(limit: 100) {
      print(letter.key, letter.reason, letter.attempts)
    }
    try await outbox.requeue(["payment:17"])
    try await outbox.requeueDeadLetters()  // all of them
    try await outbox.purgeDeadLetters()
    // snippet.end
    #expect(try await outbox.value(forKey: "payment:17")?.name == "paid")
    try await outbox.close()
  }

  /// A stand-in for the logger of a logging package.
  struct Logger: Sendable {
    let lines = LineBox()
    func warning(_ line: String) { lines.lines.withLock { $0.append(line) } }
  }

  final class LineBox: Sendable {
    let lines = Locked<[String]>([])
  }

  @Test func `dead letters are logged`() async throws {
    let scratch = try TemporaryFolder()
    let folder = scratch.path
    let logger = Logger()
    // snippet.receiving
    let outbox = try await QueueStore<Event>(path: folder + "/outbox", onDeadLetter: { logger.warning("\($0)") })
    // snippet.end
    try await outbox.enqueue(Event(name: "opened"))
    for _ in 0..<5 {
      let delivery = try #require(try await outbox.receive(lease: .seconds(60)))
      try await outbox.release(delivery.receipt, after: .zero)
    }
    #expect(
      logger.lines.lines.withLock { $0 } == ["item 1 became a dead letter after 5 deliveries (tooManyDeliveries)"])
    try await outbox.close()
  }

  /// Handles a dead letter whose key is in use again.
  private func conflicting(_ outbox: QueueStore<Event>) async throws {
    try await outbox.removeValue(forKey: "payment:17")
    try await outbox.enqueue(Event(name: "paid"), id: "payment:17")
    for _ in 0..<5 {
      let delivery = try #require(try await outbox.receive(lease: .seconds(5)))
      try await outbox.release(delivery.receipt, after: .zero)
    }
    try await outbox.requeue(["payment:17"])
    try await outbox.purgeDeadLetters()
    for _ in 0..<5 {
      let delivery = try #require(try await outbox.receive(lease: .seconds(5)))
      try await outbox.release(delivery.receipt, after: .zero)
    }
    try await outbox.setValue(Event(name: "paid"), forKey: "payment:17")
    try await outbox.requeue(["payment:17"])
  }

  @Test func `the page of the module`() async throws {
    let scratch = try TemporaryFolder()
    let folder = scratch.path
    func send(_ event: Event) async throws {
      #expect(event.name == "opened")
    }

    let outbox = try await QueueStore<Event>(
      path: folder + "/outbox", configuration: QueueConfiguration(policy: QueuePolicy(maximumDeliveries: nil)))
    try await outbox.enqueue(Event(name: "opened"))
    try await outbox.enqueue(Event(name: "paid"), id: "payment:17")  // repeating it with this id has no effect

    try await outbox.withNext(lease: .seconds(30)) { delivery in
      try await send(delivery.value)  // acknowledged when this returns, released when it throws
    }
    try await outbox.close()

    let again = try await QueueStore<Event>(
      path: folder + "/outbox", configuration: QueueConfiguration(policy: QueuePolicy(maximumDeliveries: nil)))
    #expect(try await again.counts() == QueueCounts(waiting: 1))
    try await again.close()
  }
}

/// A stand-in for the initializer with the system's clocks, so no lease ends because the machine is busy.
extension QueueStore where Element == QueueGuideTests.Event {
  fileprivate convenience init(path: String, configuration: QueueConfiguration) async throws {
    let now = Date.now
    try await self.init(
      path: path, codec: .cbor(), configuration: configuration,
      environment: QueueEnvironment(clock: ManualClock(), now: { now }))
  }
}
