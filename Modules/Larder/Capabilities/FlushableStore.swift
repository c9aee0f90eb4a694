/// A store that accepts writes before it passes them to its base, such as a write-behind store.
///
/// Decorators forward this capability, so you can use it on any stack that contains a write-behind layer.
///
/// ```swift
/// func endOfDay(_ positions: some FlushableStore<Position>) async throws {
///   try await positions.flush()  // all accepted writes have the durability of the store below
/// }
/// ```
public protocol FlushableStore<Value>: DataStore {
  /// Waits until the base has received every write that was accepted before the call.
  ///
  /// If the task is cancelled, a store that cannot write now may throw `CancellationError`. The writes then stay accepted.
  /// The method makes nothing more durable than a write to the base does. To flush and make everything durable, call
  /// ``DataStore/synchronize()``.
  ///
  /// - Throws: The ``StoreError`` of the first write that failed and was discarded.
  func flush() async throws
}
