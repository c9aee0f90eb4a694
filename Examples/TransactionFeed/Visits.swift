import Larder
import LarderMetrics

/// Visits to the feed, one after another.
///
/// A visitor reads an account, page by page, and opens some of the rows.
struct Visits {
  var count: Int
  var pagesPerVisit = 5
  var rowsOpenedPerPage = 5
  var pageSize = 50

  /// How long a visitor reads a page: far less than a person, but enough to load the next one.
  var readingTime = Duration.milliseconds(1)

  /// Creates visits.
  ///
  /// - Parameters:
  ///   - feed: The feed to read.
  ///   - habits: The habits of the visitors.
  ///   - meter: The meter of the first page of each visit, the following pages, and the opened rows.
  func run(
    on feed: Feed<some DataStore<Transaction>>, habits: VisitHabits, meter: StoreMeter
  ) async throws {
    var habits = habits
    for _ in 0..<count {
      var reader = feed.reader(ofAccount: habits.account(), pageSize: pageSize)
      for number in 0..<pagesPerVisit {
        let block = number == 0 ? MeasuredBlock.firstPage : MeasuredBlock.nextPage
        guard let page = try await meter.measure(block, { try await reader.next() }) else { break }
        for row in habits.rows(rowsOpenedPerPage, of: page.entries.count) {
          let key = page.entries[row].key
          let details = try await meter.measure(MeasuredBlock.details) { try await feed.transaction(forKey: key) }
          guard details != nil else { throw MissingTransaction(key: key) }
        }
        try await Task.sleep(for: readingTime)
      }
    }
  }
}
