/// A store for reading, made of a closure that loads the value of a key, such as a download.
///
/// ```swift
/// let pages = LoadingStore<Page> { key in try await server.page(id: "\(key)") }
/// let cached = try pages.cached(
///   in: disk, codec: .cbor(), configuration: TieredStoreConfiguration(timeToLive: .seconds(3600)))
/// let page = try await cached.value(forKey: "index.html")
/// ```
///
/// It puts a cache in front of anything that is not a store. It keeps nothing itself, so each read calls the closure.
///
/// The values are those of another place that others can change at any time. A cache therefore uses a value for a limited
/// time; see `StoreInformation.sharing`. Several values that one call returns may be of different moments, as
/// `StoreInformation.readsMayBeCopies` says.
///
/// **The rest of a store is missing.** A closure for one key can neither change nor list anything. Writes throw
/// `notPermitted`, as those of a store that is open for reading only. Listing and counting, and with them `contains(_:)`, throw
/// `unsupported`.
public final class LoadingStore<Value: Sendable>: DataStore {
  /// The name of the store, which reports that it is read-only and that its values are shared with others.
  public let information: StoreInformation

  private let concurrencyLimit: Int
  private let load: @Sendable (StoreKey) async throws -> Value?
  private let operations = RunningOperations()

  /// Creates a store.
  ///
  /// ```swift
  /// let users = LoadingStore<User>(name: "accounts", concurrencyLimit: 8) { key in
  ///   try await server.user(id: "\(key)")
  /// }.cached(CachedStoreConfiguration(entryLimit: 10_000))
  /// ```
  ///
  /// - Parameters:
  ///   - name: The name of the store in errors, reports and logs. Defaults to `loading`.
  ///   - concurrencyLimit: The maximum number of calls of `load` that one read of several keys runs at the same time.
  ///     Less than 1 counts as 1. Defaults to 4.
  ///   - load: A closure that returns the value of a key, or `nil` if there isn't one. It may run several times at the
  ///     same time, also for one key. If it throws, the read throws an error with the code, the message and
  ///     `isRetryable` of a ``StoreError``, or `ioFailed`, and with the thrown error as the underlying one. Throw for
  ///     everything but an answer that says that the key does not exist, because a cache may remember a missing key.
  public init(
    name: String = "loading", concurrencyLimit: Int = 4,
    load: @escaping @Sendable (_ key: StoreKey) async throws -> Value?
  ) {
    var information = StoreInformation(
      name: name, durability: .volatile, sharing: .betweenHosts, access: .readOnly, identity: StoreIdentity(),
      readsMayBeCopies: true)
    information.valuesAtRest = .absent
    self.information = information
    self.concurrencyLimit = max(1, concurrencyLimit)
    self.load = load
  }

  // MARK: Reading

  /// Loads the value of a key.
  ///
  /// - Parameter key: The key.
  /// - Returns: The value, or `nil` if the closure returns `nil`.
  /// - Throws: ``StoreError`` with `invalidKey`, `closed`, or the code of an error of the closure. `CancellationError` if the
  ///   closure throws after the task was cancelled.
  public func value(forKey key: StoreKey) async throws -> Value? {
    try information.check(key, for: .value)
    return try await operations.run(.value, of: information) { try await value(forKey: key, during: .value) }
  }

  /// Loads the values of several keys, each once, and at most `concurrencyLimit` of them at the same time.
  ///
  /// - Parameter keys: The keys, in any order. A key may occur more than once.
  /// - Returns: One element for each key. They may be of different moments.
  /// - Throws: As ``value(forKey:)``, with the first error, and cancels the other calls.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try information.check(keys, for: .values)
    return try await operations.run(.values, of: information) {
      var rest = Set(keys).sorted()[...]
      let values = try await withThrowingTaskGroup(of: (StoreKey, Value?).self) { group in
        var values: [StoreKey: Value?] = [:]
        for _ in 0..<concurrencyLimit {
          guard let key = rest.popFirst() else { break }
          group.addTask { (key, try await self.value(forKey: key, during: .values)) }
        }
        for try await (key, value) in group {
          values.updateValue(value, forKey: key)
          if let key = rest.popFirst() {
            group.addTask { (key, try await self.value(forKey: key, during: .values)) }
          }
        }
        return values
      }
      return keys.map { values[$0] ?? nil }
    }
  }

  private func value(forKey key: StoreKey, during operation: StoreOperation) async throws -> Value? {
    do {
      return try await load(key)
    } catch {
      // Libraries throw errors of their own for it.
      try Task.checkCancellation()
      let storeError = error as? StoreError
      throw StoreError(
        storeError?.code ?? .ioFailed, during: operation, store: information.name, key: key,
        message: storeError?.message ?? "the value could not be loaded", underlying: error,
        isRetryable: storeError?.isRetryable ?? false)
    }
  }

  /// Throws `unsupported`, because a closure for one key cannot list entries.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try information.check(limit: limit, for: .entries)
    throw unsupported(.entries)
  }

  /// Throws `unsupported`, because a closure for one key cannot list keys.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    throw unsupported(.keys)
  }

  /// Throws `unsupported`, because a closure for one key cannot count entries.
  public func count(in range: KeyRange) async throws -> Int {
    throw unsupported(.count)
  }

  // MARK: Writing

  /// Throws `notPermitted`.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    throw notPermitted(.apply)
  }

  /// Throws `notPermitted`, without calling the body.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    throw notPermitted(.update)
  }

  /// Does nothing, because there are no writes.
  ///
  /// - Throws: ``StoreError`` with `closed`.
  public func synchronize() async throws {
    guard !operations.isClosing else { throw information.closedError(for: .synchronize) }
  }

  /// Waits for running reads, and rejects every later operation.
  public func close() async {
    await operations.close()
  }

  // MARK: Errors

  private func unsupported(_ operation: StoreOperation) -> StoreError {
    guard !operations.isClosing else { return information.closedError(for: operation) }
    return StoreError(
      .unsupported, during: operation, store: information.name,
      message: "the store loads single values by their keys; it cannot list or count them")
  }

  private func notPermitted(_ operation: StoreOperation) -> StoreError {
    guard !operations.isClosing else { return information.closedError(for: operation) }
    return StoreError(
      .notPermitted, during: operation, store: information.name,
      message: "the store loads values that belong to another place; change them there")
  }
}
