import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderCoordination

@Suite struct LeaderElectionTests {
  private let clock = ManualClock()
  private let base = MemoryStore<[UInt8]>()

  private func election(_ base: some DataStore<[UInt8]>) throws -> LeaderElection {
    LeaderElection(try StoreLock(testing: base, clock), name: "scheduler")
  }

  @Test func `a resignation elects the next candidate`() async throws {
    let (first, second) = (try election(base), try election(base))
    let term = try await first.campaign()
    let next = Task { try await second.campaign() }
    try await clock.waitForSleepers(2)
    #expect(try await term.resign())
    #expect(try await !term.resign())
    await clock.advance(by: .seconds(1), whileSleeping: 1) {
      (try? base.value(forKey: "locks/tscheduler").map { try LockTerm(record: $0) })?.number == 2
    }
    let other = try await next.value
    #expect(other.token.number == 2)
    await expectStoreError(.lockLost) { try await first.locks.update(["x"], requiring: term.token) { $0[0] = [1] } }
    try await second.locks.update(["x"], requiring: other.token) { $0[0] = [2] }
  }

  @Test func `a loop over terms leads again`() async throws {
    let election = try election(base)
    var numbers: [UInt64] = []
    for try await term in election.terms {
      numbers.append(try await term.run { $0.number })
      if numbers.count == 3 { break }
    }
    #expect(numbers == [1, 2, 3])
    // A term whose body did not resign is resigned by the next step.
    var iterator = election.terms.makeAsyncIterator()
    let term = try await iterator.next()
    #expect(term?.token.number == 4)
    #expect(try await iterator.next()?.token.number == 5)
    let isCancelled = Task { [clock] in
      try? await clock.sleep(for: .seconds(86_400))
      var iterator = election.terms.makeAsyncIterator()
      return try await iterator.next() == nil
    }
    isCancelled.cancel()
    #expect(try await isCancelled.value)
  }

  @Test func `the error of a leader ends its candidacy`() async throws {
    struct Failure: Error {}
    let election = try election(base)
    await #expect(throws: Failure.self) { try await election.run { _ in throw Failure() } }
    #expect(try await election.locks.tryAcquire("scheduler") != nil)
  }

  @Test func `a cancelled candidate resigns`() async throws {
    let election = try election(base)
    let work = Task { [clock] in
      try await election.run { _ in try await clock.sleep(for: .seconds(86_400)) }
    }
    try await clock.waitForSleepers(2)
    work.cancel()
    await #expect(throws: CancellationError.self) { try await work.value }
    #expect(try await election.locks.tryAcquire("scheduler") != nil)
  }
}
