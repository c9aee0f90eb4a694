public import Larder

/// A decorator that limits the size of a store of bytes, and evicts the least recently used entries.
///
/// ```swift
/// let bytes = try await LMDBStore(path: folder + "/images", codec: .raw)
/// let images = try await bytes.bounded(bytes: 100_000_000)
/// try await images.setValue(data, forKey: "https://example.com/1.png")
/// ```
///
/// The keys and values of all entries together never have more bytes than the limit. Each commit also changes the
/// accounting, so both agree after every error and crash, and if several processes write. A store that had a greater
/// limit before never grows until the smaller one is kept.
///
/// ## Evictions
///
/// A write that needs room evicts the least recently used entries, in the same commit. If these are more
/// than 512, the first of them are evicted in commits of their own before it. Writing an entry uses it, and so does reading it with `value(forKey:)` or `values(forKeys:)`. Scans and updates that leave it unchanged
/// don't.
///
/// An entry that is larger than its share of the limit is not stored. The write succeeds, removes the former value of the
/// key, and evicts nothing, as if the entry was evicted immediately. A batch whose entries do not fit into the limit
/// together throws `full`, and changes nothing.
///
/// ## Reads
///
/// A read records the use in memory, and never waits for a write. Uses are persisted in the background, many in one commit,
/// and those of one entry at most once in ``BoundedStoreConfiguration/useInterval``.
///
/// All programs that write to the base must use a bounded store with the same limit and the same prefixes.
public final class BoundedStore<Base: DataStore>: DataStore where Base.Value == [UInt8] {
  /// The store of bytes that keeps the entries and the accounting.
  public let base: Base

  /// The maximum number of bytes of all keys and values.
  public let byteLimit: Int

  /// The maximum number of entries, or `nil` if there isn't one.
  public let entryLimit: Int?

  /// The settings.
  public let configuration: BoundedStoreConfiguration

  /// The information of the base, with the maximum length of a key.
  public let information: StoreInformation

  /// The entries, without the accounting.
  let values: KeyMappingStore<Base>

  let layout: BoundedLayout

  /// The maximum number of bytes of one entry.
  let shareLimit: Int

  /// The running operations that closing waits for.
  let operations = RunningOperations()

  /// The lock of the writers of this object, all of which change the totals.
  let gate = WriteGate()

  let uses: OrderOfUse
  let counters = Locked(BoundedStatistics())

  /// Opens a bounded store.
  ///
  /// Opening reads one record. There are two exceptions, unless the base is read-only: if the base contains values but no
  /// accounting, or a repair that did not end, it counts all entries; and if there is more than the limit, it evicts up to
  /// 512 entries. Each write evicts up to 512 further ones, until the limit is kept.
  ///
  /// - Parameters:
  ///   - base: The store of bytes.
  ///   - bytes: The maximum number of bytes of all keys and values, at least 1.
  ///   - entries: The maximum number of entries, at least 1, or `nil` for no limit. Defaults to `nil`.
  ///   - configuration: Further settings.
  /// - Throws: `StoreError` with `invalidArgument` if an argument is not as described; `unsupported` if the entries of the
  ///   base expire; `versionMismatch` if a newer version wrote the accounting; `corrupted`; the errors of the base.
  public init(
    _ base: Base, bytes: Int, entries: Int? = nil,
    configuration: BoundedStoreConfiguration = BoundedStoreConfiguration()
  ) async throws {
    self.base = base
    byteLimit = bytes
    entryLimit = entries
    self.configuration = configuration
    values = base.prefixed(by: configuration.valuePrefix)
    layout = BoundedLayout(valuePrefix: configuration.valuePrefix, recordPrefix: configuration.recordPrefix)
    var information = base.information
    information.maximumKeyLength = max(0, information.maximumKeyLength - layout.overhead)
    information.entryLifetime = .untilEvicted
    // The keys are others than those of the base.
    information.identity = StoreIdentity()
    self.information = information
    let share = configuration.maximumShare
    shareLimit = share > 0 && share < 1 ? Int((Double(bytes) * share).rounded(.down)) : bytes
    uses = OrderOfUse(interval: configuration.useInterval)
    try checkArguments()
    let totals = try await totals(for: .open)
    guard information.access == .readWrite else { return }
    try await openForWriting(totals)
  }

  private func checkArguments() throws {
    func check(_ isValid: Bool, _ message: String) throws {
      guard !isValid else { return }
      throw StoreError(.invalidArgument, during: .open, store: information.name, message: message)
    }
    try check(byteLimit >= 1, "bytes must be at least 1, not \(byteLimit)")
    try check(entryLimit ?? 1 >= 1, "entries must be at least 1, not \(entryLimit ?? 1)")
    let share = configuration.maximumShare
    try check(share > 0 && share <= 1, "maximumShare must be greater than 0 and at most 1, not \(share)")
    try check(configuration.useInterval >= .zero, "useInterval must be at least zero, not \(configuration.useInterval)")
    let (value, record) = (configuration.valuePrefix, configuration.recordPrefix)
    try check(
      !value.hasPrefix(record) && !record.hasPrefix(value),
      "the prefixes of values and records must not begin with each other")
    try base.information.checkKeepsEntries(for: "the accounting of a bounded store")
  }

