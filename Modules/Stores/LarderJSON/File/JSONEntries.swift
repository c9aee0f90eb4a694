import Larder

/// The entries of a `JSONFileStore` as text, with the holes that damage has left in them.
///
/// Only a store that was opened for reading has holes. A key in a hole may or may not exist, so that it is never
/// reported as missing, and no scan passes over a hole.
struct JSONEntries: Sendable {
  /// Says that damage hides what was asked for.
  struct Hidden: UnreadableKeysError, CustomStringConvertible {
    let keys: KeyRange
    var description: String { "a damaged part of the files hides what was asked for" }
  }

  var map = SortedMap<ArraySlice<UInt8>>()

  /// The keys of which nothing is known, in order.
  var holes: [KeyRange] = []

  /// The text of a value, or `nil` if the key is missing.
  ///
  /// - Throws: ``Hidden``.
  func value(forKey key: StoreKey) throws -> ArraySlice<UInt8>? {
    if let value = map[key] { return value }
    if let hole = holes.first(where: { $0.contains(key) }) { throw Hidden(keys: hole) }
    return nil
  }

  /// Makes sure that no hole lies in what a scan has gone through.
  ///
  /// - Parameters:
  ///   - range: The range that was asked for.
  ///   - limit: The most keys that the scan was to find.
  ///   - count: How many it found.
  ///   - last: The last key that it found.
  ///   - order: The direction.
  /// - Throws: ``Hidden``.
  func checkScan(
    of range: KeyRange, limit: Int, found count: Int, upTo last: StoreKey?, order: ScanOrder
  ) throws {
    guard !holes.isEmpty, limit > 0 else { return }
    var scanned = range
    if count == limit, let last { scanned = order == .ascending ? range.before(last) : range.after(last) }
    let hidden = holes.first { hole in
      let lower = max(hole.lowerBound, scanned.lowerBound)
      let upper = [hole.upperBound, scanned.upperBound].compactMap(\.self).min()
      return !KeyRange(from: lower, upTo: upper).isEmpty
    }
    if let hidden { throw Hidden(keys: hidden) }
  }

  /// The entries with all values in one text of their own, so that no older text stays in memory for them.
  func compacted() -> SortedMap<ArraySlice<UInt8>> {
    var text: [UInt8] = []
    var size = 0
    map.forEach { _, value in size += value.count }
    text.reserveCapacity(size)
    map.forEach { _, value in text.append(contentsOf: value) }
    var start = 0
    return map.mapValues { value in
      defer { start += value.count }
      return text[start..<start + value.count]
    }
  }
}
