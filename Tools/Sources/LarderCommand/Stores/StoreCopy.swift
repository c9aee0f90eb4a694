import Larder

/// Puts the entries of one store into another, a page at a time, and keeps count.
///
/// What stands in the other store already is not written again, so that a copy which was cut short is completed by
/// another one.
struct StoreCopy {
  private let pageSize: Int

  /// How many entries were written.
  private(set) var copied = 0

  /// How many entries were there already, with equal values.
  private(set) var equal = 0

  /// How many entries of the source were dealt with.
  var visited: Int { copied + equal }

  /// Makes a copy that has not begun.
  ///
  /// - Parameter pageSize: How many entries are read, compared and written at once, at least 1.
  init(pageSize: Int) {
    self.pageSize = pageSize
  }

  /// Goes through the source.
  ///
  /// - Parameters:
  ///   - range: The keys to copy.
  ///   - source: Where the entries come from.
  ///   - destination: Where they go. Other keys in it stay.
  ///   - pageWasCopied: Called after each page.
  ///   - isWanted: Whether an entry with such a value is to be copied; all are unless given.
  /// - Throws: What the stores throw; the pages before it are copied.
  mutating func run<Value: Equatable>(
    in range: KeyRange = .all, from source: some DataStore<Value>, to destination: some DataStore<Value>,
    pageWasCopied: (StoreCopy) -> Void = { _ in },
    where isWanted: (Value) -> Bool = { _ in true }
  ) async throws {
    for try await page in source.pages(of: range, size: pageSize) {
      let entries = page.entries.filter { isWanted($0.value) }
      let present = try await destination.values(forKeys: entries.map(\.key))
      var batch = ChangeBatch<Value>()
      for (entry, value) in zip(entries, present) where entry.value != value {
        batch.setValue(entry.value, forKey: entry.key)
      }
      if !batch.isEmpty { try await destination.apply(batch) }
      copied += batch.count
      equal += entries.count - batch.count
      pageWasCopied(self)
    }
  }

  /// What was done, in one line.
  ///
  /// - Parameter elapsed: How long it took.
  func summary(elapsed: Duration) -> String {
    let rest = equal == 1 ? "1 was equal already" : "\(equal) were equal already"
    return "copied \(EntryCount.text(copied)) in \(elapsed.inSeconds), \(rest)"
  }
}
