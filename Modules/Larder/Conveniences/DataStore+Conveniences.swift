/// What one calls day to day, built on the requirements.
extension DataStore {
  /// The value of a key: `try await store["user:1"]`.
  ///
  /// It reads as ``value(forKey:)`` does, and throws what that throws.
  public subscript(key: StoreKey) -> Value? {
    get async throws {
      try await value(forKey: key)
    }
  }

  /// Puts a value under a key, in place of any other.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  /// - Throws: What ``apply(_:)`` throws.
  @inlinable
  public func setValue(_ value: Value, forKey key: StoreKey) async throws {
    // Inlined, since a batch is made in a fraction of the time where the type of the value is known.
    try await apply(ChangeBatch([.set(key, value)]))
  }

  /// Removes a key, where it is there.
  ///
  /// - Parameter key: The key; it may be missing.
  /// - Throws: What ``apply(_:)`` throws.
  @inlinable
  public func removeValue(forKey key: StoreKey) async throws {
    try await apply(ChangeBatch([.remove(key)]))
  }

  /// Removes every key of a range at once.
  ///
  /// - Parameter range: The keys to remove; every key unless given.
  /// - Throws: What ``apply(_:)`` throws.
  public func removeAll(in range: KeyRange = .all) async throws {
    try await apply([.removeAll(range)])
  }

  /// Whether a key is there, whatever its value; the value is not decoded.
  ///
  /// - Parameter key: The key.
  /// - Throws: ``StoreError``: `invalidKey`; `closed`; `ioFailed`.
  public func contains(_ key: StoreKey) async throws -> Bool {
    try information.check(key, for: .keys)
    return try await !keys(in: .only(key), limit: 1, order: .ascending).isEmpty
  }

  /// Reads the value of one key, lets a closure change it, and writes it back, as one step.
  ///
  /// ```swift
  /// let visits = try await store.update("visits") { count in
  ///   count = (count ?? 0) + 1
  ///   return count
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - body: Gets the value, or `nil` where the key is missing, and leaves in it what is to be stored, or `nil` to
  ///     remove the key. It must not call the store.
  /// - Returns: What `body` returned.
  /// - Throws: What ``update(_:_:)`` of several keys throws.
  @discardableResult
  public func update<Result: Sendable>(
    _ key: StoreKey,
    _ body: @escaping @Sendable (inout Value?) throws -> Result
  ) async throws -> Result {
    try await update([key]) { slots in
      try body(&slots[0])
    }
  }

  /// Counts every entry of the store.
  ///
  /// - Throws: What ``count(in:)`` throws.
  public func count() async throws -> Int {
    try await count(in: .all)
  }

  /// Reads the first entries of a range as they are at one moment, lowest key first.
  ///
  /// - Parameters:
  ///   - range: The keys to look at.
  ///   - limit: The most entries to return; 0 gives none.
  /// - Throws: What ``entries(in:limit:order:)`` throws.
  public func entries(in range: KeyRange, limit: Int) async throws -> [StoreEntry<Value>] {
    try await entries(in: range, limit: limit, order: .ascending)
  }

  /// Reads the first keys of a range as they are at one moment, lowest key first.
  ///
  /// - Parameters:
  ///   - range: The keys to look at.
  ///   - limit: The most keys to return; 0 gives none.
  /// - Throws: What ``keys(in:limit:order:)`` throws.
  public func keys(in range: KeyRange, limit: Int) async throws -> [StoreKey] {
    try await keys(in: range, limit: limit, order: .ascending)
  }

  /// The entries of a range, one after another, however many there are.
  ///
  /// ```swift
  /// for try await entry in store.entries(in: .prefix("user:")) { … }
  /// ```
  ///
  /// The walk reads ahead in slices of 256 entries, each as it is at one moment. An entry that is there throughout the
  /// walk appears exactly once; one that comes or goes meanwhile may or may not.
  ///
  /// - Parameters:
  ///   - range: The keys to look at; every key unless given.
  ///   - order: The direction; from the lowest key to the highest unless given.
  public func entries(in range: KeyRange = .all, order: ScanOrder = .ascending) -> StoreEntries<Self> {
    StoreEntries(store: self, range: range, order: order)
  }

  /// The keys of a range, one after another, however many there are; no value is decoded.
  ///
  /// It walks as ``entries(in:order:)`` does.
  ///
  /// - Parameters:
  ///   - range: The keys to look at; every key unless given.
  ///   - order: The direction; from the lowest key to the highest unless given.
  public func keys(in range: KeyRange = .all, order: ScanOrder = .ascending) -> StoreKeys<Self> {
    StoreKeys(store: self, range: range, order: order)
  }

  /// The entries of a range, a page at a time.
  ///
  /// - Parameters:
  ///   - range: The keys to look at; every key unless given.
  ///   - size: The most entries on a page, at least 1; 20 unless given.
  ///   - order: The direction; from the lowest key to the highest unless given.
  public func pages(
    of range: KeyRange = .all, size: Int = 20, order: ScanOrder = .ascending
  ) -> StorePages<Self> {
    StorePages(store: self, range: range, size: size, order: order)
  }
}
