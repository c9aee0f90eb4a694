#if LMDB
import Foundation
import Larder
import LarderBatching
import LarderLMDB
import LarderStoreQueue
import TestSupport
import Testing

/// The code of the pages of LarderStoreQueue.
@Suite final class StoreQueueGuideTests: Sendable {
  private struct Job: Codable, Sendable {
    var name: String
  }

  private struct Order: Codable, Sendable {
    var total: Int
  }

  private struct OrderPlaced: Codable, Sendable {
    var order: Int
  }

  private let performed = Locked<[String]>([])

  private func perform(_ job: Job) async throws {
    performed.withLock { $0.append(job.name) }
  }

  @Test func `a queue in a store`() async throws {
    let directory = try TemporaryFolder()
    let folder = directory.path
    // snippet.overview
    let bytes = try await LMDBStore(path: folder + "/shop", codec: .raw)
    let jobs = try await bytes.queue(of: Job.self, prefix: "jobs/", codec: .json())

    try await jobs.enqueue(Job(name: "resize"))
    try await jobs.enqueue(Job(name: "charge"), id: "payment:17")  // repeating it with this id has no effect
    try await jobs.withNext(lease: .seconds(30)) { delivery in
      try await perform(delivery.value)  // acknowledged when this returns, released when it throws
    }
    // snippet.end

    try await jobs.enqueue(Job(name: "charge"), id: "payment:17")
    #expect(performed.withLock { $0 } == ["resize"])
    #expect(try await jobs.count() == 1)
    try await jobs.close()
  }

  @Test func `priorities and groups`() async throws {
    let directory = try TemporaryFolder()
    let folder = directory.path
    let bytes = try await LMDBStore(path: folder + "/shop", codec: .raw)
    let jobs = try await bytes.queue(of: Job.self, prefix: "jobs/", codec: .json())

    try await jobs.enqueue(Job(name: "resize"), priority: 5, group: "photo:17")
    try await jobs.withNext(lease: .seconds(30)) { delivery in
      try await perform(delivery.value)
    }

    #expect(performed.withLock { $0 } == ["resize"])
    try await jobs.close()
  }

  @Test func `an outbox in a transaction`() async throws {
    let directory = try TemporaryFolder()
    let folder = directory.path
    let order = Order(total: 9)
    // snippet.an-item-together-with-your-own
    let environment = try await LMDBEnvironment(path: folder + "/shop")
    let orders = try await LMDBStore<Order>(in: environment, name: "orders")
    let bytes = try await LMDBStore(in: environment, name: "queues", codec: .raw)
    let outbox = try await bytes.queue(of: OrderPlaced.self, prefix: "outbox/", codec: .json())

    try await environment.write { transaction in
      try transaction.setValue(order, forKey: "17", in: orders)
      try transaction.apply(outbox.changes(enqueuing: OrderPlaced(order: 17)), to: bytes)
    }
    // snippet.end

    #expect(try orders.value(forKey: "17")?.total == 9)
    #expect(try await outbox.peek(max: 9).map(\.value.order) == [17])
    try await environment.close()
  }

  @Test func `a schedule`() async throws {
    let bytes = MemoryStore<[UInt8]>()
    // snippet.cost
    let jobs = try await bytes.batched().queue(of: Job.self, prefix: "jobs/", codec: .json())
    // snippet.end
    let midnight = Date(timeIntervalSince1970: 0)
    let running = Task { try await run(jobs, from: midnight) }
    // The records of the format and of the schedule.
    while try bytes.count(in: .all) < 2 { await Task.yield() }
    running.cancel()
    await #expect(throws: CancellationError.self) { try await running.value }
  }

  private func run(_ jobs: StoreQueue<BatchingStore<MemoryStore<[UInt8]>>, Job>, from midnight: Date) async throws {
    // snippet.items-at-fixed-times
    let report = QueueSchedule<Job>(name: "report", every: .seconds(3600), from: midnight) { due in
      Job(name: "report of \(due)")
    }
    try await jobs.run([report])
    // snippet.end
  }

  @Test func `a paused queue`() async throws {
    let jobs = try await MemoryStore<[UInt8]>().queue(of: Job.self, prefix: "jobs/", codec: .json())
    try await jobs.enqueue(Job(name: "resize"))
    func migrate() async throws {
      #expect(try await jobs.isPaused())
      #expect(try await jobs.receive(lease: .seconds(30)) == nil)
    }

    // snippet.pausing
    try await jobs.pause()
    try await migrate()
    try await jobs.resume()
    // snippet.end

    #expect(try await jobs.receive(lease: .seconds(30))?.value.name == "resize")
  }

  @Test func `leased items and groups are listed`() async throws {
    let jobs = try await MemoryStore<[UInt8]>().queue(of: Job.self, prefix: "jobs/", codec: .json())
    try await jobs.enqueue(Job(name: "resize"), id: "a", group: "customer:17")
    _ = try await jobs.receive(lease: .seconds(30))
    let lines = Locked<[String]>([])
    func print(_ items: Any...) {
      lines.withLock { $0.append(items.map { "\($0)" }.joined(separator: " ")) }
    }

    // snippet.leased-items-groups-and-schedules
    for item in try await jobs.leasedItems(limit: 100, after: nil).entries {
      print(item.key, "attempt", item.attempt, "until", item.deadline)
    }
    for group in try await jobs.groups(limit: 100, after: nil).entries {
      print(group.name, group.count, "items, blocked by", group.blocker?.key ?? "none")
    }
    // snippet.end

    let found = lines.withLock { $0 }
    #expect(found.first?.hasPrefix("\"a\" attempt 1 until 20") == true)
    #expect(found.last == "\"customer:17\" 1 items, blocked by \"a\"")
  }
}
#endif
