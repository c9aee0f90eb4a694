import Larder
import LarderTesting
import TestSupport
import Testing

@Suite struct StorePagesTests {
  private static func store(_ count: Int) throws -> ProbedStore<Int> {
    let store = ProbedStore<Int>()
    try store.fill(0..<count)
    return store
  }

  private static func values(of pages: StorePages<Int>) async throws -> [[Int]] {
    var values: [[Int]] = []
    for try await page in pages { values.append(page.entries.map(\.value)) }
    return values
  }

  @Test(arguments: [0, 1, 2, 3, 4, 5, 6, 7, 40, 41], ScanOrder.allCases)
  func `pages contain every entry once`(_ count: Int, _ order: ScanOrder) async throws {
    let store = try StorePagesTests.store(count)
    let numbers = order == .ascending ? Array(0..<count) : (0..<count).reversed()
    for size in [1, 2, 3, count, count + 1, 1_000, .max - 1, .max] where size > 0 {
      let expected = stride(from: 0, to: count, by: size == .max ? .max - 1 : size).map { start in
        Array(numbers[start..<min(count, start.addingReportingOverflow(size).overflow ? count : start + size)])
      }
      let pages = store.pages(size: size, order: order)
      #expect(try await StorePagesTests.values(of: pages) == expected)
      #expect(try await pages.pageCount == expected.count)
    }
    #expect(try await StorePagesTests.values(of: store.pages(order: order)).map(\.count).max() ?? 0 == min(count, 20))
  }

  @Test func `the last page has no next`() async throws {
    let store = try StorePagesTests.store(6)
    let pages = store.pages(size: 3)
    let first = try await pages.page()
    #expect(first.next == PageCursor(after: StoreKey(integer: 2)))
    let second = try await pages.starting(after: first.next).page()
    #expect(second.entries.map(\.value) == [3, 4, 5])
    #expect(second.next == nil)
    // A full walk reads no page needlessly.
    let before = store.operations.count
    _ = try await StorePagesTests.values(of: pages)
    #expect(store.operations.dropFirst(before).count { $0 == .entries } == 2)
  }

  @Test func `an empty range has one empty page but a walk has none`() async throws {
    let store = try StorePagesTests.store(3)
    let pages = store.pages(of: .prefix("nothing"))
    let page = try await pages.page()
    #expect(page.entries.isEmpty)
    #expect(page.next == nil)
    #expect(try await StorePagesTests.values(of: pages) == [])
    #expect(try await pages.pageCount == 0)
  }

