#if ServiceLifecycle
import Foundation
import Larder
import LarderCoordination
import LarderExpiry
import LarderSQLite
import LarderService
import LarderTesting
import Logging
import ServiceLifecycle
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
final class StoreServiceTests: Sendable {
  private let clock = ManualClock()
  private let problems = Locked<[String]>([])

  private func note(_ name: String, _ error: any Error) {
    problems.withLock { $0.append("\(name): \((error as? StoreError)?.code.rawValue ?? "\(error)")") }
  }

  /// Waits until the tasks of a service sleep, and checks its condition.
  private func settle(_ count: Int) async throws {
    try await clock.waitForSleepers(count)
  }

  // MARK: Opening and closing

  @Test func `all callers get the same store`() async throws {
    let openings = Locked(0)
    let service = StoreService(clock: clock) {
      openings.withLock { $0 += 1 }
      return MemoryStore<[UInt8]>()
    }
    #expect(service.health().phase == .opening)
    #expect(!service.health().isReady && service.health().isLive)
    let stores = try await withThrowingTaskGroup(of: MemoryStore<[UInt8]>.self) { group in
      for _ in 0..<8 { group.addTask { try await service.open() } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(stores.allSatisfy { $0 === stores[0] })
    #expect(openings.withLock { $0 } == 1)
    #expect(service.health().isReady)
    try await service.close()
    try await service.close()
    #expect(service.health().phase == .closed)
    #expect(!service.health().isReady && service.health().isLive)
    expectStoreError(.closed) { try stores[0].value(forKey: "k") }
  }

  @Test func `opening is repeated after a retryable error`() async throws {
    let attempts = Locked(0)
    let service = StoreService(clock: clock, onProblem: note) {
      guard
        attempts.withLock({
          $0 += 1; return $0 > 2
        })
      else {
        throw StoreError(.ioFailed, during: .open, store: "s", message: "no server", isRetryable: true)
      }
      return MemoryStore<[UInt8]>()
    }
    async let store = service.open()
    for _ in 1...2 {
      try await settle(1)
      #expect(service.health().isLive && !service.health().isReady)
      clock.advance(by: .seconds(1))
    }
    try await store.close()
    #expect(problems.withLock { $0 } == ["open: ioFailed", "open: ioFailed"])
  }

  @Test(arguments: [true, false]) func `a store that cannot be opened ends the service`(_ isRetryable: Bool)
    async throws
  {
    let service = StoreService(openingLimit: .seconds(10), clock: clock) { () throws -> MemoryStore<[UInt8]> in
      throw StoreError(.ioFailed, during: .open, store: "s", message: "no server", isRetryable: isRetryable)
    }
    let run = Task { try await service.run() }
    if isRetryable {
      // Each pause is longer than the one before, and the last would end after the limit.
      while service.health().phase == .opening {
        if clock.sleeperCount > 0 { clock.advance(by: .seconds(1)) }
        await Task.yield()
      }
      #expect(clock.now.offset <= .seconds(11))
    }
    await expectStoreError(.ioFailed) { try await run.value }
    #expect(service.health().phase == .failed)
    #expect(!service.health().isLive && !service.health().isReady)
    #expect(service.health().problem?.contains("no server") == true)
    try await service.close()
  }

  @Test func `bad durations are refused`() async throws {
    for service in [
      StoreService(checkEvery: .zero) { MemoryStore<[UInt8]>() },
      StoreService(checkLimit: .seconds(-1)) { MemoryStore<[UInt8]>() },
      StoreService(tasks: [StoreTask("t", every: .zero) { _ in }]) { MemoryStore<[UInt8]>() },
    ] {
      await expectStoreError(.invalidArgument) { try await service.open() }
    }
  }

  @Test func `a graceful shutdown closes the store after the services that use it`() async throws {
    struct User: Service {
      let service: StoreService<MemoryStore<[UInt8]>>
      let hasEnded: @Sendable () -> Void

      func run() async throws {
        try await gracefulShutdown()
        // The store is still open while the service ends.
        #expect(service.health().phase == .open)
        try await service.open().setValue([1], forKey: "last")
        hasEnded()
      }
    }
    let ends = Locked(0)
    let service = StoreService(clock: clock) { MemoryStore<[UInt8]>() }
    let user = User(service: service) { ends.withLock { $0 += 1 } }
    let group = ServiceGroup(
      configuration: .init(services: [.init(service: service), .init(service: user)], logger: Logger(label: "tests")))
    async let run: Void = group.run()
    try await settle(1)
    await group.triggerGracefulShutdown()
    try await run
    #expect(ends.withLock { $0 } == 1)
    #expect(service.health().phase == .closed)
  }

  @Test func `a shutdown ends the attempts to open the store`() async throws {
    let service = StoreService(openingLimit: .seconds(1_000_000), clock: clock, onProblem: note) {
      () -> MemoryStore<[UInt8]> in
      throw StoreError(.ioFailed, during: .open, store: "s", message: "no server", isRetryable: true)
    }
    let group = ServiceGroup(
      configuration: .init(services: [.init(service: service)], logger: Logger(label: "tests")))
    async let run: Void = group.run()
    try await settle(1)
    await group.triggerGracefulShutdown()
    try await run
    #expect(service.health().phase != .open)
  }

  @Test func `a cancelled service closes the store`() async throws {
    let service = StoreService(clock: clock) { MemoryStore<[UInt8]>() }
    let run = Task { try await service.run() }
    try await settle(1)
    run.cancel()
    try await run.value
    #expect(service.health().phase == .closed)
  }

  // MARK: Checks

  @Test func `a store that fails is not ready until it answers`() async throws {
    let store = FaultyStore(MemoryStore<[UInt8]>())
    let service = StoreService(checkEvery: .seconds(10), clock: clock, onProblem: note) { store }
    let run = Task { try await service.run() }
    try await settle(1)
    #expect(service.health().isReady)
    store.schedule(.error(.ioFailed))
    clock.advance(by: .seconds(10))
    try await settle(1)
    #expect(!service.health().isReady && service.health().isLive)
    #expect(service.health().problem?.contains("ioFailed") == true)
    clock.advance(by: .seconds(10))
    try await settle(1)
    #expect(service.health().isReady)
    #expect(service.health().problem == nil)
    #expect(problems.withLock { $0 } == ["check: ioFailed"])
    run.cancel()
    try await run.value
  }

  @Test func `a store that does not answer is not ready`() async throws {
    let store = FaultyStore(MemoryStore<[UInt8]>())
    let service = StoreService(checkEvery: .seconds(10), checkLimit: .seconds(5), clock: clock) { store }
    let run = Task { try await service.run() }
    try await settle(1)
    store.schedule(.suspension())
    clock.advance(by: .seconds(10))
    try await store.waitForSuspended()
    #expect(service.health().isReady)
    clock.advance(by: .seconds(6))
    #expect(!service.health().isReady && service.health().isLive)
    #expect(service.health().problem == "the store has not answered the last check")
    store.resume()
    try await settle(1)
    #expect(service.health().isReady)
    run.cancel()
    try await run.value
  }

  @Test func `a slow store stays ready while it answers in time`() async throws {
    let store = FaultyStore(MemoryStore<[UInt8]>())
    let service = StoreService(checkEvery: .seconds(10), checkLimit: .seconds(5), clock: clock) { store }
    let run = Task { try await service.run() }
    try await settle(1)
    for _ in 1...3 {
      store.schedule(.suspension())
      clock.advance(by: .seconds(10))
      try await store.waitForSuspended()
      clock.advance(by: .seconds(4))
      #expect(service.health().isReady)
      store.resume()
      try await settle(1)
      #expect(service.health().isReady)
    }
    run.cancel()
    try await run.value
  }

  @Test func `a store is not ready once the program drains`() async throws {
    let service = StoreService(clock: clock) { MemoryStore<[UInt8]>() }
    let store = try await service.open()
    #expect(service.health().isReady)
    service.drain()
    #expect(!service.health().isReady && service.health().isLive)
    try await store.setValue([1], forKey: "k")
    try await service.close()
  }

  @Test func `a store that other code has closed is not live`() async throws {
    let service = StoreService(clock: clock) { MemoryStore<[UInt8]>() }
    let store = try await service.open()
    let run = Task { try await service.run() }
    try await settle(1)
    store.close()
    clock.advance(by: .seconds(10))
    try await settle(1)
    #expect(!service.health().isReady && !service.health().isLive)
    run.cancel()
    try await run.value
    #expect(service.health().isLive)
  }

  // MARK: Tasks

  @Test func `tasks run after each interval and survive errors`() async throws {
    let runs = Locked(0)
    let service = StoreService(
      tasks: [
        StoreTask("count", every: .seconds(60)) { _ in
          if runs.withLock({
            $0 += 1; return $0 == 2
          }) {
            throw StoreError(.full, during: .compact, store: "s", message: "m")
          }
        }
      ], clock: clock, onProblem: note
    ) { MemoryStore<[UInt8]>() }
    let run = Task { try await service.run() }
    for count in 1...3 {
      try await settle(2)
      clock.advance(by: .seconds(60))
      try await settle(2)
      #expect(runs.withLock { $0 } == count)
      #expect(service.health().tasks[0].problem == nil || count == 2)
    }
    #expect(service.health().tasks.map(\.name) == ["count"])
    #expect(service.health().tasks[0].successCount == 2)
    #expect(service.health().tasks[0].failureCount == 1)
    #expect(problems.withLock { $0 } == ["count: full"])
    #expect(service.health().isReady)
    run.cancel()
    try await run.value
  }

  @Test func `expired entries are purged`() async throws {
    let base = MemoryStore<Expiring<Int>>()
    let service = StoreService(tasks: [.purging(every: .seconds(60))], clock: clock) { [clock] in
      base.expiring(.after(.seconds(30)), purgesOnWrite: false) { clock.date }
    }
    try await service.open().setValue(1, forKey: "k")
    let run = Task { try await service.run() }
    try await settle(2)
    #expect(try base.count(in: .all) == 1)
    clock.advance(by: .seconds(60))
    try await settle(2)
    #expect(try base.count(in: .all) == 0)
    run.cancel()
    try await run.value
  }

  /// The second run of the same object removes the record of an interrupted request, which a new object would never do.
  @Test func `a task keeps its object between two runs`() async throws {
    let (bytes, clock) = (MemoryStore<[UInt8]>(), clock)
    let attempts = Locked(0)
    @Sendable func keys(_ steady: ManualClock) throws -> IdempotencyKeys<Int> {
      try IdempotencyKeys(
        bytes, prefix: "r/", codec: .json(Int.self), retention: .seconds(10), clock: steady, now: { clock.date })
    }
    // The time of the process of the request stands still, as that of one that has crashed does.
    let (mayEnd, end) = AsyncStream.makeStream(of: Void.self)
    let request = Task {
      try await keys(ManualClock()).perform("k", fingerprint: [1]) {
        for await _ in mayEnd {}
        return 1
      }
    }
    try await waitUntil { try bytes.count(in: .all) > 1 }
    let service = StoreService(
      tasks: [
        StoreTask("requests", every: .seconds(60)) { _ -> IdempotencyKeys<Int> in
          let isFirst = attempts.withLock { attempts in
            attempts += 1
            return attempts == 1
          }
          guard !isFirst else { throw StoreError(.full, during: .open, store: "s", message: "no object") }
          return try keys(clock)
        } run: { keys in
          try await keys.purge()
        }
      ], clock: clock, onProblem: note
    ) { bytes }
    let run = Task { try await service.run() }
    for _ in 1...3 {
      #expect(try bytes.count(in: .all) > 0)
      try await settle(2)
      clock.advance(by: .seconds(60))
    }
    try await settle(2)
    #expect(try bytes.count(in: .all) == 0)
    #expect(problems.withLock { $0 } == ["requests: full"])
    #expect(attempts.withLock { $0 } == 2)
    end.finish()
    // Its lock is gone, so it cannot store the outcome.
    await expectStoreError(.lockLost) { try await request.value }
    run.cancel()
    try await run.value
  }
}
#endif
