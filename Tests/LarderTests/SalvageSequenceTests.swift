import Larder
import LarderTesting
import TestSupport
import Testing

@Suite struct SalvageSequenceTests {
  /// A store that fails scans that meet damage, as a file with damaged parts does.
  private struct DamagedStore: PassingStore {
    struct Gap: UnreadableKeysError, CustomStringConvertible {
      let keys: KeyRange
      var description: String { "a gap" }
    }

    let base: MemoryStore<Int>
    /// The numbers of entries whose keys are unknown, and of one whose key an error names.
    var gaps: [Range<Int>] = []
    var damaged: Int?
    /// A Boolean value that indicates whether errors name the lost keys.
    var namesKeys = true

    static func keys(_ numbers: Range<Int>) -> KeyRange {
      StoreKey(integer: numbers.lowerBound)..<StoreKey(integer: numbers.upperBound)
    }

    func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Int>] {
      let entries = try base.entries(in: range, limit: limit, order: order)
      for gap in gaps where entries.contains(where: { gap.contains($0.value) }) {
        let keys = Self.keys(gap)
        throw StoreError(
          .corrupted, during: .entries, message: "damaged", underlying: namesKeys ? Gap(keys: keys) : nil)
      }
      if let damaged, entries.contains(where: { $0.value == damaged }) {
        throw StoreError(.undecodable, during: .entries, key: StoreKey(integer: damaged), message: "no value")
      }
      return entries
    }
  }

  private let memory = MemoryStore<Int>()

  init() throws {
    try memory.apply(ChangeBatch((0..<3000).map { .set(StoreKey(integer: $0), $0) }))
  }

  private func salvaged(_ store: DamagedStore, in range: KeyRange = .all) async throws -> (
    found: [Int], lost: [KeyRange]
  ) {
    var (found, lost): ([Int], [KeyRange]) = ([], [])
    for try await part in store.salvage(in: range) {
      switch part {
      case .entries(let entries): found += entries.map(\.value)
      case .unreadable(let keys, _): lost.append(keys)
      }
    }
    return (found, lost)
  }

  @Test(arguments: [
    [], [0..<1], [10..<20], [0..<10, 12..<40], [998..<1002, 1999..<2001], [2995..<3000], [0..<3000],
    [30..<31, 31..<32, 2999..<3000],
  ])
  func `all entries beside gaps are found`(_ gaps: [Range<Int>]) async throws {
    let (found, lost) = try await salvaged(DamagedStore(base: memory, gaps: gaps))
    #expect(found == (0..<3000).filter { number in !gaps.contains { $0.contains(number) } })
    #expect(lost == gaps.map(DamagedStore.keys))
  }

  @Test func `one value that cannot be decoded costs one entry`() async throws {
    let (found, lost) = try await salvaged(DamagedStore(base: memory, damaged: 1234))
    #expect(found == (0..<3000).filter { $0 != 1234 })
    #expect(lost == [.only(StoreKey(integer: 1234))])
  }

  @Test func `an error that names no keys ends the sequence after the entries before it`() async throws {
    let (found, lost) = try await salvaged(DamagedStore(base: memory, gaps: [100..<101], namesKeys: false))
    #expect(found == Array(0..<100))
    #expect(lost == [StoreKey(integer: 99).successor...])
  }

  @Test func `a range limits what is found and what is lost`() async throws {
    let range = DamagedStore.keys(15..<30)
    let (found, lost) = try await salvaged(DamagedStore(base: memory, gaps: [10..<20, 25..<40]), in: range)
    #expect(found == Array(20..<25))
    #expect(lost == [DamagedStore.keys(15..<20), DamagedStore.keys(25..<30)])
  }

  @Test func `a salvage continues later with what remains`() async throws {
    let store = DamagedStore(base: memory, gaps: [500..<600])
    var (rest, found) = (KeyRange?.some(.all), 0)
    while let range = rest {
      // As after a restart, with nothing but the range.
      var iterator = store.salvage(in: range).makeAsyncIterator()
      if case .entries(let entries) = try await iterator.next() { found += entries.count }
      rest = iterator.remaining
    }
    #expect(found == 2900)
  }

  @Test func `a part has at most the entries of a batch`() async throws {
    var counts: [Int] = []
    for try await part in memory.salvage(in: .all, batchSize: 700) {
      if case .entries(let entries) = part { counts.append(entries.count) }
    }
    #expect(counts == [700, 700, 700, 700, 200])
    await expectStoreError(.invalidArgument) { for try await _ in memory.salvage(batchSize: 0) {} }
    var iterator = memory.salvage(batchSize: .max).makeAsyncIterator()
    guard case .entries(let all) = try await iterator.next() else { throw Missing() }
    #expect(all.count == 3000)
  }

  @Test func `another error ends the salvage and can pass`() async throws {
    let store = memory.faulty()
    store.schedule(.error(.ioFailed), on: .entries)
    var iterator = store.salvage().makeAsyncIterator()
    await #expect(throws: StoreError.self) { try await iterator.next() }
    guard case .entries(let entries) = try await iterator.next() else { throw Missing() }
    #expect(entries.count == 1000)
  }

  private struct Missing: Error {}
}
