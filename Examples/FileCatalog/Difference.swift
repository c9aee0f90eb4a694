import Larder

/// How one entry of the new state of a collection differs from the old.
enum Difference<Value: Equatable> {
  /// It is new.
  case added(StoreEntry<Value>)
  /// Its value is another one; this is the new entry.
  case changed(StoreEntry<Value>)
  /// It is as it was.
  case unchanged(StoreKey)
  /// It is not there any more.
  case removed(StoreKey)
}

extension Difference: Equatable {}
