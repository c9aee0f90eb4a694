import Larder

/// Puts into another store whatever can be read of a damaged one, and tells what cannot.
///
/// It uses nothing but scans. If a page cannot be read it is asked for in smaller pieces, down to single entries, so that
/// everything before the damage is copied; then it goes on behind the keys that the error names.
struct StoreSalvage {
  /// The most entries that are read and written at once.
  private static let largestPage = 1000

  /// How many entries were copied.
  private(set) var copied = 0

  /// How many keys and ranges could not be read.
  private(set) var unreadable = 0

  /// Goes through the source.
  ///
  /// - Parameters:
  ///   - source: Where the entries come from.
  ///   - destination: Where they go.
  ///   - report: Gets each key or range that cannot be read, and why. A range is all that is known of its keys.
  /// - Throws: What the destination and `report` throw; what the source throws, other than damage.
  mutating func run<Value>(
    from source: some DataStore<Value>, to destination: some DataStore<Value>,
    report: (KeyRange, StoreError) throws -> Void
  ) async throws {
    var remaining: KeyRange? = .all
    var size = StoreSalvage.largestPage
    while let range = remaining {
      let page: [StoreEntry<Value>]
      do {
        page = try await source.entries(in: range, limit: size, order: .ascending)
      } catch let error as StoreError where error.code == .corrupted {
        guard size == 1 else {
          size /= 2
          continue
        }
        let lost = StoreSalvage.lostKeys(of: error, from: range)
        try report(lost, error)
        unreadable += 1
        remaining = lost.upperBound.map { $0... }
        continue
      }
      if !page.isEmpty {
        try await destination.apply(ChangeBatch(page.map { .set($0.key, $0.value) }))
      }
      copied += page.count
      remaining = page.count < size ? nil : page.last.map { range.after($0.key) }
      size = min(StoreSalvage.largestPage, size * 2)
    }
  }

  /// The keys that an error says cannot be read, of those from the beginning of a range on.
  private static func lostKeys(of error: StoreError, from range: KeyRange) -> KeyRange {
    let named = (error.underlying as? any UnreadableKeysError)?.keys ?? error.key.map { KeyRange.only($0) }
    // An error that names no keys, or only some that are behind, leaves no place to go on at.
    guard let named, named.upperBound.map({ range.lowerBound < $0 }) ?? true else { return range }
    return KeyRange(from: max(range.lowerBound, named.lowerBound), upTo: named.upperBound)
  }

  /// What was done, in one line.
  var summary: String {
    let lost =
      switch unreadable {
      case 0: "everything could be read"
      case 1: "1 key or range could not be read"
      default: "\(unreadable) keys or ranges could not be read"
      }
    return "copied \(EntryCount.text(copied)), \(lost)"
  }
}
