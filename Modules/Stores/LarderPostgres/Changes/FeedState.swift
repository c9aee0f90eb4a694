#if Postgres
import Larder

/// The position of a reader of the change feed, and what is new in each page that it reads.
///
/// Rows become visible in the order of their commits and not in that of their numbers. So a reader keeps its last snapshot,
/// and each row that was not visible in it is new. A transaction that stays open delays nothing but its own row.
struct FeedState: Sendable {
  /// The report of a page.
  enum News: Sendable, Equatable {
    /// The new rows, or an empty array if nothing was committed.
    case rows([FeedPage.Row])
    /// Rows may be missing, so anything may have changed.
    case everything
  }

  /// The page that was read last, without its rows, or `nil` before the first one.
  private(set) var position: FeedPosition?

  /// Takes a page that was read from the position.
  ///
  /// - Returns: The news. The first page reports nothing, and is where the reader begins.
  mutating func take(_ page: FeedPage) -> News {
    defer { position = page.position }
    guard let position else { return .rows([]) }
    let snapshot = position.snapshot
    // The numbers and rows of another server, or of one that has lost its rows in a crash, say nothing about those before.
    guard page.position.identity == position.identity, snapshot.end <= page.position.snapshot.end, page.isWhole,
      page.trimmedEnd <= snapshot.start
    else {
      return .everything
    }
    return .rows(
      page.rows.filter { !snapshot.shows($0.number) && page.position.snapshot.shows($0.number) })
  }
}

/// Where a reader of the change feed is.
struct FeedPosition: Sendable, Equatable {
  /// A text that tells the feed from that of another server, and from itself before a crash.
  var identity: String
  var snapshot: ServerSnapshot
}

/// An answer to a read of the change feed, of one snapshot.
struct FeedPage: Sendable {
  /// A key or a range that a transaction has changed.
  struct Row: Sendable, Equatable {
    var number: UInt64
    var store: String
    var change: StoreChange
  }

  var position: FeedPosition

  /// The number below which rows may have been removed.
  var trimmedEnd: UInt64

  var rows: [Row]

  /// A Boolean value that indicates whether the feed has a number that tells it from others.
  var isIdentified: Bool

  /// A Boolean value that indicates whether the page has all rows.
  var isWhole: Bool

  /// A Boolean value that indicates whether old rows are to be removed.
  var isDueForTrimming: Bool
}

/// A [snapshot](https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-PG-SNAPSHOT) of a server: the
/// transactions whose changes it shows.
struct ServerSnapshot: Sendable, Equatable {
  /// The number below which it shows every transaction.
  let start: UInt64
  /// The number from which it shows none.
  let end: UInt64
  /// The transactions between the two that were running.
  let running: [UInt64]

  /// Creates a snapshot from the server's text, such as `10:20:10,14`, or returns `nil` if the text is not one.
  init?(_ text: String) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 3, let start = UInt64(parts[0]), let end = UInt64(parts[1]), start <= end else { return nil }
    let numbers = parts[2].split(separator: ",")
    (self.start, self.end, running) = (start, end, numbers.compactMap { UInt64($0) })
    guard running.count == numbers.count else { return nil }
  }

  /// Returns whether the snapshot shows what a transaction has changed, if it was committed.
  func shows(_ number: UInt64) -> Bool {
    number < start || number < end && !running.contains(number)
  }
}
#endif
