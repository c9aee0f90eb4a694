#if ServiceLifecycle
import Larder
import LarderCoordination
import LarderTesting
import ServiceLifecycleTestKit
import Testing

@Suite struct LeaderElectionServiceTests {
  @Test func `a graceful shutdown resigns`() async throws {
    let clock = ManualClock()
    let locks = try StoreLock(MemoryStore<[UInt8]>(), prefix: "locks/", clock: clock)
    let service = LeaderElectionService(LeaderElection(locks, name: "scheduler")) { _ in
      try await clock.sleep(for: .seconds(86_400))
    }
    try await testGracefulShutdown { trigger in
      async let result: Void = service.run()
      try await clock.waitForSleepers(2)
      trigger.triggerGracefulShutdown()
      try await result
    }
    #expect(try await locks.tryAcquire("scheduler") != nil)
  }
}
#endif
