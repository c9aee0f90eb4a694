import ExampleSupport
import Foundation
import Larder
import LarderQueue
import Testing

@testable import EventUploader

@Suite("Uploading")
struct UploaderTests {
  /// An endpoint that fails a given number of times.
  private final class FailingEndpoint: Endpoint {
    struct Failure: Error {}

    let batches = Locked<[EventBatch]>([])
    let failuresLeft: Locked<Int>

    init(failures: Int) {
      failuresLeft = Locked(failures)
    }

    func send(_ batch: EventBatch) async throws {
      batches.withLock { $0.append(batch) }
      let fails = failuresLeft.withLock { left in
        defer { left -= 1 }
        return left > 0
      }
      if fails { throw Failure() }
    }
  }

  @Test func `A failed batch is sent again, and its events leave the outbox only when it was accepted`() async throws {
    try await TemporaryFolder.with { folder in
      let endpoint = FailingEndpoint(failures: 8)
      let client = try await Client(outboxPath: "\(folder)/outbox", endpoint: endpoint, session: "s", seed: 1)
      try await client.run(eventCount: 100) { _ in }
      let sent = endpoint.batches.withLock { $0 }
      let accepted = sent.dropFirst(8).flatMap { $0.events.map(\.id) }
      #expect(accepted.count == 100 && Set(accepted).count == 100)
      #expect(sent.allSatisfy { $0.events.count <= 50 && $0.isOrdered })
      let left = try await QueueStore<Event>(path: "\(folder)/outbox")
      #expect(try await left.counts() == QueueCounts())
      try await left.close()
    }
  }

  @Test func `A client sends the events that an earlier one has left, and its own`() async throws {
    try await TemporaryFolder.with { folder in
      let outbox = try await QueueStore<Event>(path: "\(folder)/outbox")
      try await outbox.enqueue((0..<7).map { QueueInput(Event(session: "old", task: 0, number: $0)) })
      // Leased to a consumer that dies.
      #expect(try await outbox.receive(max: 3, lease: .seconds(3600)).count == 3)
      try await outbox.close()

      let collector = Collector(
        plan: FaultPlan(rate: 0, seed: 1), received: try NotedNames(path: "\(folder)/received"))
      let server = try await Server(answer: collector.take)
      let url = try #require(URL(string: server.url))
      let client = try await Client(
        outboxPath: "\(folder)/outbox", endpoint: HTTPEndpoint(url: url), session: "new", seed: 1)
      let recorded = Locked<Set<String>>([])
      try await client.run(eventCount: 100) { event in recorded.withLock { _ = $0.insert(event.id) } }
      await server.stop()
      #expect(recorded.withLock { $0.count } == 100)
      let old = Set((0..<7).map { "old/0/\($0)" })
      #expect(collector.intake.received == recorded.withLock { $0 }.union(old))
      #expect(collector.intake.unorderedBatchCount == 0)

      let left = try await QueueStore<Event>(path: "\(folder)/outbox")
      #expect(try await left.counts() == QueueCounts())
      try await left.close()
    }
  }

  @Test(.timeLimit(.minutes(5)))
  func `An item that cannot be decoded does not block others, and is kept as a dead letter`() async throws {
    try await TemporaryFolder.with { folder in
      // One before an event, so that it is received alone, and one after an event, so that it is received in a batch.
      for (number, ids) in [["a"], ["b", "c"], []].enumerated() {
        let strings = try await QueueStore<String>(path: "\(folder)/outbox")
        for id in ids { try await strings.enqueue("nonsense", id: StoreKey(id)) }
        try await strings.close()
        let events = try await QueueStore<Event>(path: "\(folder)/outbox")
        try await events.enqueue(Event(session: "old", task: 0, number: number))
        try await events.close()
      }
      let endpoint = FailingEndpoint(failures: 0)
      let client = try await Client(
        outboxPath: "\(folder)/outbox", endpoint: endpoint, session: "new", seed: 1)
      try await client.run(eventCount: 20) { _ in }
      #expect(endpoint.batches.withLock { $0.reduce(0) { $0 + $1.events.count } } == 23)
      let left = try await QueueStore<String>(path: "\(folder)/outbox")
      #expect(try await left.counts() == QueueCounts(dead: 3))
      #expect(try await left.deadLetters().map(\.key) == ["a", "b", "c"])
      try await left.close()
    }
  }

  @Test func `A client waits for the outbox while an earlier one is still closing it`() async throws {
    try await TemporaryFolder.with { folder in
      let earlier = try await QueueStore<Event>(path: "\(folder)/outbox")
      try await earlier.enqueue(Event(session: "old", task: 0, number: 0))
      async let client = Client(
        outboxPath: "\(folder)/outbox", endpoint: FailingEndpoint(failures: 0), session: "new", seed: 1)
      // Opening and closing race, so it may or may not have to wait.
      try await Task.sleep(for: .milliseconds(50))
      try await earlier.close()
      try await client.run(eventCount: 1) { _ in }
    }
  }
}
