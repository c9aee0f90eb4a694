/// The entries of a range of a store, one after another; made by ``DataStore/entries(in:order:)``.
public struct StoreEntries<Store: DataStore>: AsyncSequence, Sendable {
  /// An entry.
  public typealias Element = StoreEntry<Store.Value>

  let store: Store
  let range: KeyRange
  let order: ScanOrder

  /// Starts a walk from the beginning of the range.
  public func makeAsyncIterator() -> Iterator {
    Iterator(store: store, walk: ScanWalk(range: range, order: order))
  }

  /// A walk through the entries.
  public struct Iterator: AsyncIteratorProtocol {
    let store: Store
    var walk: ScanWalk
    var slice: ArraySlice<StoreEntry<Store.Value>> = []

    /// What is wrong with the entry behind the slice.
    var damage: StoreError?

    /// The next entry, or `nil` at the end and after an error.
    ///
    /// - Parameter actor: Where the caller runs; the loop `for try await` passes it by itself.
    /// - Throws: What ``DataStore/entries(in:limit:order:)`` throws; `CancellationError` where the task was cancelled and
    ///   more would have to be read.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws -> StoreEntry<Store.Value>? {
      if slice.isEmpty, let range = walk.takeRemaining() {
        try Task.checkCancellation()
        do {
          slice = try await store.entries(in: range, limit: ScanWalk.sliceSize, order: walk.order)[...]
          walk.advance(in: range, count: slice.count, lastKey: slice.last?.key)
        } catch let error as StoreError where error.code == .corrupted {
          // The entries before the damaged one are good, so they come first.
          guard let key = error.key else { throw error }
          slice = try await store.entries(
            in: range.part(upTo: key, in: walk.order), limit: ScanWalk.sliceSize, order: walk.order)[...]
          damage = error
        }
      }
      if slice.isEmpty, let error = damage {
        damage = nil
        throw error
      }
      return slice.popFirst()
    }
  }
}
