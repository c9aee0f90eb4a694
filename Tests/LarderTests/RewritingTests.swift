import Larder
import LarderTesting
import TestSupport
import Testing

/// Walks that encrypt values again, and walks over damage.
@Suite struct RewritingTests {
  /// A codec of bytes that behaves like one with several keys.
  ///
  /// The first byte is the number of the key, and the second differs each time.
  private struct RingCodec: Codec {
    struct MissingKey: StoreErrorConvertible {
      var storeErrorCode: StoreError.Code { .keyUnavailable }
    }

    var primary: UInt8
    var keys: Set<UInt8>
    var name: String { "ring" }
    var format: CodecFormat { .binary }

    func encode(_ value: [UInt8], into bytes: inout [UInt8], context: ValueContext) {
      if let stored = context.stored, stored.first == primary, stored.dropFirst(2).elementsEqual(value) {
        bytes += stored
      } else {
        bytes += [primary, .random(in: 0...255)] + value
      }
    }

    func decode(_ bytes: RawSpan, context: ValueContext) throws -> [UInt8] {
      let bytes = bytes.withUnsafeBytes { Array($0) }
      guard bytes.count >= 2 else { throw RawStoreDamage() }
      guard keys.contains(bytes[0]) else { throw MissingKey() }
      return Array(bytes.dropFirst(2))
    }
  }

  private struct RawStoreDamage: Error {}

  private let bytes = MemoryStore<[UInt8]>()

  private func store(primary: UInt8, keys: Set<UInt8>) -> TypedView<MemoryStore<[UInt8]>, [UInt8]> {
    bytes.typed([UInt8].self, prefix: "v/", codec: RingCodec(primary: primary, keys: keys))
  }

  private func stored() throws -> [[UInt8]] {
    try bytes.entries(in: .all, limit: .max, order: .ascending).map(\.value)
  }

  private func fill(_ count: Int, primary: UInt8 = 1) async throws {
    try await store(primary: primary, keys: [primary]).apply(
      ChangeBatch((0..<count).map { .set(StoreKey(integer: $0), StoreKey(integer: $0).bytes) }))
  }

  @Test func `all values are encrypted with the primary key`() async throws {
    try await fill(600)
    let new = store(primary: 2, keys: [1, 2])
    try await new.setValue([7], forKey: StoreKey(integer: 7))
    let seventh = try stored()[7]
    var steps: [(count: Int, cursor: PageCursor?)] = []
    let outcome = try await new.reencrypt { steps.append(($0.examinedCount, $0.cursor)) }
    #expect(outcome.examinedCount == 600 && outcome.failureCount == 0)
    #expect(steps.map(\.count) == [256, 512, 600])
    #expect(steps.map(\.cursor) == [255, 511, 599].map { PageCursor(after: StoreKey(integer: $0)) })
    let after = try stored()
    #expect(after.allSatisfy { $0[0] == 2 } && after[7] == seventh)
    // The old key is no longer needed, and a second walk changes nothing.
    let only = store(primary: 2, keys: [2])
    #expect(try await only.value(forKey: StoreKey(integer: 9)) == StoreKey(integer: 9).bytes)
    #expect(try await only.reencrypt().failureCount == 0)
    #expect(try stored() == after)
  }

