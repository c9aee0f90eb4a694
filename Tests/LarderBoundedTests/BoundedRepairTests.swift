#if Compression && LMDB && SQLite
import Foundation
import Larder
import LarderBounded
import LarderTesting
import TestSupport
import Testing

/// Bases that other programs have changed.
@Suite struct BoundedRepairTests {
  private let base = MemoryStore<[UInt8]>()

  /// Opens a store with ten entries of 10 bytes.
  private func open(_ base: some DataStore<[UInt8]>) async throws -> BoundedStore<AnyDataStore<[UInt8]>> {
    var configuration = BoundedStoreConfiguration()
    configuration.maximumShare = 1
    let store = try await AnyDataStore(base).bounded(bytes: 100, configuration: configuration)
    for number in 0..<10 { try await store.setValue([UInt8](repeating: 9, count: 9), forKey: StoreKey("\(number)")) }
    return store
  }

  private func orderKey(_ number: UInt8) -> StoreKey {
    StoreKey(bytes: Array("b/o".utf8) + [0, 0, 0, 0, 0, 0, 0, number])
  }

  /// The first record whose key begins with a prefix.
  private func first(_ prefix: StoreKey) async throws -> StoreKey {
    try #require(try await base.keys(in: .prefix(prefix), limit: 1).first)
  }

  @Test(arguments: 0..<11) func `every difference is found and repaired`(_ number: Int) async throws {
    let store = try await open(base)
    try await store.expectConsistent()
    var entryCount = 10
    switch number {
    case 0:
      // An entry without accounting, which exceeds the limit.
      try await base.setValue([UInt8](repeating: 9, count: 9), forKey: "v/x")
    case 1:
      try await base.removeValue(forKey: "v/3")
      entryCount = 9
    case 2: try await base.setValue([1], forKey: "v/3")
    case 3: try await base.removeValue(forKey: first("b/e"))
    case 4: try await base.removeValue(forKey: first("b/o"))
    case 5: try await base.setValue([1, 2, 3], forKey: first("b/e"))
    case 6: try await base.setValue([], forKey: "b/oshort")
    case 7: try await base.setValue([0, 1, 51], forKey: orderKey(1))
    case 9: try await base.setValue([0, 9, 51], forKey: first("b/o"))
    case 10: try await base.setValue([0, 1, 51], forKey: first("b/o"))
    default: try await base.removeValue(forKey: "b/totals")
    }
    #expect(try await !store.verifyAccounting().findings.isEmpty)
    let repaired = try await store.repairAccounting()
    #expect(number == 8 || !repaired.findings.isEmpty)
    try await store.expectConsistent()
    #expect(try await store.usage().entries == entryCount)
    // The order of use is complete again.
    for number in 10..<30 { try await store.setValue([UInt8](repeating: 9, count: 8), forKey: StoreKey("\(number)")) }
    #expect(try await store.allKeys == (20..<30).map { StoreKey("\($0)") })
    try await store.expectConsistent()
  }

  /// The bytes are the flag of a repair, and the last ones of the two sums.
  @Test(arguments: [1, 9, 17]) func `wrong totals are one finding`(_ position: Int) async throws {
    let store = try await open(base)
    var totals = try #require(try base.value(forKey: "b/totals"))
    totals[position] += 1
    try await base.setValue(totals, forKey: "b/totals")
    let report = try await store.verifyAccounting()
    #expect(report.entryCount == 10 && report.findings.map(\.key) == [nil])
    try await store.repairAccounting()
    try await store.expectConsistent()
  }

  @Test func `a repair without totals continues the order`() async throws {
    let store = try await open(base)
    // The entries get places in later records.
    for number in 0..<20 {
      try await store.setValue([UInt8](repeating: 9, count: 9), forKey: StoreKey("\(number % 10)"))
    }
    try await base.removeValue(forKey: "b/totals")
    try await store.repairAccounting()
    for key in ["x", "y"] { try await store.setValue([UInt8](repeating: 9, count: 9), forKey: StoreKey(key)) }
    #expect(try await store.allKeys == (2..<10).map { StoreKey("\($0)") } + ["x", "y"])
    try await store.expectConsistent()
  }

