/// A store that keeps copies of what is below it: what a cache adds to ``DataStore``.
///
/// A decorator over such a store is one too, so that what is here works from the outside of a stack.
public protocol InvalidatableStore<Value>: DataStore {
  /// Forgets the copy of one key, so that the next read takes it from below.
  ///
  /// Nothing is removed from the store itself. A read that has begun before may still return what it found.
  ///
  /// - Parameter key: The key.
  /// - Throws: ``StoreError``: `invalidKey`; `closed`.
  func invalidate(_ key: StoreKey) throws

  /// Forgets all copies; see ``invalidate(_:)``.
  ///
  /// - Throws: ``StoreError``: `closed`.
  func invalidateAll() throws
}