  private func openForWriting(_ totals: Totals?) async throws {
    let needsRepair =
      if let totals { totals.isInRepair } else {
        try await !callingBase(.open) { try await base.keys(in: layout.values, limit: 1, order: .ascending) }.isEmpty
      }
    if needsRepair { try await repair(for: .open) }
    _ = try await trim(for: .open)
  }

  /// Reads the totals, or returns `nil` if there is no such record.
  func totals(for operation: StoreOperation) async throws -> Totals? {
    let record = try await callingBase(operation) { try await base.value(forKey: layout.totalsKey) }
    return try record.map { try Totals($0, store: information.name, for: operation) }
  }

  /// Returns the number of bytes and of entries, from the accounting.
  ///
  /// ```swift
  /// let usage = try await images.usage()
  /// print("\(usage.entries) images in \(usage.bytes) bytes")
  /// ```
  ///
  /// - Throws: `StoreError` with `closed`; `corrupted`; `ioFailed`.
  public func usage() async throws -> BoundedUsage {
    try await running(.statistics) {
      let totals = try await totals(for: .statistics) ?? Totals()
      return BoundedUsage(bytes: totals.bytes, entries: totals.count)
    }
  }

  /// Returns the events since the store was opened, in this process.
  ///
  /// ```swift
  /// let statistics = images.statistics()
  /// print(statistics.evictedCount, "images were evicted, with", statistics.evictedBytes, "bytes")
  /// ```
  public func statistics() -> BoundedStatistics { counters.withLock { $0 } }

  // MARK: Reading

  /// Returns the value of a key, and records its use; see `DataStore`.
  public func value(forKey key: StoreKey) async throws -> [UInt8]? {
    try information.check(key, for: .value)
    let value = try await callingBase(.value) { try await base.value(forKey: layout.valueKey(key)) }
    if value != nil { noteUse(of: key) }
    return value
  }

  /// Returns the values of several keys in one snapshot, and records their use; see `DataStore`.
  public func values(forKeys keys: [StoreKey]) async throws -> [[UInt8]?] {
    try information.check(keys, for: .values)
    let values = try await callingBase(.values) { try await base.values(forKeys: keys.map(layout.valueKey)) }
    for (key, value) in zip(keys, values) where value != nil { noteUse(of: key) }
    return values
  }

  /// Returns the first entries of a range of keys in one snapshot; see `DataStore`.
  ///
  /// It does not count as a use of the entries.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<[UInt8]>] {
    try await values.entries(in: range, limit: limit, order: order)
  }

  /// Returns the first keys of a range in one snapshot; see `DataStore`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await values.keys(in: range, limit: limit, order: order)
  }

  /// Returns the number of entries in a range of keys; see `DataStore`.
  public func count(in range: KeyRange) async throws -> Int {
    try await values.count(in: range)
  }

  // MARK: Lifecycle

  /// Persists recorded uses, and ensures that every earlier write is durable; see `DataStore`.
  ///
  /// A use that cannot be persisted is not an error of this method. It appears in ``statistics()``.
  public func synchronize() async throws {
    await settleUses()
    try await values.synchronize()
  }

  /// Waits for running operations, persists recorded uses as far as possible, and closes the base; see `DataStore`.
  public func close() async throws {
    await operations.close()
    await settleUses()
    try await values.close()
  }

  /// Runs an operation that calls the base several times, for which closing waits.
  func running<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
    try await operations.run(operation, of: information, body)
  }

}

extension BoundedStore: PrefixedStoreDecorator {
  /// The prefix of the values.
  public var keyPrefix: StoreKey { layout.valueKeys.prefix }

  /// Performs an operation of a capability on the base, a flush after persisting uses.
  public func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: () async throws -> Result
  ) async throws -> Result {
    if operation == .flush { await settleUses() }
    return try await callingBase(operation, body)
  }
}

extension BoundedStore: FlushableStore where Base: FlushableStore {}

/// The store reports the changes of its entries, including evictions, but not those of its accounting.
extension BoundedStore: ObservableStore where Base: ObservableStore {}

extension BoundedStore: InvalidatableStore where Base: InvalidatableStore {}

extension DataStore where Value == [UInt8] {
  /// Opens a store with a limit in this store of bytes; see ``BoundedStore``.
  ///
  /// For values of a type, put a view on top:
  ///
  /// ```swift
  /// let users = try await bytes.bounded(bytes: 100_000_000).typed(User.self, codec: .json())
  /// ```
  ///
  /// - Parameters:
  ///   - bytes: The maximum number of bytes of all keys and values, at least 1.
  ///   - entries: The maximum number of entries, at least 1, or `nil` for no limit. Defaults to `nil`.
  ///   - configuration: Further settings.
  /// - Throws: The errors of ``BoundedStore/init(_:bytes:entries:configuration:)``.
  public func bounded(
    bytes: Int, entries: Int? = nil, configuration: BoundedStoreConfiguration = BoundedStoreConfiguration()
  ) async throws -> BoundedStore<Self> {
    try await BoundedStore(self, bytes: bytes, entries: entries, configuration: configuration)
  }
}

extension DataStore {
  /// Names the missing step, if this is not a store of bytes.
  @available(
    *, unavailable,
    message: """
      a limit needs a store of bytes: open this one with the codec .raw, and write \
      .bounded(bytes: …).typed(User.self, codec: .json())
      """
  )
  public func bounded(
    bytes: Int, entries: Int? = nil, configuration: BoundedStoreConfiguration = BoundedStoreConfiguration()
  ) async throws -> Self {
    self
  }
}
