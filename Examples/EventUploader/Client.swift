import ExampleSupport
import Foundation
import Larder
import LarderCBOR
import LarderQueue

/// An app's client: records events from many tasks, and uploads them meanwhile.
struct Client<Target: Endpoint> {
  private static var patience: Duration { .seconds(5) }

  private let outbox: QueueStore<Event>
  private let endpoint: Target
  private let session: String
  /// The deaths of events, which leave the outbox by them.
  private let deaths: AsyncStream<Void>
  private let deathNotes: AsyncStream<Void>.Continuation
  private let taskCount = 16
  private let uploaderCount = 2
  private let batchSize = 50

  /// Makes a client, which opens the outbox.
  ///
  /// - Parameters:
  ///   - outboxPath: The folder of the outbox; it is made where it is missing.
  ///   - endpoint: Where events are sent.
  ///   - session: What the names of the events begin with.
  ///   - seed: What the pauses between attempts are drawn from.
  init(outboxPath: String, endpoint: Target, session: String, seed: UInt64) async throws {
    let (deaths, notes) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    outbox = try await Self.outbox(at: outboxPath, seed: seed) { death in
      FileHandle.standardError.write(Data("an event cannot be read: \(death)\n".utf8))
      notes.yield()
    }
    (self.deaths, deathNotes) = (deaths, notes)
    self.endpoint = endpoint
    self.session = session
  }

  /// Opens the outbox; a client that was killed a moment ago may not have let go of it yet.
  private static func outbox(
    at path: String, seed: UInt64, onDeath: @escaping @Sendable (QueueDeath) -> Void
  ) async throws -> QueueStore<Event> {
    let deadline = ContinuousClock.now + patience
    while true {
      do {
        // What an earlier client had leased is sent again at once: whoever had the lease has died. However often that
        // happens, and however long the server is down, no event is given up for it. Only one that cannot be decoded
        // becomes a dead letter, which is kept.
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

  /// Records events, and uploads these and all that the outbox held before; then closes the outbox.
  ///
  /// - Parameters:
  ///   - eventCount: How many events are recorded.
  ///   - recorded: Gets each event once it is recorded for good.
  /// - Throws: What the outbox and `recorded` throw.
  func run(eventCount: Int, recorded: @escaping @Sendable (Event) throws -> Void) async throws {
    let recorders = OpenTasks(taskCount)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<taskCount {
        // As many for each task, and the first ones take the rest.
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

  /// Closes the outbox when everything is recorded and nothing is left to upload, which ends the uploaders.
  private func closeWhenDone(_ recorders: OpenTasks) async throws {
    do {
      // Asked in this order: what is recorded afterwards is counted.
      guard recorders.areDone, try await outbox.count() == 0 else { return }
    } catch StoreError.Code.closed {
      // Another task was first, and may still be closing it.
    }
    deathNotes.finish()
    try await outbox.close()
  }
}
