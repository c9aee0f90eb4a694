/// What a store that owns a file does before a write returns.
public enum Durability: Sendable, Hashable, CaseIterable {
  /// The write has reached the disk: it survives the loss of power. The default.
  case synced

  /// The write has reached the operating system: it survives the death of the process.
  ///
  /// Power loss may take the latest writes, back to the last ``DataStore/synchronize()``, but never corrupts the store.
  case buffered
}
