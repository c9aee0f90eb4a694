import Larder
import LarderBatching
import LarderLMDB
import LarderStoreQueue
import LarderTesting
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Stores/LarderStoreQueue/LarderStoreQueue.docc/UsingStoreQueue.md`.
///
/// It must appear in the guide unchanged, and it must work.
@Suite struct StoreQueueGuideTests {
  private struct Job: Codable, Equatable {
    var name: String
  }

  private struct Order: Codable {
    var total: Int
  }

  private struct OrderPlaced: Codable, Equatable {
    var order: Int
  }

  private func perform(_ job: Job) async throws {
    #expect(job.name == "resize")
  }

  @Test func jobs() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder

    let bytes = try await LMDBStore(path: folder + "/shop", codec: .raw)
    let jobs = try await bytes.queue(of: Job.self, prefix: "jobs/", codec: .json())

    try await jobs.enqueue(Job(name: "resize"))
    try await jobs.enqueue(Job(name: "charge"), id: "payment:17")  // repeating it with this id has no effect
    try await jobs.withNext(lease: .seconds(30)) { delivery in
      try await perform(delivery.value)  // acknowledged when this returns, released when it throws
    }

    #expect(try await jobs.enqueue(Job(name: "charge"), id: "payment:17").isDuplicate)
    #expect(try await jobs.counts() == QueueCounts(waiting: 1))
    try await jobs.close()
    try location.remove()
  }

  @Test func anOutbox() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    let order = Order(total: 5)

    let environment = try await LMDBEnvironment(path: folder + "/shop")
    let orders = try await LMDBStore<Order>(in: environment, name: "orders")
    let bytes = try await LMDBStore(in: environment, name: "queues", codec: .raw)
    let outbox = try await bytes.queue(of: OrderPlaced.self, prefix: "outbox/", codec: .json())

    try await environment.write { transaction in
      try transaction.setValue(order, forKey: "17", in: orders)
      try transaction.apply(outbox.changes(enqueuing: OrderPlaced(order: 17)), to: bytes)
    }

    #expect(try await outbox.receive(lease: .seconds(30)).map(\.value) == [OrderPlaced(order: 17)])
    #expect(try orders.value(forKey: "17")?.total == 5)
    try await environment.close()
    try location.remove()
  }

  @Test func sharedCommits() async throws {
    let bytes = MemoryStore<[UInt8]>()

    let jobs = try await bytes.batched().queue(of: Job.self, prefix: "jobs/", codec: .json())

    try await jobs.enqueue(Job(name: "resize"))
    #expect(try await jobs.count() == 1)
  }

  @Test func theGuideContainsThisCode() throws {
    let guide = try Guide("Modules/Stores/LarderStoreQueue/LarderStoreQueue.docc/UsingStoreQueue.md")
    #expect(guide.pieces.count == 3)
    #expect(try guide.piecesMissing() == [])
  }
}
