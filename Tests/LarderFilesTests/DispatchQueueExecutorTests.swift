import Dispatch
import Foundation
import LarderFiles
import Testing

@Suite struct DispatchQueueExecutorTests {
  actor Counter {
    private nonisolated let executor = DispatchQueueExecutor(label: "test")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private(set) var count = 0

    func add() { count += 1 }
  }

  struct Failed: Error {}

  @Test func `runs the jobs of an actor one after another`() async {
    let counter = Counter()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<1_000 { group.addTask { await counter.add() } }
    }
    #expect(await counter.count == 1_000)
  }

  @Test func `runs closures and rethrows their errors`() async throws {
    let executor = DispatchQueueExecutor(label: "test")
    #expect(await executor.run { 7 } == 7)
    await #expect(throws: Failed.self) { try await executor.run { throw Failed() } }
  }

  @Test func `retains no result`() async throws {
    final class Resource: Sendable {}
    let executor = DispatchQueueExecutor(label: "test")
    for _ in 0..<2_000 {
      weak var resource: Resource?
      resource = await executor.run { Resource() }
      #expect(resource == nil)
    }
  }

  @Test func `retains no closure`() async throws {
    final class Resource: Sendable {}
    let executor = DispatchQueueExecutor(label: "test")
    for _ in 0..<2_000 {
      var resource: Resource? = Resource()
      weak var reference: Resource?
      reference = resource
      await executor.run { [resource] in _ = resource }
      resource = nil
      #expect(reference == nil)
    }
  }

  @Test func `does not block the cooperative pool`() async throws {
    // Blocks more closures than the pool has threads. If they ran in the pool, nothing would open the gate.
    let gate = DispatchSemaphore(value: 0)
    let count = 4 * ProcessInfo.processInfo.activeProcessorCount
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<count {
        group.addTask { await DispatchQueueExecutor(label: "test").run { gate.wait() } }
      }
      group.addTask { for _ in 0..<count { gate.signal() } }
      try await group.waitForAll()
    }
  }
}
