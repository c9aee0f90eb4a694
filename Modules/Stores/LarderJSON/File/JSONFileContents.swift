import Larder
import Synchronization

/// What a `JSONFileStore` holds, as its readers see it: every batch whose write has returned, and no other.
///
/// Only the store's ``JSONFileWriter`` changes it.
final class JSONFileContents: Sendable {
  private struct State {
    var entries = SortedMap<ArraySlice<UInt8>>()
    var isClosed = false
  }

  private let state: Mutex<State>

  init() {
    state = Mutex(State())
  }

  /// Shows other entries than before.
  func replace(_ entries: SortedMap<ArraySlice<UInt8>>) {
    state.withLock { $0.entries = entries }
  }

  /// What there is, as a copy that stays as it is.
  ///
  /// While the copy lives, the next change has to copy a part of it.
  var snapshot: SortedMap<ArraySlice<UInt8>> {
    state.withLock { $0.entries }
  }

  /// Whether the store was closed.
  var isClosed: Bool {
    state.withLock { $0.isClosed }
  }

  /// Reads; `nil` once the store was closed.
  func read<Result: Sendable>(_ body: (SortedMap<ArraySlice<UInt8>>) -> Result) -> Result? {
    state.withLock { $0.isClosed ? nil : body($0.entries) }
  }

  /// The text of each of some values, as they are at one moment.
  func values(forKeys keys: [StoreKey]) -> [ArraySlice<UInt8>?] {
    state.withLock { state in keys.map { state.entries[$0] } }
  }

  /// Shows a batch to the readers.
  func apply(_ changes: [Change<ArraySlice<UInt8>>]) {
    var displaced: [ArraySlice<UInt8>] = []
    state.withLock { state in
      for change in changes {
        state.entries.apply(change, displacing: &displaced)
      }
    }
  }

  /// Shows nothing any more.
  func close() {
    state.withLock { state in
      state.isClosed = true
      state.entries = SortedMap()
    }
  }
}