  @Test func `a walk continues after a cursor`() async throws {
    struct Stop: Error {}
    try await fill(30)
    let new = store(primary: 2, keys: [1, 2])
    var cursor: PageCursor?
    await #expect(throws: Stop.self) {
      try await new.reencrypt(batchSize: 10) {
        cursor = $0.cursor
        throw Stop()
      }
    }
    #expect(try stored().map { $0[0] } == Array(repeating: 2, count: 10) + Array(repeating: 1, count: 20))
    let text = try #require(cursor).text
    let rest = StoreKey(integer: 0)..<StoreKey(integer: 25)
    #expect(try await new.reencrypt(in: rest, after: PageCursor(text)).examinedCount == 15)
    #expect(try stored().map { $0[0] } == Array(repeating: 2, count: 25) + Array(repeating: 1, count: 5))
    await expectStoreError(.invalidArgument) {
      try await new.reencrypt(after: PageCursor(after: "a", order: .descending))
    }
    await expectStoreError(.invalidArgument) { try await new.reencrypt(batchSize: 0) }
  }

  @Test func `entries that cannot be read stay and are counted`() async throws {
    try await fill(20)
    try await store(primary: 9, keys: []).apply([.set(StoreKey(integer: 3), [3]), .set(StoreKey(integer: 19), [19])])
    try await bytes.setValue([1], forKey: StoreKey(bytes: Array("v/".utf8) + StoreKey(integer: 5).bytes))
    let before = try stored()
    let outcome = try await store(primary: 2, keys: [1, 2]).reencrypt(batchSize: 8)
    #expect(outcome.examinedCount == 20 && outcome.failureCount == 3)
    #expect(outcome.failures.map(\.code) == [.keyUnavailable, .corrupted, .keyUnavailable])
    #expect(outcome.failures.map(\.key) == [3, 5, 19].map { StoreKey(integer: $0) })
    let after = try stored()
    for number in [3, 5, 19] { #expect(after[number] == before[number]) }
    #expect(after.count { $0[0] == 2 } == 17)
  }

  @Test func `writers beside the walk lose nothing`() async throws {
    try await fill(300)
    let new = store(primary: 2, keys: [1, 2])
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<3 {
        group.addTask {
          for number in 0..<300 where number % 3 == task {
            try await new.update(StoreKey(integer: number)) { $0?.append(UInt8(task)) }
            await Task.yield()
          }
        }
      }
      group.addTask { try await new.reencrypt(batchSize: 7) }
      try await group.waitForAll()
    }
    #expect(try stored().allSatisfy { $0[0] == 2 })
    for number in 0..<300 {
      let key = StoreKey(integer: number)
      #expect(try await new.value(forKey: key) == key.bytes + [UInt8(number % 3)])
    }
  }

  // MARK: Damage

  /// A store that does not know the keys of some of its parts, like a file with damaged blocks.
  private struct GapStore: PassingStore {
    struct Gap: UnreadableKeysError, CustomStringConvertible {
      let keys: KeyRange
      var description: String { "a gap" }
    }

    let base: MemoryStore<Int>
    let gaps: [Range<Int>]

    func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
      let keys = try base.keys(in: range, limit: limit, order: order)
      for gap in gaps.map({ StoreKey(integer: $0.lowerBound)..<StoreKey(integer: $0.upperBound) })
      where keys.contains(where: gap.contains) {
        throw StoreError(.corrupted, during: .keys, message: "damaged", underlying: Gap(keys: gap))
      }
      return keys
    }
  }

  @Test(arguments: [[], [0..<1], [10..<20], [0..<10, 12..<40], [95..<100], [0..<100], [30..<31, 31..<32, 99..<100]])
  func `a walk continues after keys that cannot be read`(_ gaps: [Range<Int>]) async throws {
    let memory = MemoryStore<Int>()
    try memory.apply(ChangeBatch((0..<100).map { .set(StoreKey(integer: $0), $0) }))
    let outcome = try await GapStore(base: memory, gaps: gaps).migrateAll(batchSize: 8)
    #expect(outcome.examinedCount == 100 - gaps.reduce(0) { $0 + $1.count })
    #expect(outcome.failureCount == gaps.count && outcome.failures.map(\.code) == gaps.map { _ in .corrupted })
  }

  @Test func `an error that names no keys ends a walk`() async throws {
    struct ClosedStore: PassingStore {
      let base: MemoryStore<Int>
      func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
        throw StoreError(.ioFailed, during: .keys, message: "unplugged")
      }
    }
    await expectStoreError(.ioFailed) { try await ClosedStore(base: MemoryStore()).migrateAll() }
  }
}
