// Overloads for keys in variables of the type `String` or `Substring`. A literal is a `StoreKey`, because the overloads are
// disfavored. They are generic because the compiler otherwise finds closures with a synchronous read asynchronous.
//
// There is none of `value(forKey:)` for every store. It would be asynchronous, and in an asynchronous function the
// compiler prefers such an overload to the synchronous method of a store, even if it is disfavored. A read with a
// literal would then need `await`.

/// Convenience methods that take the text of a key.
extension DataStore {
  /// The value of a key, or `nil` if the key is missing; see ``value(forKey:)``.
  ///
  /// ```swift
  /// let id = "user:1"
  /// let user = try await store[id]
  /// ```
  @_disfavoredOverload
  public subscript(key: some StringProtocol) -> Value? {
    get async throws {
      try await value(forKey: StoreKey(String(key)))
    }
  }

  /// Unavailable for stores of unknown type; read `store[key]`, or pass `StoreKey(key)`.
  @available(*, unavailable, message: "read store[key], or use value(forKey: StoreKey(key))")
  public func value(forKey key: String) async throws -> Value? {
    try await value(forKey: StoreKey(key))
  }

  /// Stores a value under a key, replacing any other.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The text of the key.
  /// - Throws: As ``apply(_:)``.
  @_disfavoredOverload @inlinable
  public func setValue(_ value: Value, forKey key: some StringProtocol) async throws {
    try await setValue(value, forKey: StoreKey(String(key)))
  }

  /// Removes a key, if it exists.
  ///
  /// - Parameter key: The text of the key, which may be missing.
  /// - Throws: As ``apply(_:)``.
  @_disfavoredOverload @inlinable
  public func removeValue(forKey key: some StringProtocol) async throws {
    try await removeValue(forKey: StoreKey(String(key)))
  }

  /// Returns whether a key exists, without decoding its value.
  ///
  /// - Parameter key: The text of the key.
  /// - Throws: ``StoreError`` with `invalidKey`; `closed`; `ioFailed`.
  @_disfavoredOverload
  public func contains(_ key: some StringProtocol) async throws -> Bool {
    try await contains(StoreKey(String(key)))
  }
}

extension StoreDecorator {
  /// Returns the value of a key; see ``DataStore/value(forKey:)``.
  ///
  /// - Parameter key: The text of the key.
  @_disfavoredOverload
  public func value(forKey key: some StringProtocol) async throws -> Value? {
    try await value(forKey: StoreKey(String(key)))
  }
}

extension AnyDataStore {
  /// Returns the value of a key; see ``DataStore/value(forKey:)``.
  ///
  /// - Parameter key: The text of the key.
  @_disfavoredOverload
  public func value(forKey key: some StringProtocol) async throws -> Value? {
    try await value(forKey: StoreKey(String(key)))
  }
}

extension MemoryStore {
  /// Returns the value of a key; see ``DataStore/value(forKey:)``.
  ///
  /// - Parameter key: The text of the key.
  @_disfavoredOverload
  public func value(forKey key: some StringProtocol) throws -> Value? {
    try value(forKey: StoreKey(String(key)))
  }
}

extension ExpirableStore {
  /// Stores a value under a key, replacing any other, and sets its time to live.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The text of the key.
  ///   - timeToLive: The time to live of the entry, or `nil` for the default of the store.
  /// - Throws: As the requirement with a ``StoreKey``.
  @_disfavoredOverload
  public func setValue(_ value: Value, forKey key: some StringProtocol, timeToLive: TimeToLive?) async throws {
    try await setValue(value, forKey: StoreKey(String(key)), timeToLive: timeToLive)
  }
}

extension ChangeBatch {
  /// Appends a change that stores a value under a key, replacing any other.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The text of the key.
  @_disfavoredOverload
  public mutating func setValue(_ value: Value, forKey key: some StringProtocol) {
    setValue(value, forKey: StoreKey(String(key)))
  }

  /// Appends a change that removes a key.
  ///
  /// - Parameter key: The text of the key, which may be missing.
  @_disfavoredOverload
  public mutating func removeValue(forKey key: some StringProtocol) {
    removeValue(forKey: StoreKey(String(key)))
  }
}

extension KeyRange {
  /// Returns the range of keys that begin with a prefix.
  ///
  /// - Parameter prefix: The text of the prefix. An empty prefix gives ``all``.
  @_disfavoredOverload
  public static func prefix(_ prefix: some StringProtocol) -> KeyRange {
    .prefix(StoreKey(String(prefix)))
  }
}
