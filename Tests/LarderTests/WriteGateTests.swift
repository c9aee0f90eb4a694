import Testing

@testable import Larder

@Suite struct WriteGateTests {
  /// The weights of the writers that have the lock: 1 for each shared one, and 1000 for an exclusive one.
  private final class Holders: Sendable {
    private let total = Locked(0)

    /// Changes the total, and returns the new one.
    @discardableResult
    func add(_ weight: Int) -> Int {
      total.withLock { total in
        total += weight
        return total
      }
    }
  }

  @Test func `an exclusive writer is alone`() async throws {
    let gate = WriteGate()
    let holders = Holders()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<200 {
        group.addTask {
          let weight = number.isMultiple(of: 5) ? 1000 : 1
          try await gate.withAccess(weight == 1 ? .shared : .exclusive) {
            holders.add(weight)
            await Task.yield()
            let present = holders.add(0)
            #expect(weight == 1 ? present < 1000 : present == 1000)
            holders.add(-weight)
          }
        }
      }
      try await group.waitForAll()
    }
  }

  @Test func `a cancelled waiter leaves`() async throws {
    let gate = WriteGate()
    try await gate.enter(.shared)
    let exclusive = Task { try await gate.withAccess(.exclusive) {} }
    // A writer that would share the lock waits behind the exclusive one.
    let behind = Task {
      while !exclusive.isCancelled { await Task.yield() }
      try await gate.withAccess(.shared) {}
    }
    exclusive.cancel()
    await #expect(throws: CancellationError.self) { try await exclusive.value }
    try await behind.value
    gate.leave()
    try await gate.withAccess(.exclusive) {}
  }

  @Test func `a taker does not wait`() async throws {
    let gate = WriteGate()
    #expect(gate.tryEnter(.shared))
    #expect(gate.tryEnter(.shared))
    #expect(!gate.tryEnter(.exclusive))
    let exclusive = Task { try await gate.withAccess(.exclusive) { true } }
    // It would share the lock, but another one waits.
    while gate.tryEnter(.shared) {
      gate.leave()
      await Task.yield()
    }
    gate.leave()
    gate.leave()
    #expect(try await exclusive.value)
    #expect(gate.tryEnter(.exclusive))
    #expect(!gate.tryEnter(.shared))
  }
}
