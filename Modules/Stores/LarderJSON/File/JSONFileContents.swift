import Larder
import Synchronization

/// What a `JSONFileStore` holds, as its readers see it: every batch whose write has returned, and no other.
///
/// Only the store's ``JSONFileWriter`` changes it.
final class JSONFileContents: Sendable {
  private struct State {
    var entries = JSONEntries()
    var isClosed = false
  }

  private let state = Mutex(State())

  /// The reads, until their values are decoded.
  private let reads = RunningOperations()

  /// Shows other entries than before.
  func replace(_ entries: JSONEntries) {
    // Released outside: the last reference to millions of entries takes its time.
    var entries = entries
    state.withLock { swap(&$0.entries, &entries) }
  }

  /// What there is, as a copy that stays as it is.
  ///
  /// While the copy lives, the next change has to copy a part of it.
  var snapshot: JSONEntries {
    state.withLock { $0.entries }
  }

  /// Whether the store was closed.
  var isClosed: Bool {
    state.withLock { $0.isClosed }
  }

  /// Whether closing has begun, so that everything else is refused.
  var isClosing: Bool { reads.isClosing }

  /// Reads something small, and does something with what was read, for which closing waits; `nil` once closing has begun.
  ///
  /// - Parameters:
  ///   - body: Reads, while every other reader and the writer wait.
  ///   - use: Gets what was read.
  func read<Text: Sendable, Result>(
    _ body: (JSONEntries) throws -> Text, then use: (Text) throws -> Result
  ) rethrows -> Result? {
    guard reads.begin() else { return nil }
    defer { reads.end() }
    return try use(state.withLock { try body($0.entries) })
  }

  /// Reads from a ``snapshot``, so that no one waits, and closing does; `nil` once closing has begun.
  func readSnapshot<Result>(_ body: (JSONEntries) throws -> Result) rethrows -> Result? {
    guard reads.begin() else { return nil }
    defer { reads.end() }
    return try body(snapshot)
  }

  /// Lets nobody read any more, and waits for those who are still decoding.
  func stopReading() async {
    await reads.close()
  }

  /// The text of each of some values, as they are at one moment.
  func values(forKeys keys: [StoreKey]) -> [ArraySlice<UInt8>?] {
    state.withLock { state in keys.map { state.entries.map[$0] } }
  }

  /// Shows a batch to the readers.
  func apply(_ changes: [Change<ArraySlice<UInt8>>]) {
    var displaced: [ArraySlice<UInt8>] = []
    state.withLock { state in
      for change in changes {
        state.entries.map.apply(change, displacing: &displaced)
      }
    }
  }

  /// Shows nothing any more.
  func close() {
    state.withLock { state in
      state.isClosed = true
      state.entries = JSONEntries()
    }
  }
}
