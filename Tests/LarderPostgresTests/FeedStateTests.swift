#if Postgres
import Larder
import LarderTesting
import Testing

@testable import LarderPostgres

/// The rows that a reader of the change feed reports, without a server.
@Suite struct FeedStateTests {
  private static func page(
    _ snapshot: String, _ numbers: [UInt64] = [], identity: String = "1", trimmedEnd: UInt64 = 0, isWhole: Bool = true
  ) throws -> FeedPage {
    FeedPage(
      position: FeedPosition(identity: identity, snapshot: try #require(ServerSnapshot(snapshot))),
      trimmedEnd: trimmedEnd,
      rows: numbers.map { FeedPage.Row(number: $0, store: "users", change: .key(StoreKey("\($0)"))) },
      isIdentified: true, isWhole: isWhole, isDueForTrimming: false)
  }

  /// Takes pages, and returns the numbers that each reports, or `nil` for everything.
  private static func numbers(of pages: [FeedPage]) -> [[UInt64]?] {
    var state = FeedState()
    return pages.map { page in
      guard case .rows(let rows) = state.take(page) else { return nil }
      return rows.map(\.number)
    }
  }

  @Test func `the first page reports nothing`() throws {
    #expect(Self.numbers(of: [try Self.page("10:20:10,14", [5, 12, 14, 19])]) == [[]])
  }

  /// The transaction 10 stays open, and 14 ends after 15.
  @Test func `rows are reported when they become visible`() throws {
    let pages = [
      try Self.page("10:14:10"), try Self.page("10:16:10,14", [15]), try Self.page("10:17:10", [14, 16]),
      try Self.page("17:17:", [10]), try Self.page("17:17:"),
    ]
    #expect(Self.numbers(of: pages) == [[], [15], [14, 16], [10], []])
  }

  @Test func `rows of an earlier snapshot are not reported again`() throws {
    let pages = [try Self.page("10:10:"), try Self.page("10:13:10", [11, 12]), try Self.page("13:13:", [10, 11, 12])]
    #expect(Self.numbers(of: pages) == [[], [11, 12], [10]])
  }

  /// Those of a database that was restored from a dump have numbers that the server has not assigned.
  @Test func `rows beyond the snapshot are not reported`() throws {
    #expect(Self.numbers(of: [try Self.page("10:10:"), try Self.page("11:11:", [10, 4000])]) == [[], [10]])
  }

  @Test(arguments: [
    // Another server, or the same one after a crash.
    (identity: "2", snapshot: "12:12:", trimmedEnd: UInt64(0), isWhole: true),
    // One that was set back.
    (identity: "1", snapshot: "9:9:", trimmedEnd: 0, isWhole: true),
    // Rows that the reader has not seen may have been removed.
    (identity: "1", snapshot: "40:40:", trimmedEnd: 11, isWhole: true),
    (identity: "1", snapshot: "40:40:", trimmedEnd: 0, isWhole: false),
  ])
  func `a gap is reported as everything`(identity: String, snapshot: String, trimmedEnd: UInt64, isWhole: Bool) throws {
    let pages = [
      try Self.page("10:10:"),
      try Self.page(snapshot, [11], identity: identity, trimmedEnd: trimmedEnd, isWhole: isWhole),
      // It continues from there.
      try Self.page("50:50:", [45], identity: identity, trimmedEnd: trimmedEnd),
    ]
    #expect(Self.numbers(of: pages) == [[], nil, [45]])
  }

  /// The removed rows had been visible before.
  @Test func `trimming of reported rows is no gap`() throws {
    let pages = [try Self.page("10:20:10,15"), try Self.page("16:30:16", [15, 20], trimmedEnd: 10)]
    #expect(Self.numbers(of: pages) == [[], [15, 20]])
  }

  @Test(arguments: ["", "10", "10:20", "20:10:", "a:20:", "10:20:x", "10:20:10,-3", "10:20:1:2"])
  func `other text is no snapshot`(_ text: String) {
    #expect(ServerSnapshot(text) == nil)
  }

  /// Random transactions: each commit that a page could show is reported exactly once.
  @Test func `every commit is reported once`() throws {
    let seed = SeededGenerator.seedOfProcess
    for round in 0..<200 {
      var generator = SeededGenerator(seed: seed, purpose: "change feed \(round)")
      var (next, running, unseen, state): (UInt64, Set<UInt64>, Set<UInt64>, FeedState) = (10, [], [], FeedState())
      var (reported, committed): ([UInt64], [UInt64]) = ([], [])
      _ = state.take(try Self.page("10:10:"))
      for _ in 0..<60 {
        switch Int.random(in: 0..<4, using: &generator) {
        case 0:
          running.insert(next)
          next += 1
        case 1:
          if let ended = running.sorted().randomElement(using: &generator) {
            running.remove(ended)
            // Some are rolled back.
            if Bool.random(using: &generator) {
              committed.append(ended)
              unseen.insert(ended)
            }
          }
        default:
          let numbers = running.sorted()
          let text = "\(numbers.first ?? next):\(next):\(numbers.map(String.init).joined(separator: ","))"
          // A page may also have rows that were reported before.
          let page = try Self.page(text, unseen.sorted() + committed.prefix(2))
          guard case .rows(let rows) = state.take(page) else {
            Issue.record("a gap with LARDER_SEED=\(seed)")
            return
          }
          for row in rows where !reported.contains(row.number) || unseen.contains(row.number) {
            reported.append(row.number)
            unseen.remove(row.number)
          }
          #expect(Set(rows.map(\.number)).isSubset(of: committed), "LARDER_SEED=\(seed)")
        }
      }
      #expect(Set(reported).count == reported.count && unseen.isDisjoint(with: reported), "LARDER_SEED=\(seed)")
      #expect(Set(reported).union(unseen) == Set(committed), "LARDER_SEED=\(seed)")
    }
  }
}
#endif
