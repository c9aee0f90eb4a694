import ArgumentParser
import Foundation
import Larder
import LarderMetrics
import LarderTesting
import Testing

@testable import TransactionFeed

@Suite("The feed")
struct FeedTests {
  @Test func `Transactions are newest first, by account, and each is on exactly one page`() async throws {
    let feed = Feed(store: MemoryStore<Transaction>())
    let history = Array(TransactionHistory(count: 1000, accountCount: 3, seed: 7))
    try await feed.add(history.reversed())
    for account in 1...3 {
      let expected = history.filter { $0.account == account }.sorted { $0.key > $1.key }
      #expect(expected.map(\.date) == expected.map(\.date).sorted(by: >))
      #expect(try await all(of: feed.reader(ofAccount: account, pageSize: 50)) == expected)
    }
    #expect(try await all(of: feed.reader(ofAccount: 4, pageSize: 50)) == [])
  }

  @Test func `New transactions neither move a row to another page nor show one twice`() async throws {
    let feed = Feed(store: MemoryStore<Transaction>())
    let history = Array(TransactionHistory(count: 500, accountCount: 1, seed: 7))
    try await feed.add(history)
    var reader = feed.reader(ofAccount: 1, pageSize: 20)
    var read: [Transaction] = []
    while let page = try await reader.next() {
      read += page.entries.map(\.value)
      try await Arrivals(accountCount: 1, taskCount: 3).run(into: feed, count: 5)
    }
    #expect(read == history.reversed())
    #expect(try await feed.store.count() == 500 + 25 * 5)
    // They are at the top for the next reader.
    var next = feed.reader(ofAccount: 1, pageSize: 125)
    let newest = try await next.next()?.entries.map(\.value) ?? []
    #expect(newest.count == 125 && Set(newest).isDisjoint(with: history))
  }

  @Test func `The next page is loaded before it is requested`() async throws {
    let store = MemoryStore<Transaction>().faulty()
    let feed = Feed(store: store)
    try await feed.add(TransactionHistory(count: 100, accountCount: 1, seed: 7))
    store.schedule(.suspension(), on: .entries, number: 2)
    var reader = feed.reader(ofAccount: 1, pageSize: 60)
    #expect(try await reader.next()?.entries.count == 60)
    try await store.waitForSuspended(of: .entries)
    store.resume()
    #expect(try await reader.next()?.entries.count == 40)
    #expect(try await reader.next() == nil)
  }

  @Test func `If loading ahead fails, the reader gets the error, and the same page when it asks again`() async throws {
    let store = MemoryStore<Transaction>().faulty()
    let feed = Feed(store: store)
    try await feed.add(TransactionHistory(count: 100, accountCount: 1, seed: 7))
    store.schedule(.error(.ioFailed), on: .entries, number: 2)
    var reader = feed.reader(ofAccount: 1, pageSize: 60)
    _ = try await reader.next()
    do {
      _ = try await reader.next()
      Issue.record("the error was lost")
    } catch let error as StoreError {
      #expect(error.code == .ioFailed)
    }
    #expect(try await reader.next()?.entries.count == 40)
  }

  @Test func `The cursor as text leads to the next page in another reader; other text is refused`() async throws {
    let feed = Feed(store: MemoryStore<Transaction>())
    try await feed.add(TransactionHistory(count: 100, accountCount: 1, seed: 7))
    let pages = feed.pages(ofAccount: 1, size: 30)
    let text = try await #require(pages.page().next).text
    #expect(try PageCommand.parse(["--store", "feed", "--after", text]).after?.text == text)
    var reader = feed.reader(ofAccount: 1, pageSize: 30, from: .after(try PageCursor(text)))
    let expected = try await pages.starting(after: PageCursor(text)).page()
    #expect(try await reader.next() == expected)
    for refused in ["", "x", text + "A", String(text.dropFirst()), text.replacing("1d.", with: "1x.")] {
      #expect(throws: (any Error).self) { try PageCommand.parse(["--store", "feed", "--after", refused]) }
    }
  }

  @Test func `The naive way shows the same pages`() async throws {
    let store = MemoryStore<Transaction>()
    let feed = Feed(store: store)
    try await feed.add(TransactionHistory(count: 300, accountCount: 2, seed: 7))
    let naive = NaiveFeed(index: MemoryStore<[[UInt8]]>(), transactions: store)
    try await naive.buildIndex(accountCount: 2)
    var maker = TransactionMaker(seed: 8)
    try await naive.add(maker.transaction(ofAccount: 2, on: .now))
    for account in 1...2 {
      var reader = feed.reader(ofAccount: account, pageSize: 40)
      for number in 0...4 {
        let page = try await reader.next()?.entries.map(\.value) ?? []
        #expect(try await naive.page(number, ofAccount: account, size: 40) == page)
      }
    }
  }

  @Test func `Visits are measured, and find the details of every row that they open`() async throws {
    let feed = Feed(store: MemoryStore<Transaction>())
    try await feed.add(TransactionHistory(count: 400, accountCount: 2, seed: 7))
    let meter = StoreMeter(name: "feed", logger: nil)
    // 200 transactions of each account are 4 pages.
    let visits = Visits(count: 3, pagesPerVisit: 10, rowsOpenedPerPage: 2, readingTime: .zero)
    try await visits.run(on: feed, habits: VisitHabits(accountCount: 2, seed: 1), meter: meter)
    let report = meter.report()
    // A reader requests one page after the last.
    #expect(report[MeasuredBlock.firstPage]?.count == 3)
    #expect(report[MeasuredBlock.nextPage]?.count == 3 * 4)
    #expect(report[MeasuredBlock.details]?.count == 3 * 4 * 2)
  }

  private func all(of reader: FeedReader) async throws -> [Transaction] {
    var reader = reader
    var all: [Transaction] = []
    while let page = try await reader.next() { all += page.entries.map(\.value) }
    return all
  }
}