  @Test func `an entry without accounting gets the last place if the totals are lost`() async throws {
    let store = try await open(base)
    for number in 0..<20 {
      try await store.setValue([UInt8](repeating: 9, count: 9), forKey: StoreKey("\(number % 10)"))
    }
    try await base.removeValue(forKey: "b/totals")
    try await store.repairAccounting()
    try await store.removeValue(forKey: "9")
    try await base.removeValue(forKey: "b/totals")
    // It is the first one in the order of keys.
    try await base.setValue([UInt8](repeating: 9, count: 9), forKey: "v/.")
    try await store.repairAccounting()
    try await store.setValue([UInt8](repeating: 9, count: 9), forKey: "x")
    #expect(try await store.allKeys == ["."] + (1..<9).map { StoreKey("\($0)") } + ["x"])
    try await store.expectConsistent()
  }

  @Test func `damaged totals are refused until the repair`() async throws {
    let store = try await open(base)
    let damages: [[UInt8]] = [
      [], [1], [1, 2] + [UInt8](repeating: 0, count: 32), [1, 0] + [UInt8](repeating: 255, count: 32),
    ]
    for damage in damages {
      try await base.setValue(damage, forKey: "b/totals")
      await expectStoreError(.corrupted) { try await store.setValue([], forKey: "a") }
      await expectStoreError(.corrupted) { try await store.verifyAccounting() }
      await expectStoreError(.corrupted) { try await store.usage() }
      #expect(try await store.value(forKey: "3") != nil)
      try await store.repairAccounting()
      try await store.expectConsistent()
      #expect(try await store.usage().entries == 10)
    }
  }

  @Test func `a newer format is refused`() async throws {
    let store = try await open(base)
    let newer = [2] + [UInt8](repeating: 0, count: 40)
    try await base.setValue(newer, forKey: "b/totals")
    await expectStoreError(.versionMismatch) { try await store.setValue([], forKey: "a") }
    await expectStoreError(.versionMismatch) { try await store.repairAccounting() }
    let base = base
    await expectStoreError(.versionMismatch) { try await base.bounded(bytes: 100) }
    #expect(try base.value(forKey: "b/totals") == newer)
  }

  @Test func `a missing order is refused instead of exceeding the limit`() async throws {
    let store = try await open(base)
    try await base.removeAll(in: .prefix("b/o"))
    await expectStoreError(.corrupted) { try await store.setValue([UInt8](repeating: 9, count: 9), forKey: "x") }
    #expect(try await store.value(forKey: "x") == nil)
    try await store.repairAccounting()
    try await store.setValue([UInt8](repeating: 9, count: 9), forKey: "x")
    try await store.expectConsistent()
  }

  @Test func `a damaged record is an error of its entry`() async throws {
    let store = try await open(base)
    try await base.setValue([1, 2, 3], forKey: "b/e3")
    let error = await expectStoreError(.corrupted) { try await store.setValue([1], forKey: "3") }
    #expect(error?.key == "3")
    #expect(try await store.value(forKey: "3") != nil)
    try await store.setValue([1], forKey: "4")
    try await store.repairAccounting()
    try await store.setValue([1], forKey: "3")
    try await store.expectConsistent()
  }

  @Test func `superfluous places evict nothing`() async throws {
    let store = try await open(base)
    // The entries get places in later records.
    for number in 0..<20 {
      try await store.setValue([UInt8](repeating: 9, count: 9), forKey: StoreKey("\(number % 10)"))
    }
    #expect(try base.value(forKey: orderKey(0)) == nil)
    var superfluous: [UInt8] = []
    for number in 0..<100 { superfluous += [0, 6] + Array("key \(number / 10)\(number % 10)".utf8) }
    // One of the entries also has a place before its own.
    try await base.setValue(superfluous + [0, 1, 48], forKey: orderKey(0))
    try await store.setValue([UInt8](repeating: 9, count: 9), forKey: "x")
    #expect(try await store.allKeys == (1..<10).map { StoreKey("\($0)") } + ["x"])
    try await store.expectConsistent()
  }

