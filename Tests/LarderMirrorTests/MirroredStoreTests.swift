import Larder
import LarderMirror
import LarderTesting
import TestSupport
import Testing

/// Two stores that get the same writes.
@Suite(.timeLimit(.minutes(5))) struct MirroredStoreTests {
  typealias Faulty = FaultyStore<MemoryStore<Int>>

  let old = MemoryStore<Int>()
  let new = MemoryStore<Int>()
  let primary: Faulty
  let secondary: Faulty
  let failures = Failures()
  let mirror: MirroredStore<Faulty, Faulty>

  final class Failures: Sendable {
    private let errors = Locked(0)

    var count: Int { errors.withLock { $0 } }

    func add() { errors.withLock { $0 += 1 } }
  }

  init() throws {
    primary = old.faulty()
    secondary = new.faulty()
    mirror = try MirroredStore(primary: primary, secondary: secondary) { [failures] _ in failures.add() }
  }

  private func entries(of store: MemoryStore<Int>) throws -> [StoreKey: Int] {
    let entries = try store.entries(in: .all, limit: .max, order: .ascending)
    return Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) })
  }

  private func differences() async throws -> [StoreDifference] {
    var found: [StoreDifference] = []
    try await mirror.forEachDifference(batchSize: 2) { found.append($0) }
    return found
  }

  // MARK: Writes

  @Test func `both stores get every write`() async throws {
    try await mirror.apply([.set("a", 1), .set("b", 2), .set("c", 3), .removeAll("c"..."d"), .set("d", 4)])
    try await mirror.removeValue(forKey: "b")
    let sum = try await mirror.update(["a", "d", "e"]) { values in
      values.assign([nil, (values[1] ?? 0) + 10, 5])
      return 7
    }
    #expect(sum == 7)
    #expect(try entries(of: old) == ["d": 14, "e": 5])
    #expect(try entries(of: new) == ["d": 14, "e": 5])
    #expect(try await mirror.values(forKeys: ["d", "e", "a"]) == [14, 5, nil])
    #expect(!mirror.isSynchronized)
    try await mirror.repair()
    #expect(mirror.isSynchronized)
  }

  @Test func `a discarded update is not copied`() async throws {
    try await mirror.apply([.set("a", 1), .set("b", 2)])
    try await mirror.repair()
    // A write to the secondary would fail, and be noticed.
    secondary.schedule(.error(.full), on: .apply)
    try await mirror.update(deciding: ["a"]) { slots in
      slots[0] = 7
      return .discard(())
    }
    try await mirror.update(["a"]) { slots in _ = slots[0] }
    #expect(failures.count == 0 && mirror.isSynchronized)
    #expect(try entries(of: new) == ["a": 1, "b": 2])
  }

  @Test func `a failure of the secondary fails no write`() async throws {
    try await mirror.repair()
    secondary.schedule(.error(.full), on: .apply)
    try await mirror.setValue(1, forKey: "a")
    #expect(failures.count == 1 && !mirror.isSynchronized)
    #expect(try await differences() == [StoreDifference(key: "a", kind: .onlyInFirst)])
    await expectStoreError(.conflict) { try await mirror.promoteSecondary() }
    #expect(try await mirror.repair().repairedCount == 1)
    try await mirror.promoteSecondary()
    #expect(mirror.isSwitched)
  }

  @Test func `a failure of the primary fails the write`() async throws {
    try await mirror.repair()
    primary.schedule(.error(.full), on: .apply)
    await expectStoreError(.full) { try await mirror.setValue(1, forKey: "a") }
    #expect(mirror.isSynchronized)
    #expect(try entries(of: new) == [:])
    // The value may be in the primary, and is.
    primary.schedule(.error(.ioFailed, .after), on: .update)
    await expectStoreError(.ioFailed) { try await mirror.update("a") { $0 = 2 } }
    #expect(!mirror.isSynchronized)
    #expect(try await mirror.repair().repairedCount == 1)
    #expect(try entries(of: new) == ["a": 2])
  }

  @Test func `a cancellation does not separate the stores`() async throws {
    primary.schedule(.suspension(.after), on: .apply)
    let write = Task { try await mirror.setValue(1, forKey: "a") }
    try await primary.waitForSuspended()
    write.cancel()
    primary.resume()
    _ = await write.result
    #expect(try entries(of: new) == entries(of: old))
  }

  @Test func `writes of a key keep their order`() async throws {
    secondary.schedule(.suspension(), on: .apply)
    let first = Task { try await mirror.setValue(1, forKey: "a") }
    try await secondary.waitForSuspended()
    let second = Task { try await mirror.setValue(2, forKey: "a") }
    let cancelled = Task { try await mirror.setValue(3, forKey: "a") }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    // Another key need not wait.
    try await mirror.setValue(7, forKey: "b")
    #expect(try entries(of: old) == ["a": 1, "b": 7])
    secondary.resume()
    try await first.value
    try await second.value
    #expect(try entries(of: old) == ["a": 2, "b": 7])
    #expect(try entries(of: new) == ["a": 2, "b": 7])
  }

  // MARK: Repairs

  @Test func `differences are listed and repaired`() async throws {
    try old.apply([.set("a", 1), .set("b", 2), .set("c", 3), .set("e", 5), .set("g", 7)])
    try new.apply([.set("a", 1), .set("c", 0), .set("d", 4), .set("f", 6), .set("h", 8), .set("i", 9)])
    let expected: [StoreDifference] = [
      StoreDifference(key: "b", kind: .onlyInFirst), StoreDifference(key: "c", kind: .value),
      StoreDifference(key: "d", kind: .onlyInSecond), StoreDifference(key: "e", kind: .onlyInFirst),
      StoreDifference(key: "f", kind: .onlyInSecond), StoreDifference(key: "g", kind: .onlyInFirst),
      StoreDifference(key: "h", kind: .onlyInSecond), StoreDifference(key: "i", kind: .onlyInSecond),
    ]
    #expect(try await differences() == expected)
    var cursors: [PageCursor?] = []
    let outcome = try await mirror.repair(batchSize: 2) { cursors.append($0.cursor) }
    #expect(outcome.repairedCount == 8 && cursors.count == 3)
    #expect(try entries(of: new) == entries(of: old))
    #expect(try await differences() == [])
    // A repair of a part is not enough to know that all is equal.
    secondary.schedule(.error(.timedOut), on: .apply)
    try await mirror.setValue(0, forKey: "z")
    #expect(try await mirror.repair(after: cursors[0], batchSize: 2).repairedCount == 1)
    #expect(!mirror.isSynchronized)
    await expectStoreError(.invalidArgument) { try await mirror.repair(batchSize: 0) }
    await expectStoreError(.invalidArgument) {
      try await mirror.repair(after: PageCursor(after: "a", order: .descending))
    }
  }

  @Test func `a repair misses no write that runs beside it`() async throws {
    try old.apply(ChangeBatch((0..<500).map { .set(StoreKey(integer: $0), $0) }))
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "MirroredStoreTests")
    let seeds = (0..<4).map { _ in UInt64.random(in: .min ... .max, using: &generator) }
    try await withThrowingTaskGroup { group in
      for seed in seeds {
        group.addTask {
          var generator = SeededGenerator(seed: seed)
          for _ in 0..<300 {
            let key = StoreKey(integer: Int.random(in: 0..<600, using: &generator))
            let value = Int.random(in: 0..<10_000, using: &generator)
            switch Int.random(in: 0..<10, using: &generator) {
            case 0: try await mirror.removeAll(in: key..<StoreKey(integer: 600))
            case 1..<4: try await mirror.removeValue(forKey: key)
            case 4..<6: try await mirror.update(key) { $0 = ($0 ?? 0) + 1 }
            default: try await mirror.setValue(value, forKey: key)
            }
          }
        }
      }
      group.addTask { try await mirror.repair(batchSize: 7) }
      try await group.waitForAll()
    }
    #expect(mirror.isSynchronized, "seed \(SeededGenerator.seedOfProcess)")
    #expect(try entries(of: new) == entries(of: old))
  }

  /// The write fails behind the position of the repair, which therefore does not see it.
  @Test func `a failure beside a repair is remembered`() async throws {
    try old.apply([.set("a", 1), .set("b", 2)])
    let (mirror, primary) = (mirror, primary)
    let repair = Task {
      try await mirror.repair(batchSize: 1) { progress in
        if progress.cursor?.key == "a" { primary.schedule(.suspension(), on: .keys) }
      }
    }
    try await primary.waitForSuspended(of: .keys)
    secondary.schedule(.error(.ioFailed), on: .apply)
    try await mirror.setValue(3, forKey: "a")
    primary.resume()
    #expect(try await repair.value.repairedCount == 2)
    #expect(!mirror.isSynchronized)
    #expect(try await differences() == [StoreDifference(key: "a", kind: .value)])
    try await mirror.repair()
    #expect(mirror.isSynchronized)
  }

  @Test func `differences are repaired in batches`() async throws {
    let follower = DescribedStore(MemoryStore<Int>().information)
    try follower.base.apply(ChangeBatch((0..<10).map { .set(StoreKey(integer: $0), $0) }))
    let mirror = try MirroredStore(primary: old, secondary: follower)
    #expect(try await mirror.repair(batchSize: 4).repairedCount == 10)
    #expect(follower.batchSizes == [4, 4, 2])
    #expect(try follower.base.count(in: .all) == 0)
  }

  // MARK: Exchanging the stores

  @Test func `the exchange waits for writes and holds up no read`() async throws {
    try await mirror.repair()
    secondary.schedule(.suspension(), on: .apply)
    let write = Task { try await mirror.setValue(1, forKey: "a") }
    try await secondary.waitForSuspended()
    let exchange = Task { try await mirror.promoteSecondary() }
    let later = Task {
      try await exchange.value
      try await mirror.setValue(2, forKey: "a")
    }
    for _ in 0..<100 { await Task.yield() }
    #expect(!mirror.isSwitched)
    #expect(try await mirror.value(forKey: "a") == 1)
    secondary.resume()
    try await write.value
    try await later.value
    #expect(mirror.isSwitched)
    // The first primary follows now.
    primary.schedule(.error(.full), on: .apply)
    try await mirror.setValue(3, forKey: "a")
    #expect(try await mirror.value(forKey: "a") == 3)
    #expect(try entries(of: old) == ["a": 2])
    #expect(try await mirror.repair().repairedCount == 1)
    #expect(try entries(of: old) == ["a": 3])
  }

  @Test func `the follower holds up no synchronization`() async throws {
    try await mirror.repair()
    secondary.schedule(.error(.ioFailed), on: .synchronize)
    try await mirror.synchronize()
    #expect(failures.count == 1 && !mirror.isSynchronized)
    try await mirror.repair()
    try await mirror.promoteSecondary()
    primary.schedule(.error(.ioFailed), on: .synchronize)
    try await mirror.synchronize()
    #expect(failures.count == 2)
    secondary.schedule(.error(.ioFailed), on: .synchronize)
    await expectStoreError(.ioFailed) { try await mirror.synchronize() }
    #expect(failures.count == 2)
  }

  @Test func `information is that of both`() throws {
    let one = StoreInformation(
      name: "one", durability: .synced, sharing: .betweenProcesses, maximumKeyLength: 100, entryLifetime: .untilRemoved,
      reportedCommits: .ofHost, readsMayBeCopies: false)
    let other = StoreInformation(
      name: "other", durability: .buffered, sharing: .exclusive, maximumKeyLength: 200, maximumValueSize: 10,
      entryLifetime: .untilRemoved)
    let both = try MirroredStore(primary: DescribedStore(one), secondary: DescribedStore(other)).information
    // A mirror is not observable, and its secondary may say nothing about its reads.
    #expect(both.reportedCommits == nil && both.readsMayBeCopies == nil)
    #expect(both.name == "one" && both.durability == .buffered && both.sharing == .exclusive)
    #expect(both.maximumKeyLength == 100 && both.maximumValueSize == 10)
  }

  @Test func `reads may be copies if those of one store may`() throws {
    func store(_ readsMayBeCopies: Bool) -> DescribedStore {
      DescribedStore(
        StoreInformation(
          name: "described", durability: .volatile, sharing: .exclusive, entryLifetime: .untilRemoved,
          readsMayBeCopies: readsMayBeCopies))
    }
    for (one, other) in [(false, false), (false, true), (true, false), (true, true)] {
      let both = try MirroredStore(primary: store(one), secondary: store(other)).information
      #expect(both.readsMayBeCopies == (one || other))
    }
  }

  @Test func `encrypted values are copied in plain form only if that is allowed`() throws {
    func store(_ form: StoreInformation.ValuesAtRest?) -> DescribedStore {
      var information = MemoryStore<Int>().information
      information.valuesAtRest = form
      return DescribedStore(information)
    }
    for form in [.plain, nil] as [StoreInformation.ValuesAtRest?] {
      let (secret, other) = (store(.encrypted), store(form))
      expectStoreError(.unsupported) { try MirroredStore(primary: secret, secondary: other) }
      let allowed = try MirroredStore(primary: secret, secondary: other, allowsPlainCopies: true)
      #expect(allowed.information.valuesAtRest == .encrypted)
      // A value that is encrypted in one of the stores is a secret.
      #expect(try MirroredStore(primary: other, secondary: secret).information.valuesAtRest == .encrypted)
      #expect(try MirroredStore(primary: other, secondary: other).information.valuesAtRest == form)
      // A store in memory has none at rest, but its copy does.
      #expect(try MirroredStore(primary: store(.absent), secondary: other).information.valuesAtRest == form)
    }
  }

  /// Nothing is written to the primary that the secondary cannot have.
  @Test(arguments: [StoreAccess.readWrite, .readOnly])
  func `a write that the secondary must refuse is refused before the primary`(access: StoreAccess) async throws {
    let narrow = StoreInformation(
      name: "narrow", durability: .volatile, sharing: .exclusive, access: access, maximumKeyLength: 3,
      entryLifetime: .untilRemoved)
    let mirror = try MirroredStore(primary: old, secondary: DescribedStore(narrow))
    let code: StoreError.Code = access == .readWrite ? .invalidKey : .notPermitted
    await expectStoreError(code) { try await mirror.setValue(1, forKey: "long") }
    await expectStoreError(code) { try await mirror.update("long") { $0 = 1 } }
    #expect(try old.count(in: .all) == 0)
  }

  @Test func `closing closes both`() async throws {
    secondary.schedule(.error(.ioFailed), on: .close)
    await expectStoreError(.ioFailed) { try await mirror.close() }
    expectStoreError(.closed) { try old.value(forKey: "a") }
    await expectStoreError(.closed) { try await mirror.setValue(1, forKey: "a") }
    await expectStoreError(.closed) { try await mirror.repair() }
  }
}

/// A store that describes itself as its test tells it to.
private final class DescribedStore: DataStore {
  let base = MemoryStore<Int>()
  let information: StoreInformation
  private let sizes = Locked<[Int]>([])

  init(_ information: StoreInformation) { self.information = information }

  /// The sizes of the batches, in order.
  var batchSizes: [Int] { sizes.withLock { $0 } }

  func value(forKey key: StoreKey) async throws -> Int? { try base.value(forKey: key) }
  func values(forKeys keys: [StoreKey]) async throws -> [Int?] { try base.values(forKeys: keys) }
  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Int>] {
    try base.entries(in: range, limit: limit, order: order)
  }
  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try base.keys(in: range, limit: limit, order: order)
  }
  func count(in range: KeyRange) async throws -> Int { try base.count(in: range) }
  func apply(_ changes: ChangeBatch<Int>) async throws {
    sizes.withLock { $0.append(changes.count) }
    try base.apply(changes)
  }
  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Int>) -> UpdateDecision<Result>
  ) async throws -> Result { try await base.update(deciding: keys, body) }
  func synchronize() async throws { try base.synchronize() }
  func close() async throws { base.close() }
}
