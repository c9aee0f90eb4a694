/// The keys of a range of a store, one after another; made by ``DataStore/keys(in:order:)``.
public struct StoreKeys<Store: DataStore>: AsyncSequence, Sendable {
  /// A key.
  public typealias Element = StoreKey

  let store: Store
  let range: KeyRange
  let order: ScanOrder

  /// Starts a walk from the beginning of the range.
  public func makeAsyncIterator() -> Iterator {
    Iterator(store: store, walk: ScanWalk(range: range, order: order))
  }

  /// A walk through the keys.
  public struct Iterator: AsyncIteratorProtocol {
    let store: Store
    var walk: ScanWalk
    var slice: ArraySlice<StoreKey> = []

    /// The next key, or `nil` at the end and after an error.
    ///
    /// - Parameter actor: Where the caller runs; the loop `for try await` passes it by itself.
    /// - Throws: What ``DataStore/keys(in:limit:order:)`` throws; `CancellationError` where the task was cancelled and
    ///   more would have to be read.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws -> StoreKey? {
      if slice.isEmpty, let range = walk.takeRemaining() {
        try Task.checkCancellation()
        slice = try await store.keys(in: range, limit: ScanWalk.sliceSize, order: walk.order)[...]
        walk.advance(in: range, count: slice.count, lastKey: slice.last)
      }
      return slice.popFirst()
    }
  }
}
