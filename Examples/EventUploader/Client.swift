import ExampleSupport
import Foundation
import Larder
import LarderCBOR
import LarderQueue
import LarderWorker

/// An app's client, which records events in many tasks and uploads them at the same time.
struct Client<Target: Endpoint> {
  private static var patience: Duration { .seconds(5) }

  private let outbox: QueueStore<Event>
  private let endpoint: Target
  private let session: String
  private let taskCount = 16

  /// Creates a client and opens the outbox.
  ///
  /// - Parameters:
  ///   - outboxPath: The folder of the outbox. It is created if it is missing.
  ///   - endpoint: The destination of the events.
  ///   - session: The prefix of the identifiers of the events.
  ///   - seed: The seed of the random pauses between attempts.
  init(outboxPath: String, endpoint: Target, session: String, seed: UInt64) async throws {
    outbox = try await Self.outbox(at: outboxPath, seed: seed)
    self.endpoint = endpoint
    self.session = session
  }

  /// Opens the outbox.
  ///
  /// A client that was just killed may not have released it yet.
  private static func outbox(at path: String, seed: UInt64) async throws -> QueueStore<Event> {
    let deadline = ContinuousClock.now + patience
    while true {
      do {
        // Items that an earlier client had leased are sent again immediately, because that client has died. However
        // often this happens, and however long the server is down, no event is given up. Only an event that cannot be
        // decoded becomes a dead letter, which is kept.
        return try await QueueStore(
          path: path, codec: .cbor(),
          configuration: QueueConfiguration(
            policy: QueuePolicy(
              maximumDeliveries: nil, retryPolicy: RetryPolicy(base: .milliseconds(20), ceiling: .seconds(2)))),
          leases: .void, environment: QueueEnvironment(randomness: SplitMix64(seed: seed)))
      } catch let error as StoreError {
        guard error.code == .locked, .now < deadline else { throw error }
        try await Task.sleep(for: .milliseconds(20))
      }
    }
  }

  /// Records events, uploads these and all events that are already in the outbox, and closes the outbox.
  ///
  /// - Parameters:
  ///   - eventCount: The number of events to record.
  ///   - recorded: A closure that is called with each event once it is durable.
  /// - Throws: The error of the outbox or of `recorded`.
  func run(eventCount: Int, recorded: @escaping @Sendable (Event) throws -> Void) async throws {
    // Two requests at the same time, each with up to 50 events. An event leaves the outbox when the endpoint has accepted
    // its request. A request that fails is repeated with a growing pause, so the endpoint must recognize duplicates.
    let worker = QueueWorker(
      [
        QueueHandler(outbox, batch: 50, lease: .seconds(60)) { [endpoint] deliveries in
          try await endpoint.send(EventBatch(events: deliveries.map(\.value)))
        }
      ], concurrency: 2,
      onEvent: { event in
        guard case .dead = event else { return }
        FileHandle.standardError.write(Data("\(event)\n".utf8))
      })
    async let uploads: Void = worker.run()
    try await record(eventCount, recorded)
    // Events that were recorded and not uploaded yet stay in the outbox, whatever happens, and the next client uploads them.
    while try await outbox.count() > 0 { try await Task.sleep(for: .milliseconds(20)) }
    worker.shutDown()
    try await uploads
    try await outbox.close()
  }

  private func record(_ eventCount: Int, _ recorded: @escaping @Sendable (Event) throws -> Void) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<taskCount {
        // Every task records the same number of events, and the first tasks the rest.
        let count = eventCount / taskCount + (task < eventCount % taskCount ? 1 : 0)
        group.addTask {
          for number in 0..<count {
            let event = Event(session: session, task: task, number: number)
            // Tasks that record at the same time share a synchronization of the disk.
            try await outbox.enqueue(event)
            try recorded(event)
          }
        }
      }
      try await group.waitForAll()
    }
  }
}
