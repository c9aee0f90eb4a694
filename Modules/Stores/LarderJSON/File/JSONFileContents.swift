import Larder
import Synchronization

/// The entries of a `JSONFileStore` as its readers see them: after every batch whose write has returned, and no other.
///
/// Only the store's ``JSONFileWriter`` changes them.
final class JSONFileContents: Sendable {
  private struct State {
    var entries = JSONEntries()
    var isClosed = false
  }

  private let state = Mutex(State())

  /// The running reads, which end when their values are decoded.
  private let reads = RunningOperations()

  /// Replaces all entries.
  func replace(_ entries: JSONEntries) {
    // Released outside of the lock, because releasing millions of entries takes time.
    var entries = entries
    state.withLock { swap(&$0.entries, &entries) }
  }

  /// An immutable snapshot of the entries.
  ///
  /// While the snapshot exists, the next change has to copy a part of it.
  var snapshot: JSONEntries {
    state.withLock { $0.entries }
  }

  /// Whether the store was closed.
  var isClosed: Bool {
    state.withLock { $0.isClosed }
  }

  /// Whether closing has begun, so that all other operations are refused.
  var isClosing: Bool { reads.isClosing }

  /// Performs a small read, then processes its result.
  ///
  /// Closing waits for both. Returns `nil` if closing has begun.
  ///
  /// - Parameters:
  ///   - body: A closure that reads while all other readers and the writer wait.
  ///   - use: A closure that processes the result.
  func read<Text: Sendable, Result>(
    _ body: (JSONEntries) throws -> Text, then use: (Text) throws -> Result
  ) rethrows -> Result? {
    guard reads.begin() else { return nil }
    defer { reads.end() }
    return try use(state.withLock { try body($0.entries) })
  }

  /// Reads from a ``snapshot``, so that only closing waits for it.
  ///
  /// Returns `nil` if closing has begun.
  func readSnapshot<Result>(_ body: (JSONEntries) throws -> Result) rethrows -> Result? {
    guard reads.begin() else { return nil }
    defer { reads.end() }
    return try body(snapshot)
  }

  /// Prevents new reads, and waits for running ones to end.
  func stopReading() async {
    await reads.close()
  }

  /// Returns the texts of several values from one consistent snapshot.
  func values(forKeys keys: [StoreKey]) -> [ArraySlice<UInt8>?] {
    state.withLock { state in keys.map { state.entries.map[$0] } }
  }

  /// Applies a batch.
  func apply(_ changes: [Change<ArraySlice<UInt8>>]) {
    var displaced: [ArraySlice<UInt8>] = []
    state.withLock { state in
      for change in changes {
        state.entries.map.apply(change, displacing: &displaced)
      }
    }
  }

  /// Removes all entries and marks the store as closed.
  func close() {
    state.withLock { state in
      state.isClosed = true
      state.entries = JSONEntries()
    }
  }
}

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

  var map = SortedMap<ArraySlice<UInt8>>()

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
    let hidden = holes.first { hole in
      let lower = max(hole.lowerBound, scanned.lowerBound)
      let upper = [hole.upperBound, scanned.upperBound].compactMap(\.self).min()
      return !KeyRange(from: lower, upTo: upper).isEmpty
    }
    if let hidden { throw Hidden(keys: hidden) }
  }

  /// Returns the entries with all values in a new text, so that no older text stays in memory.
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
