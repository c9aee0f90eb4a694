import Foundation
import Larder
import LarderJSON
import LarderTesting
import TestSupport
import Testing

@testable import LarderCache

/// Power failures, kills and failing operations of a disk with both the base and the cache.
///
/// After each step and each restart, every copy in the cache is equal to the entry of the base.
@Suite(.timeLimit(.minutes(60))) struct TieredStoreDiskTests {
  private static func open(
    _ disk: SimulatedFileSystem, _ durability: Durability.File, negativeTimeToLive: Duration? = nil
  ) async throws -> Store {
    let base = try await JSONFileStore<Int>(path: "/base.json", codec: .json(), fileSystem: disk)
    let cache = try await JSONFileStore<[UInt8]>(
      path: "/cache.json", codec: .json(), durability: durability, fileSystem: disk)
    return Store(
      tiered: try base.cached(
        in: cache, codec: .json(Int.self),
        configuration: TieredStoreConfiguration(negativeTimeToLive: negativeTimeToLive)))
  }

  private static func trials(_ durability: Durability.File) -> DiskTrials<Store> {
    DiskTrials(
      "TieredStore, \(durability) cache", cuts: TestDepth.isShort ? 50 : 200, faults: TestDepth.isShort ? 50 : 400,
      historyLength: 1, historyShare: 1
    ) { disk in
      let store = try await open(disk, durability, negativeTimeToLive: .seconds(3600))
      try await store.checkCopies()
      try await store.copyAll()
      return store
    }
  }

  @Test(arguments: Durability.File.allCases) func `copies agree after a power failure`(_ durability: Durability.File)
    async throws
  {
    try await Self.trials(durability).losePower()
  }

  @Test(arguments: Durability.File.allCases) func `copies agree after a failure`(_ durability: Durability.File)
    async throws
  {
    try await Self.trials(durability).fail()
  }

  /// Opening the base wrote the document with the next generation, beside a journal of two generations before.
  @Test func `a failed rewriting at opening stays fixed`() async throws {
    try await Self.trials(.buffered).trial.repeatTrial(
      [.apply([.set("ba", 0)]), .reopen], seed: 13_780_887_566_198_384_894, fault: (.error(EMFILE), 115))
  }

  /// An operation of the disk fails during a write, the process continues or dies, reads or writes, and the power fails.
  ///
  /// Until then, readers can see what has not reached the disk.
  @Test(arguments: Durability.File.allCases) func `copies agree if the power fails after a failure`(
    _ durability: Durability.File
  ) async throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "TieredStoreDiskTests")
    var failures = 0
    for round in 0..<ConformanceSuite.roundsOfProcess * (TestDepth.isShort ? 10 : 25) {
      let disk = SimulatedFileSystem(seed: generator.next())
      var store = try await Self.open(disk, durability)
      if Bool.random(using: &generator) { try await store.tiered.setValue(1, forKey: "a") }
      disk.schedule(.error(EIO), atOperation: disk.operationCount + Int.random(in: 1...30, using: &generator))
      do { try await store.tiered.setValue(2, forKey: "a") } catch { failures += 1 }
      disk.clearFaults()
      if Bool.random(using: &generator) {
        disk.killProcess()
        store = try await Self.open(disk, durability)
      }
      switch Int.random(in: 0..<3, using: &generator) {
      case 0: _ = try await store.value(forKey: "a")
      case 1: try await store.tiered.setValue(3, forKey: "a")
      default: try await store.tiered.removeValue(forKey: "a")
      }
      disk.losePower()
      try await Self.open(disk, durability).checkCopies("seed \(SeededGenerator.seedOfProcess), round \(round)")
    }
    #expect(failures > 0)
  }
}

/// A cached store that reads the keys of each write, so they are copied, and compares the copies with the base.
private struct Store: DataStore {
  let tiered: TieredStore<JSONFileStore<Int>, JSONFileStore<[UInt8]>>

  var information: StoreInformation { tiered.information }

  /// Throws an error that the trial never accepts if a copy differs from the entry of the base.
  func checkCopies(_ comment: Comment? = nil) async throws {
    for key in try await tiered.cache.keys(in: .all, limit: .max) {
      guard try await value(forKey: key) != tiered.base.value(forKey: key) else { continue }
      if let comment { Issue.record(comment) }
      throw StoreError(.corrupted, during: .value, store: "", key: key, message: "the copy differs from the base")
    }
  }

  /// Reads all entries, so they are copied.
  func copyAll() async throws {
    for key in try await tiered.keys(in: .all, limit: .max) { _ = try await value(forKey: key) }
  }

  /// Waits until everything is copied that a read has loaded, because no task ends with a simulated process.
  private func reading<Result>(_ read: () async throws -> Result) async throws -> Result {
    let result: Swift.Result<Result, any Error>
    do { result = .success(try await read()) } catch { result = .failure(error) }
    while !tiered.state.withLock({ $0.busy.isIdle }) { await Task.yield() }
    return try result.get()
  }

  /// Reads the keys of a write, also if it has failed.
  private func reading<Result>(_ keys: [StoreKey], after write: () async throws -> Result) async throws -> Result {
    let result: Swift.Result<Result, any Error>
    do { result = .success(try await write()) } catch { result = .failure(error) }
    // The step reports its own error, and a later one reports that the disk fails.
    _ = try? await values(forKeys: keys)
    return try result.get()
  }

  func value(forKey key: StoreKey) async throws -> Int? {
    try await reading { try await tiered.value(forKey: key) }
  }
  func values(forKeys keys: [StoreKey]) async throws -> [Int?] {
    try await reading { try await tiered.values(forKeys: keys) }
  }
  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Int>] {
    try await checkCopies()
    return try await tiered.entries(in: range, limit: limit, order: order)
  }
  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await tiered.keys(in: range, limit: limit, order: order)
  }
  func count(in range: KeyRange) async throws -> Int { try await tiered.count(in: range) }
  func apply(_ changes: ChangeBatch<Int>) async throws {
    try await reading(changes.changes.compactMap(\.key)) { try await tiered.apply(changes) }
  }
  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Int>) -> UpdateDecision<Result>
  ) async throws -> Result {
    try await reading(keys) { try await tiered.update(deciding: keys, body) }
  }
  func synchronize() async throws { try await tiered.synchronize() }
  func close() async throws { try await tiered.close() }
}
