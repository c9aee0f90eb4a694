#if LMDB
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderLMDB

/// The longest keys, the largest values, and ranges of every kind.
@Suite struct LimitTests {
  @Test func `keys of the greatest length and bounds beyond it`() async throws {
    let folder = try TemporaryFolder()
    let store = try await LMDBStore<Int>(path: folder.path("environment"), codec: .json(), durability: .buffered)
    let stem = [UInt8](repeating: 0x6B, count: 510)
    let keys = [0x00, 0x6B, 0x6C, 0xFF].map { StoreKey(bytes: stem + [$0]) }
    try await store.apply(ChangeBatch(keys.enumerated().map { .set($1, $0) }))
    await expectStoreError(.invalidKey) { try await store.setValue(1, forKey: StoreKey(bytes: stem + [1, 1])) }
    let long = StoreKey(bytes: stem + [0x6B, 0x00])
    let model = MemoryStore<Int>()
    try model.apply(ChangeBatch(keys.enumerated().map { .set($1, $0) }))
    for range in [
      long..<StoreKey(bytes: [0xFF]), ..<long, long..<long, .prefix(long), .prefix(StoreKey(bytes: stem)), ...long,
    ] {
      for order in [ScanOrder.ascending, .descending] {
        #expect(
          try store.keys(in: range, limit: .max, order: order) == model.keys(in: range, limit: .max, order: order))
      }
      #expect(try store.count(in: range) == model.count(in: range))
    }
    try await store.removeAll(in: ..<long)
    #expect(try store.keys(in: .all, limit: 9, order: .ascending) == Array(keys[2...]))
    try await store.close()
  }

  @Test func `empty values and values of a hundred megabytes`() async throws {
    let folder = try TemporaryFolder()
    let store = try await LMDBStore<[UInt8]>(path: folder.path("environment"), codec: .raw, durability: .buffered)
    let large = [UInt8](repeating: 0xA5, count: 100_000_000)
    try await store.apply([.set("large", large), .set("empty", [])])
    #expect(try store.value(forKey: "empty") == [])
    #expect(try store.value(forKey: "large") == large)
    #expect(try await store.entries(in: .all, limit: 9, order: .descending).map(\.value.count) == [100_000_000, 0])
    try await store.setValue([1], forKey: "large")
    #expect(try store.value(forKey: "large") == [1])
    try await store.close()
  }

  /// Linux writes at most 2 GiB less a page per call.
  @Test(arguments: [4096, 8192, 16_384, 32_768, 65_536]) func `the largest value fits into one write`(pageSize: Int)
    async throws
  {
    let folder = try TemporaryFolder()
    let store = try await LMDBStore<[UInt8]>(path: folder.path("environment"), codec: .raw)
    let size = try #require(store.information.maximumValueSize)
    let pageCount = (DataFileFormat.linked.pageHeaderSize + size + pageSize - 1) / pageSize
    #expect(pageCount * pageSize <= 0x7FFF_FFFF & ~(pageSize - 1))
    try await store.close()
  }

  @Test func `an oversized value is refused before anything is written`() throws {
    let coder = ValueCoder<[UInt8]>(codec: .raw, store: "store", maximumSize: 10)
    var bytes: [UInt8] = [1, 2, 3]
    try coder.append([UInt8](repeating: 0, count: 10), forKey: "k", to: &bytes, during: .apply)
    #expect(bytes.count == 13)
    let error = expectStoreError(.valueTooLarge) {
      try coder.append([UInt8](repeating: 0, count: 11), forKey: "k", to: &bytes, during: .apply)
    }
    #expect(error?.key == "k" && error?.outcome == .nothingChanged)
  }

  @Test func `any range matches the model`() async throws {
    var random = SeededGenerator(test: #function)
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    let store = try await LMDBStore<[UInt8]>(in: environment, codec: .raw)
    let model = MemoryStore<[UInt8]>()
    for round in 0..<12 {
      let batch = random.batch(count: round.isMultiple(of: 4) ? 400 : 30)
      try await store.apply(batch)
      try model.apply(batch)
      for _ in 0..<60 {
        let range = random.range()
        let limit = [0, 1, 3, 50, .max][Int.random(in: 0..<5, using: &random)]
        let order: ScanOrder = Bool.random(using: &random) ? .ascending : .descending
        try #require(
          try store.keys(in: range, limit: limit, order: order) == model.keys(in: range, limit: limit, order: order))
        try #require(
          try await store.entries(in: range, limit: limit, order: order).map(\.value)
            == model.entries(in: range, limit: limit, order: order).map(\.value))
        try #require(try store.count(in: range) == model.count(in: range))
      }
      let removed = random.range()
      try await store.removeAll(in: removed)
      try model.apply([.removeAll(removed)])
      try #require(
        try store.keys(in: .all, limit: .max, order: .ascending) == model.keys(in: .all, limit: .max, order: .ascending)
      )
    }
    // The remaining tree is valid.
    let report = try await store.verify()
    #expect(report.findings.isEmpty)
    #expect(report.entryCount == (try model.count(in: .all)))
    try await environment.close()
  }

  @Test func `a walk over pages allows space to be reused`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    let store = try await LMDBStore<[UInt8]>(in: environment, codec: .raw)
    let value = [UInt8](repeating: 1, count: 1000)
    try await store.apply(ChangeBatch((0..<300).map { .set(StoreKey(integer: $0), value) }))
    var sizes: [Int] = []
    for try await entry in store.entries(in: .all) {
      try await store.setValue(value, forKey: entry.key)
      sizes.append(try await environment.statistics().pageCount)
    }
    #expect(sizes.count == 300)
    // A snapshot held during the walk would make every write use new pages.
    #expect((sizes.last ?? 0) - (sizes.first ?? 0) < 60, "\(sizes)")
    try await environment.close()
  }
}
#endif
