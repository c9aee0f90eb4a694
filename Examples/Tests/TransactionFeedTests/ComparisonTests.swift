import ExampleSupport
import Larder
import Testing

@testable import TransactionFeed

@Suite("The comparison")
struct ComparisonTests {
  @Test("A comparison measures a page, a later page and an addition in both ways, and a page of both sizes")
  func measures() async throws {
    let store = MemoryStore<Transaction>()
    let feed = Feed(store: store)
    try await feed.add(TransactionHistory(count: 400, accountCount: 2, seed: 7))
    let naive = NaiveFeed(index: MemoryStore<[[UInt8]]>(), transactions: MemoryStore<Transaction>())
    let comparison = Comparison(feed: feed, accountCount: 2, pageSize: 10, rounds: 3, naiveRounds: 2)
    let lines = try await comparison.times(besides: naive)
    #expect(lines.map(\.name) == ["First page", "Page 11", "Addition"])
    #expect(lines.allSatisfy { $0.time > .zero && $0.otherTime > .zero })
    // Each of the additions is in the right position.
    #expect(try store.count(in: .all) == 402)
    #expect(try await naive.page(0, ofAccount: 1, size: 10).count == 2)

    let sizes = try await comparison.times(besides: Feed(store: MemoryStore()))
    #expect(sizes.time > .zero && sizes.otherTime > .zero)
  }

  @Test("The factor is the ratio of the other way's time")
  func factor() {
    let line = ComparedTimes(name: "A page", time: .microseconds(8), otherTime: .milliseconds(10))
    #expect(line.factor == 1250)
    let table = ComparedTimes.table([line], ways: ("this", "other")).description
    #expect(
      table == """
                    this    other  factor
          A page  8.0 µs  10.0 ms   1,250
        """)
  }

  @Test func `Times and factors are formatted as readable text`() {
    #expect(TextFormat.duration(.nanoseconds(600)) == "0.6 µs")
    #expect(TextFormat.duration(.microseconds(999)) == "999.0 µs")
    #expect(TextFormat.duration(.milliseconds(1)) == "1.0 ms")
    #expect(TextFormat.duration(.seconds(12)) == "12.0 s")
    #expect(TextFormat.factor(1.194) == "1.19")
    #expect(TextFormat.factor(8265.6) == "8,266")
    #expect(TextFormat.percent(0.8049) == "80.5 %")
    #expect(TextFormat.amount(cents: -1204) == "-12.04")
  }
}
