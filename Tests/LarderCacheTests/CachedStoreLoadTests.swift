import Dispatch
import Larder
import LarderTesting
import Testing
import TestSupport

@testable import LarderCache

/// The reads of the base that a ``CachedStore`` makes for its readers, and the tasks that make them.
@Suite(.timeLimit(.minutes(60))) struct CachedStoreLoadTests {
  enum Caller {
    @TaskLocal static var name: String?
  }

  let memory = MemoryStore<Int>()
  let base: FaultyStore<MemoryStore<Int>>
  let clock = ManualClock()

  init() {
    base = memory.faulty()
  }

  private var refreshing: CachedStoreConfiguration<Int> {
    var configuration = CachedStoreConfiguration<Int>()
    configuration.refreshAfter = .seconds(10)
    return configuration
  }

  // MARK: Several keys

  @Test(arguments: [["a"], ["a", "b"]] as [[StoreKey]])
  func `tasks that miss the same keys share one load`(_ keys: [StoreKey]) async throws {
    try memory.apply([.set("a", 1), .set("b", 2)])
    let store = base.cached()
    for operation in [.value, .values] as [StoreOperation] { base.schedule(.suspension(.before), on: operation) }
    let tasks = (0..<500).map { _ in Task { try await store.values(forKeys: keys) } }
    while store.statistics().misses < 500 * keys.count { await Task.yield() }
    // No reader comes after the load has ended, so every reader that missed has joined it by now or will.
    while store.statistics().sharedLoads < 499 * keys.count, base.operationCount == 1 { await Task.yield() }
    base.clearFaults()
    base.resume()
    for task in tasks { #expect(try await task.value == [1, 2].prefix(keys.count).map { $0 }) }
    #expect(base.operationCount == 1)
    #expect(store.statistics().loads == 1)
    #expect(store.cache.isIdle)
  }

  @Test func `a read of several keys joins loads and loads the other keys`() async throws {
    try memory.apply([.set("a", 1), .set("b", 2), .set("c", 3)])
    let probe = ProbedStore(base: memory)
    let base = probe.faulty()
    let store = base.cached()
    base.schedule(.suspension(.before), on: .value)
    let one = Task { try await store.value(forKey: "a") }
    try await base.waitForSuspended()
    let several = Task { try await store.values(forKeys: ["c", "a", "b"]) }
    while store.statistics().sharedLoads < 1 { await Task.yield() }
    base.resume()
    #expect(try await several.value == [3, 1, 2])
    #expect(try await one.value == 1)
    #expect(probe.requests.sorted { $0.count < $1.count } == [["a"], ["c", "b"]])
  }

  @Test func `a joined load that a write overtakes is not part of a snapshot`() async throws {
    try memory.apply([.set("a", 1), .set("b", 1)])
    let store = base.cached()
    base.schedule(.suspension(.after), on: .value)
    let one = Task { try await store.value(forKey: "a") }
    try await base.waitForSuspended()
    // It joins the load of "a", which has read the old value, and reads "b" after the write of both.
    base.schedule(.suspension(.before), on: .value)
    let both = Task { try await store.values(forKeys: ["a", "b"]) }
    try await base.waitForSuspended(2)
    try await store.apply([.set("a", 2), .set("b", 2)])
    base.resume()
    #expect(try await one.value == 1)
    #expect(try await both.value == [2, 2])
    #expect(try await store.values(forKeys: ["a", "b"], policy: .cacheOnly) == [2, 2])
    #expect(store.cache.isIdle)
  }

  @Test func `a cancelled reader of several keys leaves the load to others`() async throws {
    try memory.apply([.set("a", 1), .set("b", 2)])
    let store = base.cached()
    base.schedule(.suspension(.before), on: .values)
    let leader = Task { try await store.values(forKeys: ["a", "b"]) }
    try await base.waitForSuspended()
    let joiner = Task { try await store.value(forKey: "b") }
    while store.statistics().sharedLoads == 0, base.operationCount == 1 { await Task.yield() }
    leader.cancel()
    await #expect(throws: CancellationError.self) { try await leader.value }
    base.resume()
    #expect(try await joiner.value == 2)
    #expect(base.operationCount == 1)
  }

  // MARK: Loads that fail

  /// Waits until many readers have joined one load of these keys and "a", and then continues the load.
  private func joinLoad(
    of keys: [StoreKey], from store: CachedStore<some DataStore<Int>>, over base: FaultyStore<some DataStore<Int>>,
    failing: Bool = false
  ) async throws -> (leader: Task<[Int?], any Error>, joiners: [Task<[Int?], any Error>]) {
    base.schedule(.suspension(.before), on: .values)
    if failing { base.schedule(.error(.timedOut), on: .values) }
    let leader = Task { try await store.values(forKeys: ["a"] + keys) }
    try await base.waitForSuspended()
    let joiners = (0..<50).map { _ in
      Task { keys.count == 1 ? [try await store.value(forKey: keys[0])] : try await store.values(forKeys: keys) }
    }
    while store.statistics().sharedLoads < 50 * keys.count { await Task.yield() }
    base.resume()
    return (leader, joiners)
  }

  @Test(arguments: [["b"], ["b", "c"]] as [[StoreKey]])
  func `readers of a failed load do not read the base again`(_ keys: [StoreKey]) async throws {
    let store = base.cached()
    let (leader, joiners) = try await joinLoad(of: keys, from: store, over: base, failing: true)
    for task in [leader] + joiners { await expectStoreError(.timedOut) { try await task.value } }
    #expect(base.operationCount == 1)
    #expect(store.statistics().loadFailures == 1)
    #expect(store.cache.isIdle)
  }

  @Test(arguments: [["b"], ["b", "c"]] as [[StoreKey]], [true, false])
  func `readers whose load failed by another key share a new load`(_ keys: [StoreKey], _ namesKey: Bool) async throws {
    try memory.apply([.set("a", 1), .set("b", 2), .set("c", 3)])
    let base = DamagedStore(memory, from: "a", to: "b", namesKey: namesKey).faulty()
    let store = base.cached()
    let (leader, joiners) = try await joinLoad(of: keys, from: store, over: base)
    await expectStoreError(.corrupted) { try await leader.value }
    for task in joiners { #expect(try await task.value == [2, 3].prefix(keys.count).map { $0 }) }
    // Two readers may start with one key each.
    #expect(base.operationCount <= 1 + keys.count)
    #expect(store.statistics().loadFailures == 1)
    #expect(store.cache.isIdle)
  }

  @Test(arguments: [["b"], ["b", "c"]] as [[StoreKey]], [true, false])
  func `readers whose load failed by their key get the error`(_ keys: [StoreKey], _ namesKey: Bool) async throws {
    let base = DamagedStore(memory, from: "b", to: "c", namesKey: namesKey).faulty()
    let store = base.cached()
    let (leader, joiners) = try await joinLoad(of: keys, from: store, over: base)
    for task in [leader] + joiners { await expectStoreError(.corrupted) { try await task.value } }
    #expect(base.operationCount == 1)
  }

  // MARK: Background loads

  /// A base whose reads block their thread until they are released, as in a store that never suspends.
  private final class BlockingStore: PassingStore {
    typealias Value = Int
    let base: MemoryStore<Int>
    let gate = DispatchSemaphore(value: 0)
    let blocked = Locked(0)

    init(base: MemoryStore<Int>) {
      self.base = base
    }

    /// Blocks with a timeout, so a reader that reads in its own task returns.
    private func block() {
      if gate.wait(timeout: .now() + 300) == .timedOut { blocked.withLock { $0 += 1 } }
    }

    func value(forKey key: StoreKey) async throws -> Int? {
      block()
      return try base.value(forKey: key)
    }

    func values(forKeys keys: [StoreKey]) async throws -> [Int?] {
      block()
      return try base.values(forKeys: keys)
    }
  }

  @Test func `a reader does not wait for a background load that never suspends`() async throws {
    let base = BlockingStore(base: memory)
    let store = base.cached(refreshing, clock: clock)
    try await store.apply([.set("a", 1), .set("b", 1), .set("c", 1)])
    try memory.apply([.set("a", 2), .set("b", 2), .set("c", 2)])
    clock.advance(by: .seconds(10))
    #expect(try await store.value(forKey: "a") == 1)
    base.gate.signal()
    #expect(try await store.values(forKeys: ["b", "c"]) == [1, 1])
    base.gate.signal()
    while try await store.values(forKeys: ["a", "b", "c"], policy: .cacheOnly) != [2, 2, 2] { await Task.yield() }
    #expect(base.blocked.withLock { $0 } == 0)
    #expect(store.statistics().loads == 2)
  }

  @Test func `a failing base is not read again immediately`() async throws {
    let store = base.cached(refreshing, clock: clock)
    try await store.apply([.set("a", 1), .set("b", 1)])
    clock.advance(by: .seconds(10))
    let before = base.operationCount
    base.schedule(.error(.timedOut), on: .value, probability: 1)
    base.schedule(.error(.timedOut), on: .values, probability: 1)
    #expect(try await store.value(forKey: "a") == 1)
    while store.statistics().loadFailures == 0 || !store.cache.isIdle { await Task.yield() }
    for _ in 0..<10 { #expect(try await store.values(forKeys: ["a", "b"]) == [1, 1]) }
    while !store.cache.isIdle { await Task.yield() }
    #expect(base.operationCount == before + 1)
    base.clearFaults()
    try memory.apply([.set("a", 2), .set("b", 2)])
    clock.advance(by: .seconds(1))
    #expect(try await store.values(forKeys: ["a", "b"]) == [1, 1])
    while try await store.values(forKeys: ["a", "b"], policy: .cacheOnly) != [2, 2] { await Task.yield() }
    #expect(base.operationCount == before + 2)
  }

  @Test(arguments: [["a"], ["a", "b", "c"]] as [[StoreKey]], [.corrupted, .keyUnavailable] as [StoreError.Code])
  func `an unreadable key does not prevent other loads`(_ first: [StoreKey], _ code: StoreError.Code) async throws {
    let store = DamagedStore(memory, from: "a", to: "b", code: code).cached(refreshing, clock: clock)
    try await store.apply([.set("a", 1), .set("b", 1), .set("c", 1)])
    try memory.apply([.set("b", 2), .set("c", 2)])
    clock.advance(by: .seconds(10))
    for keys in [first, ["a", "b", "c"]] {
      #expect(try await store.values(forKeys: keys) == keys.map { _ in 1 })
      while !store.cache.isIdle { await Task.yield() }
    }
    #expect(try await store.values(forKeys: ["a", "b", "c"], policy: .cacheOnly) == [1, 2, 2])
    #expect(store.statistics().loadFailures == 1)
    clock.advance(by: .seconds(1))
    #expect(try await store.value(forKey: "a") == 1)
    while !store.cache.isIdle { await Task.yield() }
    #expect(store.statistics().loadFailures == 2)
  }

  @Test func `many unreadable keys suspend loads for a while`() async throws {
    let store = DamagedStore(memory, from: "a", to: "b").cached(refreshing, clock: clock)
    let damaged = (0..<100).map { StoreKey("a\($0)") }
    try await store.apply(ChangeBatch((damaged + ["z"]).map { .set($0, 1) }))
    try memory.apply([.set("z", 2)])
    clock.advance(by: .seconds(10))
    for key in damaged + ["z"] {
      #expect(try await store.value(forKey: key) == 1)
      while !store.cache.isIdle { await Task.yield() }
    }
    #expect(store.statistics().loadFailures < damaged.count)
    #expect(try await store.value(forKey: "z", policy: .cacheOnly) == 1)
    clock.advance(by: .seconds(1))
    #expect(try await store.value(forKey: "z") == 1)
    while !store.cache.isIdle { await Task.yield() }
    #expect(try await store.value(forKey: "z", policy: .cacheOnly) == 2)
  }

  @Test func `a reader of an entry that is refreshing starts no task`() async throws {
    let testTask = withUnsafeCurrentTask { $0?.hashValue }
    let others = Locked(0)
    let clock = AskedClock(clock: clock) {
      if withUnsafeCurrentTask(body: { $0?.hashValue }) != testTask { others.withLock { $0 += 1 } }
    }
    let store = base.cached(refreshing, clock: clock)
    try await store.setValue(1, forKey: "a")
    clock.clock.advance(by: .seconds(10))
    base.schedule(.suspension(.before), on: .value)
    #expect(try await store.value(forKey: "a") == 1)
    try await base.waitForSuspended()
    for _ in 0..<100 { #expect(try await store.value(forKey: "a") == 1) }
    base.resume()
    // Closing waits for every task of the store.
    try await store.close()
    // The load reads the clock when it caches the entry and when it ends.
    #expect(others.withLock { $0 } == 2)
  }

  // MARK: Tasks

  /// A base that records the callers of its reads.
  private final class CallerStore: PassingStore {
    typealias Value = Int
    let base: FaultyStore<MemoryStore<Int>>
    let callers = Locked<[String?]>([])
    let priorities = Locked<[TaskPriority]>([])
    /// A Boolean value that indicates whether a read of one key waits for a reader of high priority that joins it.
    private let awaitsEscalation: Bool

    init(base: FaultyStore<MemoryStore<Int>>, awaitsEscalation: Bool = false) {
      self.base = base
      self.awaitsEscalation = awaitsEscalation
    }

    func value(forKey key: StoreKey) async throws -> Int? {
      callers.withLock { $0.append(Caller.name) }
      let value = try await base.value(forKey: key)
      if awaitsEscalation { await yieldUntil { Task.currentPriority == .high } }
      priorities.withLock { $0.append(Task.currentPriority) }
      return value
    }

    func values(forKeys keys: [StoreKey]) async throws -> [Int?] {
      callers.withLock { $0.append(Caller.name) }
      return try await base.values(forKeys: keys)
    }
  }

  @Test func `a load keeps the task locals of its first reader`() async throws {
    let base = CallerStore(base: base)
    let store = base.cached(refreshing, clock: clock)
    try memory.apply([.set("a", 1), .set("b", 2), .set("c", 3)])
    try await Caller.$name.withValue("Ada") { _ = try await store.value(forKey: "a") }
    try await Caller.$name.withValue("Bob") { _ = try await store.values(forKeys: ["b", "c"]) }
    clock.advance(by: .seconds(10))
    try await Caller.$name.withValue("Eve") { _ = try await store.value(forKey: "a") }
    while store.statistics().loads < 3 || !store.cache.isIdle { await Task.yield() }
    #expect(base.callers.withLock { $0 } == ["Ada", "Bob", "Eve"])
  }

  @Test(.timeLimit(.minutes(5))) func `a reader of higher priority escalates the load it joins`() async throws {
    let base = CallerStore(base: base, awaitsEscalation: true)
    let store = base.cached()
    base.base.schedule(.suspension(.before), on: .value)
    let leader = Task(priority: .low) { try await store.value(forKey: "a") }
    try await base.base.waitForSuspended()
    let joiner = Task(priority: .high) { try await store.value(forKey: "a") }
    while store.statistics().sharedLoads == 0 { await Task.yield() }
    base.base.resume()
    _ = try await (leader.value, joiner.value)
    #expect(base.priorities.withLock { $0 } == [.high])
  }
}

/// A clock that calls a closure when it is asked for the time.
struct AskedClock: Clock {
  let clock: ManualClock

  /// Called before each reading of the clock.
  let onAsking: @Sendable () -> Void

  var now: ManualClock.Instant {
    onAsking()
    return clock.now
  }

  var minimumResolution: Duration { clock.minimumResolution }

  func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {
    try await clock.sleep(until: deadline, tolerance: tolerance)
  }
}

/// A decorator in which the values of some keys cannot be read.
final class DamagedStore: PassingStore {
  typealias Value = Int

  /// An error that names the unreadable keys.
  private struct LostKeys: UnreadableKeysError, CustomStringConvertible {
    let keys: KeyRange
    var description: String { "some keys cannot be read" }
  }

  let base: MemoryStore<Int>
  private let damage: KeyRange
  private let namesKey: Bool
  private let code: StoreError.Code

  /// Creates the store.
  ///
  /// - Parameters:
  ///   - base: The store with the values.
  ///   - first: The first unreadable key.
  ///   - end: The first key after the unreadable ones.
  ///   - namesKey: A Boolean value that indicates whether an error names the key, not the range. Defaults to `true`.
  ///   - code: The code of the errors. Defaults to `corrupted`.
  init(
    _ base: MemoryStore<Int>, from first: StoreKey, to end: StoreKey, namesKey: Bool = true,
    code: StoreError.Code = .corrupted
  ) {
    self.base = base
    damage = KeyRange(from: first, upTo: end)
    self.namesKey = namesKey
    self.code = code
  }

  private func check(_ keys: [StoreKey], for operation: StoreOperation) throws {
    guard let key = keys.first(where: damage.contains) else { return }
    throw StoreError(
      code, during: operation, key: namesKey ? key : nil, message: "the value cannot be read",
      underlying: namesKey ? nil : LostKeys(keys: damage), isRetryable: code == .keyUnavailable)
  }

  func value(forKey key: StoreKey) async throws -> Int? {
    try check([key], for: .value)
    return try base.value(forKey: key)
  }

  func values(forKeys keys: [StoreKey]) async throws -> [Int?] {
    try check(keys, for: .values)
    return try base.values(forKeys: keys)
  }
}
