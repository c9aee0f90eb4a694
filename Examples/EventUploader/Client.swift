import ExampleSupport
import Foundation
import Larder
import LarderCBOR
import LarderQueue

/// An app's client, which records events in many tasks and uploads them at the same time.
struct Client<Target: Endpoint> {
  private static var patience: Duration { .seconds(5) }

  private let outbox: QueueStore<Event>
  private let endpoint: Target
  private let session: String
  /// The dead letters, which leave the outbox without being uploaded.
  private let deaths: AsyncStream<Void>
  private let deathNotes: AsyncStream<Void>.Continuation
  private let taskCount = 16
  private let uploaderCount = 2
  private let batchSize = 50

  /// Creates a client and opens the outbox.
  ///
  /// - Parameters:
  ///   - outboxPath: The folder of the outbox, which is created if it is missing.
  ///   - endpoint: The destination of the events.
  ///   - session: The prefix of the identifiers of the events.
  ///   - seed: The seed of the random pauses between attempts.
  init(outboxPath: String, endpoint: Target, session: String, seed: UInt64) async throws {
    let (deaths, notes) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    outbox = try await Self.outbox(at: outboxPath, seed: seed) { death in
      FileHandle.standardError.write(Data("an event became a dead letter: \(death)\n".utf8))
      notes.yield()
    }
    (self.deaths, deathNotes) = (deaths, notes)
    self.endpoint = endpoint
    self.session = session
  }

  /// Opens the outbox.
  ///
  /// A client that was just killed may not have released it yet.
  private static func outbox(
    at path: String, seed: UInt64, onDeath: @escaping @Sendable (QueueDeath) -> Void
  ) async throws -> QueueStore<Event> {
    let deadline = ContinuousClock.now + patience
    while true {
      do {
        // Items that an earlier client had leased are sent again immediately, because that client has died. However
        // often this happens, and however long the server is down, no event is given up. Only an event that cannot be
        // decoded becomes a dead letter, which is kept.
        return try await QueueStore(
          path: path, codec: .cbor(),
          configuration: QueueConfiguration(
            maximumDeliveries: nil, retryPolicy: RetryPolicy(base: .milliseconds(20), ceiling: .seconds(2))),
          leases: .void, randomness: SplitMix64(seed: seed), onDeath: onDeath)
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
    let recorders = OpenTasks(taskCount)
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
          recorders.end()
          try await closeWhenDone(recorders)
        }
      }
      for _ in 0..<uploaderCount {
        group.addTask {
          let uploader = Uploader(outbox: outbox, endpoint: endpoint, batchSize: batchSize)
          try await uploader.run { try await closeWhenDone(recorders) }
        }
      }
      group.addTask {
        for await _ in deaths { try await closeWhenDone(recorders) }
      }
      try await group.waitForAll()
    }
  }

  /// Closes the outbox when all events are recorded and uploaded, which ends the uploaders.
  private func closeWhenDone(_ recorders: OpenTasks) async throws {
    do {
      // In this order, so that events recorded in between are counted.
      guard recorders.areDone, try await outbox.count() == 0 else { return }
    } catch StoreError.Code.closed {
      // Another task closes it and may not be done.
    }
    deathNotes.finish()
    try await outbox.close()
  }
}
