import Larder

/// The entries of a `JSONFileStore` as text, with the holes that damage has left.
///
/// Only a read-only store has holes. A key in a hole may or may not exist. It is therefore never reported as missing,
/// and no scan skips a hole.
struct JSONEntries: Sendable {
  /// The error of a read of keys that damage hides.
  struct Hidden: UnreadableKeysError, CustomStringConvertible {
    let keys: KeyRange
    var description: String { "the requested entries are in a damaged part of the files" }
  }

  var map = SortedEntries<ArraySlice<UInt8>>()

  /// The ranges of keys whose entries are unknown, in order.
  var holes: [KeyRange] = []

  /// Returns the text of a value, or `nil` if the key is missing.
  ///
  /// - Throws: ``Hidden``.
  func value(forKey key: StoreKey) throws -> ArraySlice<UInt8>? {
    if let value = map[key] { return value }
    if let hole = holes.first(where: { $0.contains(key) }) { throw Hidden(keys: hole) }
    return nil
  }

  /// Throws an error if the scanned part of a range contains a hole.
  ///
  /// - Parameters:
  ///   - range: The requested range.
  ///   - limit: The maximum number of keys.
  ///   - count: The number of keys found.
  ///   - last: The last key found.
  ///   - order: The order of the scan.
  /// - Throws: ``Hidden``.
  func checkScan(
    of range: KeyRange, limit: Int, found count: Int, upTo last: StoreKey?, order: ScanOrder
  ) throws {
    guard !holes.isEmpty, limit > 0 else { return }
    var scanned = range
    if count == limit, let last { scanned = order == .ascending ? range.before(last) : range.after(last) }
    if let hidden = holes.first(where: { $0.overlaps(scanned) }) { throw Hidden(keys: hidden) }
  }
}
