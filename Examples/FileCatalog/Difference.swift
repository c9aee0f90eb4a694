import Larder

/// The difference of one entry between the new and the old state of a collection.
enum Difference<Value: Equatable> {
  /// The entry is new.
  case added(StoreEntry<Value>)
  /// The entry has another value. This is the new entry.
  case changed(StoreEntry<Value>)
  /// The entry is unchanged.
  case unchanged(StoreKey)
  /// The entry was removed.
  case removed(StoreKey)
}

extension Difference: Equatable {}
