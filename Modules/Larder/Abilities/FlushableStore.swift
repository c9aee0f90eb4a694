/// A store that accepts writes before they have reached what is below it: what write-behind adds to ``DataStore``.
///
/// A decorator over such a store is one too, so that what is here works from the outside of a stack.
public protocol FlushableStore<Value>: DataStore {
  /// Waits until everything accepted before has been written below.
  ///
  /// It ignores cancellation. It does not make anything durable beyond what a write below promises; ``DataStore/synchronize()``
  /// does both.
  ///
  /// - Throws: ``StoreError`` of the first write that could not be made and was given up.
  func flush() async throws
}
