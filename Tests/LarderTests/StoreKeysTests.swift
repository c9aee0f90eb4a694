import Larder
import LarderTesting
import TestSupport
import Testing

@Suite struct StoreKeysTests {
  private static func values(of walk: ScanSequence<StoreKey>) async throws -> [Int] {
    var values: [Int] = []
    for try await key in walk { values.append(key.integer.map { Int($0) } ?? -1) }
    return values
  }

  @Test(arguments: [0, 1, 255, 256, 257, 511, 512, 513, 1_000], ScanOrder.allCases)
  func visitsEveryKeyOnce(_ count: Int, _ order: ScanOrder) async throws {
    let store = ProbedStore<Int>()
    try store.fill(0..<count)
    let expected = order == .ascending ? Array(0..<count) : (0..<count).reversed()
    #expect(try await StoreKeysTests.values(of: store.keys(order: order)) == expected)
    // 256 at a time. After a full slice, there may be another one.
    #expect(store.operations == [StoreOperation](repeating: .keys, count: count / 256 + 1))
  }

  @Test(arguments: ScanOrder.allCases) func staysWithinItsRange(_ order: ScanOrder) async throws {
    let store = ProbedStore<Int>()
    try store.fill(0..<1_000)
    for (lower, upper) in [(100, 900), (0, 256), (256, 512), (999, 1_000), (500, 500), (600, 400)] {
      let range = StoreKey(integer: lower)..<StoreKey(integer: upper)
      let expected = lower < upper ? Array(lower..<upper) : []
      let values = try await StoreKeysTests.values(of: store.keys(in: range, order: order))
      #expect(values == (order == .ascending ? expected : expected.reversed()))
    }
  }

  @Test func canBeWalkedAgain() async throws {
    let store = ProbedStore<Int>()
    try store.fill(0..<300)
    let walk = store.keys()
    #expect(try await StoreKeysTests.values(of: walk).count == 300)
    try store.fill(300..<400)
    #expect(try await StoreKeysTests.values(of: walk).count == 400)
  }

  @Test(arguments: ScanOrder.allCases) func unchangedKeysAppearOnce(_ order: ScanOrder) async throws {
    // Even numbers stay. Odd numbers come and go before, at and after the position of the walk, within its slices and
    // between.
    var random = SeededGenerator("unchangedKeysAppearOnce \(order)")
    let store = ProbedStore<Int>()
    let numbers = Array(stride(from: 0, to: 2_000, by: 2))
    try store.fill(numbers)
    var seen: [Int] = []
    for try await key in store.keys(order: order) {
      seen.append(key.integer.map { Int($0) } ?? -1)
      for _ in 0..<2 {
        let odd = random.integer(in: 0...999) * 2 + 1
        let key = StoreKey(integer: odd)
        try store.base.apply([random.integer(in: 0...2) > 0 ? .set(key, odd) : .remove(key)])
      }
      if seen.count % 100 == 0 {
        let place = StoreKey(integer: seen.last ?? 0)
        try store.base.apply([.removeAll(.only(place)), .set(place, seen.last ?? 0)])
      }
    }
    let even = seen.filter { $0.isMultiple(of: 2) }
    #expect(even == (order == .ascending ? numbers : numbers.reversed()))
    #expect(seen == (order == .ascending ? seen.sorted() : seen.sorted(by: >)))
    #expect(Set(seen).count == seen.count)
  }

  @Test func endsIfTheRestIsRemoved() async throws {
    let store = ProbedStore<Int>()
    try store.fill(0..<600)
    var iterator = store.keys().makeAsyncIterator()
    for _ in 0..<256 { #expect(try await iterator.next() != nil) }
    try store.base.apply([.removeAll(.all)])
    for _ in 0..<3 { #expect(try await iterator.next() == nil) }
    try store.fill(0..<600)
    #expect(try await iterator.next() == nil)
  }

  @Test func stoppingEarlyReadsNoFurther() async throws {
    let store = ProbedStore<Int>()
    try store.fill(0..<1_000)
    var seen = 0
    for try await _ in store.keys() {
      seen += 1
      if seen == 300 { break }
    }
    #expect(store.operations.count == 2)
  }

  @Test func anErrorEndsTheWalk() async throws {
    let store = ProbedStore<Int> { _, index in
      if index == 1 { throw StoreError(.ioFailed, during: .keys, message: "the disk is gone") }
    }
    try store.fill(0..<600)
    var iterator = store.keys().makeAsyncIterator()
    for _ in 0..<256 { #expect(try await iterator.next() != nil) }
    await expectStoreError(.ioFailed) { try await iterator.next() }
    #expect(try await iterator.next() == nil)
    #expect(store.operations.count == 2)
  }

  @Test func aCancelledTaskReceivesOnlyKeysAlreadyRead() async throws {
    let store = ProbedStore<Int>()
    try store.fill(0..<600)
    let seen = await Task {
      var seen = 0
      do {
        for try await _ in store.keys() {
          seen += 1
          withUnsafeCurrentTask { $0?.cancel() }
        }
        Issue.record("the walk continued")
      } catch {
        #expect(error is CancellationError)
      }
      return seen
    }.value
    #expect(seen == 256)
    #expect(store.operations.count == 1)
  }

  @Test func aClosedStoreThrows() async throws {
    let store = ProbedStore<Int>()
    store.base.close()
    await expectStoreError(.closed) { try await StoreKeysTests.values(of: store.keys()) }
  }
}
