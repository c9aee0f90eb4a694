#if ServiceLifecycle
import Larder
import LarderCBOR
import LarderQueue
import LarderTesting
import LarderWorker
import ServiceLifecycleTestKit
import TestSupport
import Testing

@Suite struct QueueWorkerServiceTests {
  @Test func `a graceful shutdown lets running closures end`() async throws {
    let folder = try TemporaryFolder()
    let clock = ManualClock()
    let queue = try await QueueStore<Int>(
      path: folder.path("queue"), codec: .cbor(), durability: .buffered, environment: .manual(clock))
    try await queue.enqueue((0..<5).map { QueueInput($0) })
    let gate = ManualClock()
    let worker = QueueWorker([QueueHandler(queue) { _ in try await gate.sleep(for: .seconds(1)) }], concurrency: 2)
    try await testGracefulShutdown { trigger in
      async let result: Void = QueueWorkerService(worker).run()
      try await gate.waitForSleepers(2)
      trigger.triggerGracefulShutdown()
      gate.advance(by: .seconds(1))
      try await result
    }
    #expect(worker.statistics().processed == 2)
    #expect(try await queue.counts() == QueueCounts(waiting: 3))
    try await queue.close()
  }
}
#endif