  /// Another program writes the entry after the place was read.
  @Test func `a superfluous place that an entry gets is not removed`() async throws {
    let faulty = base.faulty()
    let store = try await open(faulty)
    // There is room for one more byte.
    try await store.setValue([UInt8](repeating: 9, count: 8), forKey: "9")
    let other = try await base.bounded(bytes: 100)
    let order = try #require(try base.value(forKey: orderKey(0)))
    try await base.setValue([0, 1] + Array("k".utf8) + order, forKey: orderKey(0))
    faulty.schedule(.suspension(), on: .update)
    let write = Task { try await store.setValue([UInt8](repeating: 9, count: 9), forKey: "x") }
    try await faulty.waitForSuspended(1, of: .update)
    try await other.setValue([], forKey: "k")
    faulty.resume()
    try await write.value
    try await store.expectConsistent()
  }

  @Test func `a damaged record of the order fails only the writes that change it`() async throws {
    let store = try await open(base)
    for number in 0..<10 { try await store.setValue([UInt8](repeating: 9, count: 8), forKey: StoreKey("\(number)")) }
    // The last five are in the second record.
    try await base.setValue([1, 2, 3], forKey: orderKey(0))
    await expectStoreError(.corrupted) { try await store.setValue([1], forKey: "3") }
    try await store.setValue([UInt8](repeating: 9, count: 8), forKey: "9")
    #expect(try await store.value(forKey: "3") != nil)
    try await store.repairAccounting()
    try await store.setValue([1], forKey: "3")
    #expect(try await store.usage().entries == 10)
    try await store.expectConsistent()
  }

  /// The format is that of the article "The format of bounded stores".
  @Test func `the format is the published one`() async throws {
    var configuration = BoundedStoreConfiguration()
    configuration.now = { .init(timeIntervalSince1970: 0.000_258) }
    let store = try await base.bounded(bytes: 1000, configuration: configuration)
    try await store.setValue([7, 8], forKey: "a")
    let keys = try await base.keys(in: .all, limit: .max)
    #expect(
      keys == ["b/ea", "b/o\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}", "b/totals", "v/a"].map { StoreKey($0) })
    #expect(
      try base.values(forKeys: keys) == [
        [0, 0, 0, 0, 0, 0, 0, 1] + [0, 0, 0, 0, 0, 0, 1, 2] + [0, 0, 0, 0, 0, 0, 0, 3], [0, 1, 97],
        [1, 0] + [0, 0, 0, 0, 0, 0, 0, 3] + [0, 0, 0, 0, 0, 0, 0, 1] + [0, 0, 0, 0, 0, 0, 0, 1]
          + [0, 0, 0, 0, 0, 0, 0, 1], [7, 8],
      ])
  }

  @Test func `sixteen places share a record`() async throws {
    let store = try await base.bounded(bytes: 1000)
    for number in 0..<40 { try await store.setValue([], forKey: StoreKey("\(10 + number)")) }
    func counts() async throws -> [Int] {
      try await base.entries(in: .prefix("b/o"), limit: .max).map { $0.value.count / 4 }
    }
    // The first record has no place 0.
    #expect(try await counts() == [15, 16, 9])
    for number in 0..<20 { try await store.setValue([], forKey: StoreKey("\(10 + number)")) }
    #expect(try await counts() == [11, 16, 13])
    try await store.expectConsistent()
    // Entries without any accounting get places of their own, too.
    try await base.removeAll(in: .prefix("b/"))
    try await store.repairAccounting()
    #expect(try await counts() == [15, 16, 9])
    try await store.expectConsistent()
  }
}
#endif
