import ExampleSupport
import Foundation
import Larder
import LarderMetrics

/// Compares a feed with the naive one, and with a feed of far fewer transactions.
struct Comparison<Store: DataStore<Transaction>> {
  let feed: Feed<Store>
  let accountCount: Int
  var pageSize = 50

  /// The number of measurements of the feed.
  var rounds = 2000

  /// The number of measurements of the naive feed, which is slow.
  var naiveRounds = 5

  /// Compares the feed with the naive one: the first page, a later one, and an addition.
  func times(
    besides naive: NaiveFeed<some DataStore<[[UInt8]]>, some DataStore<Transaction>>
  ) async throws -> [ComparedTimes] {
    let laterPage = 10
    let account = 1
    let beforeLaterPage = try await start(ofPage: laterPage, account: account)
    var maker = TransactionMaker(seed: .random(in: 0 ... .max))
    let pages = feed.pages(ofAccount: account, size: pageSize)

    let first = try await compare("First page", rounds: rounds) {
      try await pages.page()
    } other: {
      try await naive.page(0, ofAccount: account, size: pageSize)
    }
    let later = try await compare("Page \(laterPage + 1)", rounds: rounds) {
      try await pages.page(from: beforeLaterPage)
    } other: {
      try await naive.page(laterPage, ofAccount: account, size: pageSize)
    }
    let addition = try await compare("Addition", rounds: naiveRounds) {
      try await feed.add(maker.transaction(ofAccount: account, on: .now))
    } other: {
      try await naive.add(maker.transaction(ofAccount: account, on: .now))
    }
    return [first, later, addition]
  }

  /// Measures pages that begin anywhere, alternately in this feed and in another with fewer transactions.
  func times(besides smaller: Feed<some DataStore<Transaction>>) async throws -> ComparedTimes {
    let meter = StoreMeter(name: "page", logger: nil)
    var generator = SplitMix64(seed: 1)
    for round in 0..<rounds {
      let account = 1 + round % accountCount
      let start = PageStart.after(
        Transaction.cursor(ofAccount: account, before: TransactionHistory.date(using: &generator)))
      let pages = feed.pages(ofAccount: account, size: pageSize)
      let pagesOfSmaller = smaller.pages(ofAccount: account, size: pageSize)
      _ = try await meter.measure("smaller") { try await pagesOfSmaller.page(from: start) }
      _ = try await meter.measure("this") { try await pages.page(from: start) }
    }
    let report = meter.report()
    return ComparedTimes(
      name: "A page anywhere", time: report["smaller"]?.median ?? .zero, otherTime: report["this"]?.median ?? .zero)
  }

  /// Returns the random start of a page of an account.
  private func start(ofPage number: Int, account: Int) async throws -> PageStart {
    var reader = feed.reader(ofAccount: account, pageSize: pageSize)
    var start = PageStart.beginning
    for _ in 0..<number {
      guard let next = try await reader.next()?.next else { break }
      start = .after(next)
    }
    return start
  }

  /// Measures the same operation in two ways, the other one ``naiveRounds`` times.
  private func compare<Result, OtherResult>(
    _ name: String, rounds: Int, _ body: () async throws -> Result, other: () async throws -> OtherResult
  ) async throws -> ComparedTimes {
    let meter = StoreMeter(name: name, logger: nil)
    for _ in 0..<rounds { _ = try await meter.measure("this", body) }
    for _ in 0..<naiveRounds { _ = try await meter.measure("other", other) }
    let report = meter.report()
    return ComparedTimes(
      name: name, time: report["this"]?.median ?? .zero, otherTime: report["other"]?.median ?? .zero)
  }
}