  @Test func `a cursor from text resumes in another store`() async throws {
    let text = try #require(try await StorePagesTests.store(10).pages(size: 4).page().next?.text)
    let another = try StorePagesTests.store(10)
    let pages = another.pages(size: 4)
    #expect(try await pages.page(after: PageCursor(text)).entries.map(\.value) == [4, 5, 6, 7])
    #expect(try await StorePagesTests.values(of: pages.starting(after: PageCursor(text))) == [[4, 5, 6, 7], [8, 9]])
    #expect(
      try await StorePagesTests.values(of: pages.starting(after: nil)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]])
    #expect(try await pages.starting(after: PageCursor(text)).pageCount == 3)
    // A page of another size may continue from this cursor.
    #expect(try await another.pages(size: 2).page(after: PageCursor(text)).entries.map(\.value) == [4, 5])
  }

  @Test func `a cursor never leaves the range`() async throws {
    let store = try StorePagesTests.store(10)
    let range = KeyRange(from: StoreKey(integer: 3), upTo: StoreKey(integer: 6))
    for (after, ascending, descending) in [
      (StoreKey(integer: 0), [3, 4, 5], []), (StoreKey(integer: 3), [4, 5], []), (StoreKey(integer: 4), [5], [3]),
      (StoreKey(integer: 5), [], [4, 3]), (StoreKey(integer: 9), [], [5, 4, 3]), ("", [3, 4, 5], []),
      (StoreKey(bytes: [0xFF]), [], [5, 4, 3]),
    ] as [(StoreKey, [Int], [Int])] {
      let up = try await store.pages(of: range).page(after: PageCursor(after: after))
      #expect(up.entries.map(\.value) == ascending)
      let down = try await store.pages(of: range, order: .descending).page(
        after: PageCursor(after: after, order: .descending))
      #expect(down.entries.map(\.value) == descending)
    }
  }

  @Test func `a cursor of the other direction is refused`() async throws {
    let store = try StorePagesTests.store(3)
    for order in ScanOrder.allCases {
      let cursor = PageCursor(after: StoreKey(integer: 1), order: order == .ascending ? .descending : .ascending)
      let error = await expectStoreError(.invalidArgument) { try await store.pages(order: order).page(after: cursor) }
      #expect(error?.store == "probed")
      await expectStoreError(.invalidArgument) {
        try await StorePagesTests.values(of: store.pages(order: order).starting(after: cursor))
      }
    }
  }

  @Test(arguments: [0, -1, Int.min]) func `a page has at least one entry`(_ size: Int) async throws {
    let store = try StorePagesTests.store(3)
    await expectStoreError(.invalidArgument) { try await store.pages(size: size).page() }
    await expectStoreError(.invalidArgument) { try await store.pages(size: size).pageCount }
    await expectStoreError(.invalidArgument) { try await StorePagesTests.values(of: store.pages(size: size)) }
    #expect(store.operations.isEmpty)
  }

  @Test(arguments: ScanOrder.allCases) func concurrentChangesMoveNoEntry(_ order: ScanOrder) async throws {
    // Even numbers stay throughout. Odd numbers come and go before, at and after every position.
    var random = SeededGenerator("concurrentChangesMoveNoEntry \(order)")
    let store = ProbedStore<Int>()
    try store.fill(stride(from: 0, to: 100, by: 2))
    var seen: [Int] = []
    for try await page in store.pages(size: 7, order: order) {
      seen += page.entries.map(\.value)
      for _ in 0..<20 {
        let odd = random.integer(in: 0...49) * 2 + 1
        try store.base.apply([
          random.integer(in: 0...1) == 0 ? .set(StoreKey(integer: odd), odd) : .remove(StoreKey(integer: odd))
        ])
      }
    }
    let even = seen.filter { $0.isMultiple(of: 2) }
    #expect(
      even
        == (order == .ascending
          ? Array(stride(from: 0, to: 100, by: 2)) : stride(from: 98, through: 0, by: -2).map { $0 }))
    #expect(Set(seen).count == seen.count)
  }

  @Test func `the entry at the cursor may be removed`() async throws {
    let store = try StorePagesTests.store(6)
    let pages = store.pages(size: 2)
    let next = try await pages.page().next
    try store.base.apply([.remove(StoreKey(integer: 1)), .remove(StoreKey(integer: 2))])
    #expect(try await pages.starting(after: next).page().entries.map(\.value) == [3, 4])
  }

  @Test func `a walk ends if the rest is removed`() async throws {
    let store = try StorePagesTests.store(4)
    var iterator = store.pages(size: 2).makeAsyncIterator()
    #expect(try await iterator.next()?.entries.count == 2)
    try store.base.apply([.removeAll(.all)])
    #expect(try await iterator.next() == nil)
    try store.fill(0..<4)
    #expect(try await iterator.next() == nil)
  }

  @Test func `an error ends the walk`() async throws {
    let store = ProbedStore<Int> { _, index in
      if index == 2 { throw StoreError(.ioFailed, during: .entries, message: "the disk is gone") }
    }
    try store.fill(0..<6)
    var iterator = store.pages(size: 2).makeAsyncIterator()
    #expect(try await iterator.next()?.entries.count == 2)
    await #expect(throws: StoreError.self) { try await iterator.next() }
    #expect(try await iterator.next() == nil)
    #expect(store.operations == [.entries, .keys, .entries])
  }

  @Test func `a cancelled task reads no further`() async throws {
    let store = try StorePagesTests.store(6)
    let seen = await Task {
      var seen: [Int] = []
      do {
        for try await page in store.pages(size: 2) {
          seen += page.entries.map(\.value)
          withUnsafeCurrentTask { $0?.cancel() }
        }
        Issue.record("the walk continued")
      } catch {
        #expect(error is CancellationError)
      }
      return seen
    }.value
    #expect(seen == [0, 1])
    #expect(store.operations == [.entries, .keys])
  }
}
