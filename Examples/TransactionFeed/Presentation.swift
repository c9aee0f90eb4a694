import ExampleSupport
import Larder
import LarderCache
import LarderCBOR
import LarderLMDB
import LarderMetrics

/// Runs the steps of the program and prints the result of each.
struct Presentation {
  let transactionCount: Int
  let accountCount: Int
  let seed: UInt64
  let visitCount: Int

  private let meter = StoreMeter(name: "feed", logger: nil)

  init(transactionCount: Int, accountCount: Int, seed: UInt64, visitCount: Int) {
    self.transactionCount = transactionCount
    self.accountCount = accountCount
    self.seed = seed
    self.visitCount = visitCount
  }

  /// Runs all steps.
  ///
  /// - Parameters:
  ///   - path: The folder of the store, to which transactions are added if there are too few.
  ///   - compares: A Boolean value that indicates whether to measure the naive way and a smaller feed as well.
  func run(path: String, compares: Bool) async throws {
    try await fill(path, count: transactionCount)
    let feed = try await open(path)
    try await showFirstPage(of: feed)
    try await visit(feed, path: path)
    if compares { try await compare(feed) }
    try await feed.store.close()
  }

  // MARK: Steps

  private func fill(_ path: String, count: Int) async throws {
    let feed = Feed(store: try await FeedStack.open(path: path).backend)
    let present = try await feed.store.count()
    if present < count {
      let start = ContinuousClock.now
      try await feed.add(TransactionHistory(count: count, accountCount: accountCount, seed: seed))
      let time = start.duration(to: .now)
      print(
        "Filled the store with \(TextFormat.count(count)) transactions of \(TextFormat.count(accountCount)) accounts in "
          + TextFormat.duration(time))
    } else {
      print("The store has \(TextFormat.count(present)) transactions already")
    }
    try await feed.store.close()
  }

  private func open(_ path: String) async throws -> Feed<FeedStack> {
    let start = ContinuousClock.now
    let feed = Feed(store: try await FeedStack.open(path: path))
    print("Opened it in \(TextFormat.duration(start.duration(to: .now)))\n")
    return feed
  }

  private func showFirstPage(of feed: Feed<FeedStack>) async throws {
    let start = ContinuousClock.now
    var reader = feed.reader(ofAccount: 1, pageSize: 50)
    guard let page = try await reader.next() else { return }
    let time = start.duration(to: .now)
    print("The newest transactions of account 1: \(TextFormat.duration(time)) to the first page of 50")
    print("\(page.table(first: 5))")
    if let next = page.next { print("The cursor of its second page, as text: \(next.text)") }
    print("")
  }

  private func visit(_ feed: Feed<FeedStack>, path: String) async throws {
    // Stores of one process share an environment. This one has the number of commits.
    let environment = try await LMDBEnvironment(path: path, createsIfMissing: false)
    let firstCommit = try await environment.statistics().lastTransaction
    let firstCount = try await feed.store.count()

    let start = ContinuousClock.now
    let visits = Visits(count: visitCount)
    let habits = VisitHabits(accountCount: accountCount, seed: seed)
    let arrivals = Arrivals(accountCount: accountCount)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await arrivals.run(into: feed) }
      try await visits.run(on: feed, habits: habits, meter: meter)
      group.cancelAll()
      try await group.waitForAll()
    }
    let time = start.duration(to: .now)

    print("\(TextFormat.count(visits.count)) visits in \(TextFormat.duration(time)), while new transactions arrived")
    print("\(times)")
    var table = TextTable(alignments: [.left, .right])
    table.append(["Details from the cache", TextFormat.percent(feed.store.statistics().hitRatio)])
    table.append(["Transactions that arrived", TextFormat.count(try await feed.store.count() - firstCount)])
    let commitCount = try await environment.statistics().lastTransaction - firstCommit
    table.append(["Commits that they shared", TextFormat.count(commitCount)])
    print("\(table)\n")
    try await environment.close()
  }

  /// The times that visitors waited.
  private var times: TextTable {
    var table = TextTable(alignments: [.left, .right, .right, .right])
    table.append(["", "count", "p50", "p99"])
    let report = meter.report()
    for (block, name) in [
      (MeasuredBlock.firstPage, "First page of a visit"), (MeasuredBlock.nextPage, "Next page, loaded ahead"),
      (MeasuredBlock.details, "Details of a transaction"),
    ] {
      guard let operation = report[block] else { continue }
      table.append([
        name, TextFormat.count(operation.count), TextFormat.duration(operation.median),
        TextFormat.duration(operation.percentile99),
      ])
    }
    return table
  }

  // MARK: Comparing

  private func compare(_ feed: Feed<FeedStack>) async throws {
    try await TemporaryFolder.with { folder in
      let comparison = Comparison(feed: feed, accountCount: accountCount)
      let total = TextFormat.count(try await feed.store.count())

      let smallCount = 10_000
      let smallFeed = Feed(store: try await FeedStack.open(path: "\(folder)/small.lmdb"))
      try await smallFeed.add(TransactionHistory(count: smallCount, accountCount: accountCount, seed: seed))
      let sizes = try await comparison.times(besides: smallFeed)
      print("Pages of 50 from feeds of different sizes, medians")
      print("\(ComparedTimes.table([sizes], ways: ("of \(TextFormat.count(smallCount))", "of \(total)")))\n")
      try await smallFeed.store.close()

      let naive = NaiveFeed(
        index: try await LMDBStore(path: "\(folder)/index.lmdb", codec: .cbor([[UInt8]].self)),
        transactions: feed.store.backend)
      try await naive.buildIndex(accountCount: accountCount)
      let ways = try await comparison.times(besides: naive)
      print("Compared with the naive way, an array of all keys under one key, medians")
      print("\(ComparedTimes.table(ways, ways: ("this feed", "naive")))\n")
      try await naive.index.close()
    }
  }
}
