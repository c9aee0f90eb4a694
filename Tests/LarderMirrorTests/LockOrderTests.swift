import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderMirror

/// The order in which writes get the locks of their keys.
@Suite struct LockOrderTests {
  @Test func `writes of the same key run in the order of arrival`() {
    var order = LockOrder()
    let (first, runs) = order.begin(LockedKeys(["a", "b"]))
    #expect(runs)
    #expect(order.begin(LockedKeys(["c"])).mayRun)
    let second = order.begin(LockedKeys(["b", "d"]))
    let third = order.begin(LockedKeys(["d"]))
    #expect(!second.mayRun && !third.mayRun)
    #expect(order.end(first) == [second.number])
    #expect(order.isRunning(second.number) && !order.isRunning(third.number))
    #expect(order.end(second.number) == [third.number])
    #expect(order.end(third.number) == [] && order.end(third.number) == [])
  }

  @Test func `a cancelled waiter lets others pass`() {
    var order = LockOrder()
    let first = order.begin(LockedKeys(["a"])).number
    let second = order.begin(LockedKeys(["a", "b"])).number
    let third = order.begin(LockedKeys(["b"])).number
    #expect(order.end(second) == [third])
    #expect(order.end(first) == [])
  }

  @Test(.timeLimit(.minutes(5))) func `a task that was cancelled before does not wait`() async throws {
    let locks = KeyLocks()
    try await locks.withLock(of: LockedKeys(["a"])) {
      let second = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        await #expect(throws: CancellationError.self) { try await locks.withLock(of: LockedKeys(["a", "b"])) {} }
        // The cancelled write holds up no other one, which would throw as well if it had to wait.
        try await locks.withLock(of: LockedKeys(["b"])) {}
      }
      try await second.value
    }
  }

  @Test(.timeLimit(.minutes(5))) func `a task that is cancelled while it waits gets no lock`() async throws {
    let (locks, arrival) = (KeyLocks(), ArrivalOrder())
    try await locks.withLock(of: LockedKeys(["a"])) {
      let second = Task(executorPreference: arrival) { try await locks.withLock(of: LockedKeys(["a"])) {} }
      // This task runs when the second one waits.
      await Task(executorPreference: arrival) {}.value
      second.cancel()
      await #expect(throws: CancellationError.self) { try await second.value }
    }
  }

  @Test func `ranges meet keys and ranges`() {
    let range = LockedKeys("b"..<"d")
    #expect(range.meets(LockedKeys(["a", "c"])) && LockedKeys(["a", "c"]).meets(range))
    #expect(!range.meets(LockedKeys(["a", "d"])) && !LockedKeys(["d"]).meets(range))
    #expect(range.meets(LockedKeys("c"..."x")) && !range.meets(LockedKeys("d"..."x")))
    #expect(LockedKeys([.removeAll("a"..."c"), .set("x", 1)] as ChangeBatch<Int>).meets(LockedKeys(["x"])))
    #expect(!LockedKeys([]).meets(LockedKeys(.all)))
  }

  /// Random writes come and go; no two that run share a key, and none waits without a reason.
  @Test func `no two running writes share a key`() {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "LockOrderTests")
    var order = LockOrder()
    var present: [(number: Int, keys: Set<StoreKey>)] = []
    for step in 0..<2000 {
      if present.count < 8, Bool.random(using: &generator) {
        let keys = Set(
          (0..<Int.random(in: 1...3, using: &generator)).map { _ in
            StoreKey(integer: Int.random(in: 0..<6, using: &generator))
          })
        present.append((order.begin(LockedKeys(Array(keys))).number, keys))
      } else if let index = present.indices.randomElement(using: &generator) {
        _ = order.end(present.remove(at: index).number)
      }
      for (index, write) in present.enumerated() {
        let isBlocked = present[..<index].contains { !$0.keys.isDisjoint(with: write.keys) }
        #expect(order.isRunning(write.number) == !isBlocked, "seed \(SeededGenerator.seedOfProcess), step \(step)")
      }
    }
  }
}
