/// Convenience methods, built on the requirements of the protocol.
extension DataStore {
  /// The value of a key, or `nil` if the key is missing; see `value(forKey:)`.
  ///
  /// ```swift
  /// let user = try await store["user:1"]
  /// ```
  public subscript(key: StoreKey) -> Value? {
    get async throws {
      try await value(forKey: key)
    }
  }

  /// The value of the key with a text, or `nil` if the key is missing.
  ///
  /// ```swift
  /// let id = "user:1"
  /// let user = try await store[id]
  /// ```
  ///
  /// A literal is a ``StoreKey``. For other calls, write `StoreKey(id)`.
  @_disfavoredOverload
  public subscript(key: some StringProtocol) -> Value? {
    get async throws {
      try await value(forKey: StoreKey(String(key)))
    }
  }

  /// Stores a value under a key, replacing any other.
  ///
  /// ```swift
  /// try await store.setValue(User(name: "Ada"), forKey: "user:1")
  /// ```
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  /// - Throws: As ``apply(_:)``.
  @inlinable
  public func setValue(_ value: Value, forKey key: StoreKey) async throws {
    // Inlined, because creating a batch is several times faster if the type of the value is known.
    try await apply(ChangeBatch([.set(key, value)]))
  }

  /// Removes a key, if it exists.
  ///
  /// ```swift
  /// try await store.removeValue(forKey: "user:1")
  /// ```
  ///
  /// - Parameter key: The key. It may be missing.
  /// - Throws: As ``apply(_:)``.
  @inlinable
  public func removeValue(forKey key: StoreKey) async throws {
    try await apply(ChangeBatch([.remove(key)]))
  }

  /// Removes every key of a range in one step.
  ///
  /// ```swift
  /// try await store.removeAll(in: .prefix("session:"))
  /// ```
  ///
  /// - Parameter range: The range of keys to remove. Defaults to all keys.
  /// - Throws: As ``apply(_:)``.
  public func removeAll(in range: KeyRange = .all) async throws {
    try await apply([.removeAll(range)])
  }

  /// Returns whether a key exists, without decoding its value.
  ///
  /// ```swift
  /// guard try await !store.contains("user:ada") else { throw NameTaken() }
  /// ```
  ///
  /// - Parameter key: The key.
  /// - Throws: ``StoreError`` with `invalidKey`; `closed`; `ioFailed`.
  public func contains(_ key: StoreKey) async throws -> Bool {
    try information.check(key, for: .keys)
    return try await !keys(in: .only(key), limit: 1, order: .ascending).isEmpty
  }

  /// Returns the number of entries in the store.
  ///
  /// - Throws: As ``count(in:)``.
  public func count() async throws -> Int {
    try await count(in: .all)
  }

  /// Returns the entries with the lowest keys of a range as they are at one moment, in ascending order.
  ///
  /// - Parameters:
  ///   - range: The range of keys to read.
  ///   - limit: The maximum number of entries to return.
  /// - Throws: As ``entries(in:limit:order:)``.
  public func entries(in range: KeyRange, limit: Int) async throws -> [StoreEntry<Value>] {
    try await entries(in: range, limit: limit, order: .ascending)
  }

  /// Returns the lowest keys of a range as they are at one moment, in ascending order.
  ///
  /// - Parameters:
  ///   - range: The range of keys to read.
  ///   - limit: The maximum number of keys to return.
  /// - Throws: As ``keys(in:limit:order:)``.
  public func keys(in range: KeyRange, limit: Int) async throws -> [StoreKey] {
    try await keys(in: range, limit: limit, order: .ascending)
  }

  /// Returns an asynchronous sequence of the entries of a range, however many there are.
  ///
  /// ```swift
  /// for try await entry in store.entries(in: .prefix("user:")) { … }
  /// ```
  ///
  /// The sequence reads 256 entries at a time, each group as it is at one moment. An entry that exists throughout the
  /// iteration appears exactly once. An entry that is added or removed during the iteration may or may not appear.
  ///
  /// - Parameters:
  ///   - range: The range of keys to read. Defaults to all keys.
  ///   - order: The direction of the scan. Defaults to ``ScanOrder/ascending``.
  public func entries(in range: KeyRange = .all, order: ScanOrder = .ascending) -> ScanSequence<StoreEntry<Value>> {
    ScanSequence(in: range, order: order, key: { $0.key }) { try await entries(in: $0, limit: $1, order: order) }
  }

  /// Returns an asynchronous sequence of the keys of a range, however many there are, without decoding any value.
  ///
  /// The sequence reads keys as ``entries(in:order:)`` reads entries.
  ///
  /// - Parameters:
  ///   - range: The range of keys to read. Defaults to all keys.
  ///   - order: The direction of the scan. Defaults to ``ScanOrder/ascending``.
  public func keys(in range: KeyRange = .all, order: ScanOrder = .ascending) -> ScanSequence<StoreKey> {
    ScanSequence(in: range, order: order, key: { $0 }) { try await keys(in: $0, limit: $1, order: order) }
  }

  /// Returns the entries of a range in pages.
  ///
  /// ```swift
  /// for try await page in store.pages(of: .prefix("user:"), size: 100) {
  ///   try await archive.apply(ChangeBatch(page.entries.map { .set($0.key, $0.value) }))
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - range: The range of keys to read. Defaults to all keys.
  ///   - size: The maximum number of entries on a page, at least 1. Defaults to 20.
  ///   - order: The direction of the scan. Defaults to ``ScanOrder/ascending``.
  public func pages(
    of range: KeyRange = .all, size: Int = 20, order: ScanOrder = .ascending
  ) -> StorePages<Value> {
    StorePages(store: self, range: range, size: size, order: order)
  }
}
