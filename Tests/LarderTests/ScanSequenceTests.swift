import Larder
import LarderTesting
import TestSupport
import Testing

/// The sequences of entries and of keys, which read a store in the same way.
@Suite struct ScanSequenceTests {
  /// The elements of a sequence.
  enum Content: CaseIterable {
    case entries
    case keys

    var operation: StoreOperation { self == .entries ? .entries : .keys }

    /// Returns the sequence of a store, as numbers.
    func sequence(
      of store: ProbedStore<Int>, in range: KeyRange = .all, order: ScanOrder = .ascending
    ) -> any AsyncSequence<Int, any Error> {
      switch self {
      case .entries: store.entries(in: range, order: order).map(\.value)
      case .keys: store.keys(in: range, order: order).map { $0.integer.map { Int($0) } ?? -1 }
      }
    }

    /// Returns a closure that returns the next number of the sequence of a store.
    func iterator(of store: ProbedStore<Int>) -> () async throws -> Int? {
      switch self {
      case .entries:
        var iterator = store.entries().makeAsyncIterator()
        return { try await iterator.next()?.value }
      case .keys:
        var iterator = store.keys().makeAsyncIterator()
        return { try await iterator.next()?.integer.map { Int($0) } }
      }
    }

    /// Returns all numbers of the sequence of a store.
    func values(
      of store: ProbedStore<Int>, in range: KeyRange = .all, order: ScanOrder = .ascending
    ) async throws -> [Int] {
      try await ScanSequenceTests.values(of: sequence(of: store, in: range, order: order))
    }
  }

  private static func values(of sequence: any AsyncSequence<Int, any Error>) async throws -> [Int] {
    var values: [Int] = []
    for try await value in sequence { values.append(value) }
    return values
  }

  @Test(arguments: Content.allCases, ScanOrder.allCases)
  func `visits every key once`(_ content: Content, _ order: ScanOrder) async throws {
    for count in [0, 1, 255, 256, 257, 511, 512, 513, 1_000] {
      let store = ProbedStore<Int>()
      try store.fill(0..<count)
      let expected = order == .ascending ? Array(0..<count) : (0..<count).reversed()
      #expect(try await content.values(of: store, order: order) == expected)
      // 256 at a time. After a full slice, there may be another one.
      #expect(store.operations == [StoreOperation](repeating: content.operation, count: count / 256 + 1))
    }
  }

  @Test(arguments: Content.allCases, ScanOrder.allCases)
  func `stays within its range`(_ content: Content, _ order: ScanOrder) async throws {
    let store = ProbedStore<Int>()
    try store.fill(0..<1_000)
    for (lower, upper) in [(100, 900), (0, 256), (256, 512), (999, 1_000), (500, 500), (600, 400)] {
      let range = StoreKey(integer: lower)..<StoreKey(integer: upper)
      let expected = lower < upper ? Array(lower..<upper) : []
      let values = try await content.values(of: store, in: range, order: order)
      #expect(values == (order == .ascending ? expected : expected.reversed()))
    }
  }

  @Test(arguments: Content.allCases) func `can be walked again`(_ content: Content) async throws {
    let store = ProbedStore<Int>()
    try store.fill(0..<300)
    let walk = content.sequence(of: store)
    #expect(try await ScanSequenceTests.values(of: walk).count == 300)
    try store.fill(300..<400)
    #expect(try await ScanSequenceTests.values(of: walk).count == 400)
  }

  @Test(arguments: Content.allCases, ScanOrder.allCases)
  func unchangedKeysAppearOnce(_ content: Content, _ order: ScanOrder) async throws {
    // Even numbers stay. Odd numbers come and go before, at and after the position of the walk, within its slices and
    // between.
    var random = SeededGenerator("unchangedKeysAppearOnce \(content) \(order)")
    let store = ProbedStore<Int>()
    let numbers = Array(stride(from: 0, to: 2_000, by: 2))
    try store.fill(numbers)
    var seen: [Int] = []
    for try await number in content.sequence(of: store, order: order) {
      seen.append(number)
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

  @Test(arguments: Content.allCases) func `ends if the rest is removed`(_ content: Content) async throws {
    let store = ProbedStore<Int>()
    try store.fill(0..<600)
    let next = content.iterator(of: store)
    for _ in 0..<256 { #expect(try await next() != nil) }
    try store.base.apply([.removeAll(.all)])
    for _ in 0..<3 { #expect(try await next() == nil) }
    try store.fill(0..<600)
    #expect(try await next() == nil)
  }

  @Test(arguments: Content.allCases) func `stopping early reads no further`(_ content: Content) async throws {
    let store = ProbedStore<Int>()
    try store.fill(0..<1_000)
    var seen = 0
    for try await _ in content.sequence(of: store) {
      seen += 1
      if seen == 300 { break }
    }
    #expect(store.operations.count == 2)
  }

  @Test(arguments: Content.allCases) func `an error ends the walk`(_ content: Content) async throws {
    let store = ProbedStore<Int> { _, index in
      if index == 1 { throw StoreError(.ioFailed, during: content.operation, message: "the disk is gone") }
    }
    try store.fill(0..<600)
    let next = content.iterator(of: store)
    for _ in 0..<256 { #expect(try await next() != nil) }
    await expectStoreError(.ioFailed) { try await next() }
    #expect(try await next() == nil)
    #expect(store.operations.count == 2)
  }

  @Test(arguments: Content.allCases)
  func `a cancelled task receives only what was read`(_ content: Content) async throws {
    let store = ProbedStore<Int>()
    try store.fill(0..<600)
    let seen = await Task {
      var seen = 0
      do {
        for try await _ in content.sequence(of: store) {
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

  @Test func `works on an existential`() async throws {
    let base = MemoryStore<Int>()
    let store: any DataStore<Int> = base
    for number in 0..<300 { try await store.setValue(number, forKey: StoreKey(integer: number)) }
    var (count, keyCount) = (0, 0)
    for try await entry in store.entries(in: .all) { count += entry.value == count ? 1 : 0 }
    for try await _ in store.keys() { keyCount += 1 }
    #expect((count, keyCount) == (300, 300))
    #expect(try await store.pages(size: 100).pageCount == 3)
    #expect(try await store.contains(StoreKey(integer: 7)))
    #expect(try await store[StoreKey(integer: 7)] == 7)
    #expect(try await store.update(StoreKey(integer: 7)) { $0.take() } == 7)
    try await store.removeAll()
    #expect(try await store.count() == 0)
  }

  @Test(arguments: Content.allCases) func `a closed store throws`(_ content: Content) async throws {
    let store = ProbedStore<Int>()
    store.base.close()
    await expectStoreError(.closed) { try await content.values(of: store) }
  }
}
