#if ServiceLifecycle
import Foundation
import Larder
import LarderCoordination
import LarderSQLite
import LarderService
import LarderStoreQueue
import LarderTesting
import LarderWorker
import Logging
import ServiceLifecycle
import ServiceLifecycleTestKit
import TestSupport
import Testing
import UnixSignals

/// The code of the pages of LarderService.
@Suite(.timeLimit(.minutes(5)))
final class ServiceGuideTests: Sendable {
  private struct Receipt: Codable, Sendable {
    var amount: Int
  }

  private let folder = FileManager.default.temporaryDirectory.appending(path: "larder-service-\(UUID().uuidString)")
    .path
  private let logger = Logger(label: "tests")

  init() throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  deinit {
    // The folder of a test is of no use afterward.
    try? FileManager.default.removeItem(atPath: folder)
  }

  /// Runs until the graceful shutdown, and then checks that the store was closed.
  private func run(_ path: String, _ sent: @escaping @Sendable (String) -> Void) async throws {
    func queue(in bytes: SQLiteStore<[UInt8]>) async throws -> StoreQueue<SQLiteStore<[UInt8]>, String> {
      let queue = try await bytes.queue(of: String.self, prefix: "queue/", codec: .json())
      try await queue.enqueue("mail")
      return queue
    }
    @Sendable func send(_ text: String) async throws { sent(text) }

    // snippet.overview
    let service = StoreService { try await SQLiteStore<[UInt8]>(path: path, codec: .raw) }
    let bytes = try await service.open()
    let worker = QueueWorker([QueueHandler(try await queue(in: bytes)) { delivery in try await send(delivery.value) }])

    let group = ServiceGroup(
      configuration: .init(
        services: [.init(service: service), .init(service: QueueWorkerService(worker))],
        gracefulShutdownSignals: [.sigterm], logger: logger))
    try await group.run()
    // snippet.end

    #expect(service.health().phase == .closed)
    let error = #expect(throws: StoreError.self) { try bytes.value(forKey: "k") }
    #expect(error?.code == .closed)
  }

  @Test func `a store and a worker`() async throws {
    let sent = Locked<[String]>([])
    let path = folder + "/store.sqlite"
    let run: @Sendable () async throws -> Void = {
      try await self.run(path) { text in sent.withLock { $0.append(text) } }
    }
    try await testGracefulShutdown { trigger in
      async let result: Void = run()
      await yieldUntil { sent.withLock { $0 == ["mail"] } }
      trigger.triggerGracefulShutdown()
      try await result
    }
  }

  @Test func tasks() async throws {
    let path = folder + "/tasks.sqlite"

    let limit = RateLimit(100, per: .seconds(60), burst: 20)

    // snippet.tasks
    let service = StoreService(
      tasks: [
        .backingUp(every: .seconds(3600), in: path + "-backups", keeping: 24) {
          try await SQLiteStore<[UInt8]>(path: $0, codec: .raw, access: .readOnly)
        },
        StoreTask("requests", every: .seconds(3600)) { bytes in
          try IdempotencyKeys(bytes, prefix: "requests/", codec: .json(Receipt.self))
        } run: { requests in
          try await requests.purge()
        },
        StoreTask("limits", every: .seconds(3600)) { bytes in
          try await RateLimiter(bytes, prefix: "limits/", limit: limit).removeIdle()
        },
      ]
    ) { try await SQLiteStore<[UInt8]>(path: path, codec: .raw) }
    // snippet.end

    let run = Task { try await service.run() }
    await yieldUntil { service.health().tasks[0].successCount + service.health().tasks[0].failureCount == 1 }
    #expect(service.health().tasks[0].problem == nil)
    run.cancel()
    try await run.value
    #expect(try FileManager.default.contentsOfDirectory(atPath: path + "-backups").count == 1)
  }
}
#endif
