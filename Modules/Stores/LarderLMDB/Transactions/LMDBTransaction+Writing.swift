#if LMDB
public import Larder

/// Writing. While bytes of the memory map are shown a transaction cannot write: that would move them.
extension LMDBTransaction {
  /// Puts a value under a key, in place of any other.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  ///   - store: A store of this environment.
  /// - Throws: ``StoreError``: `invalidKey`; `invalidArgument` where the store is of another environment;
  ///   `encodingFailed`; `valueTooLarge`; `closed`; `full`; `ioFailed`.
  public mutating func setValue<Value>(_ value: Value, forKey key: StoreKey, in store: LMDBStore<Value>) throws {
    try check(store, for: .write)
    try store.check(key, for: .write)
    buffer.removeAll(keepingCapacity: true)
    try store.coder.append(value, forKey: key, to: &buffer, during: .write)
    let bytes = buffer
    try change(store) { database in
      try key.withUnsafeBytes { key in
        try bytes.withUnsafeBytes { try database.setValue($0, forKey: key) }
      }
    }
  }

  /// Removes a key, where it is there.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - store: A store of this environment.
  /// - Throws: ``StoreError``: `invalidKey`; `invalidArgument` where the store is of another environment; `closed`;
  ///   `full`; `ioFailed`.
  public mutating func removeValue<Value>(forKey key: StoreKey, in store: LMDBStore<Value>) throws {
    try check(store, for: .write)
    try store.check(key, for: .write)
    try change(store) { database in
      try key.withUnsafeBytes { try database.removeValue(forKey: $0) }
    }
  }

  /// Removes every key of a range.
  ///
  /// - Parameters:
  ///   - range: The keys to remove; every key unless given.
  ///   - store: A store of this environment.
  /// - Throws: ``StoreError``: `invalidArgument` where the store is of another environment; `closed`; `full`; `ioFailed`.
  public mutating func removeAll<Value>(in range: KeyRange = .all, of store: LMDBStore<Value>) throws {
    try check(store, for: .write)
    try change(store) { try $0.removeAll(in: range) }
  }

  /// Makes several changes to one store, in sequence; unsorted ones are sorted first, which LMDB writes fastest.
  ///
  /// - Parameters:
  ///   - changes: The changes.
  ///   - store: A store of this environment.
  /// - Throws: As ``setValue(_:forKey:in:)``.
  public mutating func apply<Value>(_ changes: ChangeBatch<Value>, to store: LMDBStore<Value>) throws {
    try check(store, for: .write)
    let encoded = try EncodedChanges(changes) { key in
      try store.check(key, for: .apply)
    } encode: { value, key, bytes in
      try store.coder.append(value, forKey: key, to: &bytes, during: .write)
    }
    try change(store) { try encoded.write(to: $0) }
  }
}
#endif
