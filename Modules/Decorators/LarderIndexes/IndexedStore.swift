public import Larder

/// A decorator that finds entries by properties of their values, over a store of bytes that keeps values and indexes.
///
/// ```swift
/// let byTag = StoreIndex<Note>("tag") { _, note in note.tags.map { [$0, note.created] } }
/// let notes = try await bytes.indexed(by: [byTag], codec: .json(Note.self))
/// try await notes.rebuildIndexes()
/// try await notes.setValue(note, forKey: "7")
/// let newest = try await notes.entries(
///   where: byTag, in: .prefix(components: "swift"), limit: 20, order: .descending)
/// ```
///
/// A value and its index entries are written in one commit of the base. They agree after every write, error and crash,
/// even if several processes write. Reads by key work as in any other store.
///
/// ## Writes
///
/// A write reads the lists of the old index entries, and determines those to add and to remove. It commits only if nothing
/// that it has read has changed. Otherwise, it starts again. The body of an update therefore runs before the commit, on the
/// caller's actor, and runs again if another program changes its entries at the same time.
///
/// Removing a range loads all keys of the range into memory. Removing everything does not.
///
/// An indexed store takes part in transactions of its base, together with views and queues.
///
/// ## New and changed indexes
///
/// A store remembers the names and versions of its indexes. An index that is new, or has another version than before, is
/// maintained by all writes from then on, but queries throw `indexIncomplete` until ``rebuildIndexes(fromScratch:)`` has
/// indexed the older entries. In an empty store, indexes are complete immediately.
///
/// Every program that opens the store for writing must define the same indexes. After a program opens the store with other
/// definitions, the writes of the programs that opened it before throw `versionMismatch`.
///
/// The same holds for a newer version of a `VersionedCodec`, whose migration can change what is indexed: when a program opens
/// the store with it, all indexes are incomplete until they are rebuilt.
///
/// An index stays incomplete while there are values that a rebuild could not decode.
public final class IndexedStore<Base: DataStore, Value: Sendable>: DataStore where Base.Value == [UInt8] {
  /// The store of bytes that keeps values and indexes.
  public let base: Base

  /// The definitions of the indexes.
  public let indexes: [StoreIndex<Value>]

  /// The information of the base, with the maximum length of a key.
  ///
  /// A key must fit behind the prefix of values, and behind that of indexes and one letter.
  public let information: StoreInformation

  /// The values, without the indexes.
  let values: TypedView<Base, Value>

  let layout: IndexLayout

  /// The running operations that closing waits for.
  let operations = RunningOperations()

  /// The lock of the writers of this object.
  let gate = WriteGate()

  /// The catalog as it was last read.
  let knownCatalog: Locked<KnownCatalog<Value>>

  /// Opens an indexed store, and records its indexes in the base unless the base is read-only.
  ///
  /// - Parameters:
  ///   - base: The store of bytes.
  ///   - indexes: The definitions of the indexes, whose names must be distinct.
  ///   - codec: The codec of the values.
  ///   - valuePrefix: The prefix of the keys of the values in the base. Values that a `TypedView` with this prefix and
  ///     codec has written become entries of the store. Defaults to `v/`.
  ///   - indexPrefix: The prefix of the keys of the indexes in the base. Defaults to `i/`. Neither prefix may begin with
  ///     the other one.
  /// - Throws: `StoreError` with `invalidArgument` if the names or prefixes are not as described; `versionMismatch` if a
  ///   newer version of Larder, or another or newer codec wrote the indexes; `corrupted`; the errors of the base.
  public init(
    _ base: Base, by indexes: [StoreIndex<Value>], codec: some Codec<Value>, valuePrefix: StoreKey = "v/",
    indexPrefix: StoreKey = "i/"
  ) async throws {
    self.base = base
    self.indexes = indexes
    values = TypedView(base, prefix: valuePrefix, codec: codec)
    layout = IndexLayout(valuePrefix: valuePrefix, indexPrefix: indexPrefix)
    var information = values.information
    let maximumListKeyLength = base.information.maximumKeyLength - layout.listKey("").count
    information.maximumKeyLength = max(0, min(information.maximumKeyLength, maximumListKeyLength))
    self.information = information
    let catalog = try IndexCatalog(nil, store: base.information.name, for: .open)
    knownCatalog = Locked(
      KnownCatalog(bytes: nil, catalog: catalog, definitions: indexes, codecName: codec.name))
    try checkArguments()
    if base.information.access == .readWrite {
      try await changeCatalog(for: .open) { $0.define(indexes, codecName: try codecName(for: $0, during: .open)) }
      try await completeIndexesIfEmpty()
    } else {
      try await reloadCatalog(for: .open)
    }
  }

  private func checkArguments() throws {
    try base.information.checkKeepsEntries(for: "an index")
    let (values, index) = (layout.valueKeys.prefix, layout.indexPrefix)
    guard !values.hasPrefix(index), !index.hasPrefix(values) else {
      throw StoreError(
        .invalidArgument, during: .open, store: information.name,
        message: "the prefixes of values and indexes must not begin with each other")
    }
    guard Set(indexes.map(\.name)).count == indexes.count else {
      throw StoreError(
        .invalidArgument, during: .open, store: information.name, message: "the names of indexes must be distinct")
    }
  }

  // MARK: Reading

  /// Returns the value of a key; see `DataStore`.
  public func value(forKey key: StoreKey) async throws -> Value? {
    try information.check(key, for: .value)
    return try await values.value(forKey: key)
  }

  /// Returns the values of several keys in one snapshot; see `DataStore`.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try information.check(keys, for: .values)
    return try await values.values(forKeys: keys)
  }

  /// Returns the first entries of a range of keys in one snapshot; see `DataStore`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
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

  /// Ensures that every earlier write is durable; see `DataStore`.
  public func synchronize() async throws {
    try await values.synchronize()
  }

  /// Waits for running operations and closes the base; see `DataStore`.
  public func close() async throws {
    await operations.close()
    try await values.close()
  }

  /// Runs an operation that calls the base several times, for which closing waits.
  ///
  /// Errors of the base then name the operation, and keys without the prefix.
  func running<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
    try await operations.run(operation, of: information, body)
  }

  // MARK: The catalog

  /// Reads the catalog.
  @discardableResult
  func reloadCatalog(for operation: StoreOperation) async throws -> KnownCatalog<Value> {
    let bytes = try await callingBase(operation) { try await base.value(forKey: layout.catalogKey) }
    return try remember(bytes, for: operation)
  }

  func remember(_ bytes: [UInt8]?, for operation: StoreOperation) throws -> KnownCatalog<Value> {
    let catalog = try IndexCatalog(bytes, store: information.name, for: operation)
    let known = KnownCatalog(
      bytes: bytes, catalog: catalog, definitions: indexes, codecName: try codecName(for: catalog, during: operation))
    knownCatalog.withLock { $0 = known }
    return known
  }

  /// Returns the name of the codec that a catalog must have.
  ///
  /// - Throws: `StoreError`; see `CodecRecord.name(replacing:during:store:)`.
  private func codecName(for catalog: IndexCatalog, during operation: StoreOperation) throws -> String {
    let record = values.codecRecord
    guard let recorded = catalog.codec else { return record.name }
    return try record.name(replacing: recorded, during: operation, store: information.name)
  }

  /// Returns the catalog as it was last read.
  var known: KnownCatalog<Value> { knownCatalog.withLock { $0 } }

  /// Throws `versionMismatch` if another program has defined other indexes.
  func checkDefinitions(of known: KnownCatalog<Value>, for operation: StoreOperation) throws {
    guard !known.isCurrent || known.active.count != indexes.count else { return }
    throw StoreError(
      .versionMismatch, during: operation, store: information.name,
      message: "another program has opened the store with other indexes; all programs that write must define the same")
  }

  /// Changes the catalog in one step.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - change: A closure that changes the catalog. It runs again if another writer interferes.
  func changeCatalog(
    for operation: StoreOperation, _ change: (inout IndexCatalog) async throws -> Void
  ) async throws {
    try await information.repeating(operation) { _ in
      let stored = try await reloadCatalog(for: operation)
      var catalog = stored.catalog
      try await change(&catalog)
      guard catalog != stored.catalog else { return }
      let bytes = try catalog.bytes(store: information.name, for: operation)
      var commit = ConditionalCommit<Never>()
      commit.require(stored.bytes, forKey: layout.catalogKey)
      commit.setValue(bytes, forKey: layout.catalogKey)
      let isPerformed = try await callingBase(operation) { [commit] in try await base.perform(commit).isPerformed }
      if isPerformed { _ = try remember(bytes, for: operation) }
      return isPerformed ? () : nil
    }
  }

  /// Marks the indexes as complete if there are no values.
  private func completeIndexesIfEmpty() async throws {
    guard known.active.contains(where: { !$0.isComplete }) else { return }
    // The catalog contains the indexes already. Each writer compares the catalog when it commits, so that it adds the
    // index entries of any value that it inserts after the check.
    try await changeCatalog(for: .open) { catalog in
      let keys = try await callingBase(.open) {
        try await base.keys(in: layout.values, limit: 1, order: .ascending)
      }
      if keys.isEmpty { catalog.complete() }
    }
  }
}

extension IndexedStore: PrefixedStoreDecorator {
  /// The prefix of the values.
  public var keyPrefix: StoreKey { layout.valueKeys.prefix }
}

extension IndexedStore: FlushableStore where Base: FlushableStore {}

/// The store reports the changes of its values, but not those of its index entries.
extension IndexedStore: ObservableStore where Base: ObservableStore {}

extension IndexedStore: InvalidatableStore where Base: InvalidatableStore {}

extension DataStore where Value == [UInt8] {
  /// Opens an indexed store of values of one type in this store of bytes; see ``IndexedStore``.
  ///
  /// ```swift
  /// let adopted = try await bytes.indexed(
  ///   by: [byTag], codec: .json(Note.self), valuePrefix: "note/", indexPrefix: "note-index/")
  /// try await adopted.rebuildIndexes()
  /// ```
  ///
  /// - Parameters:
  ///   - indexes: The definitions of the indexes, whose names must be distinct.
  ///   - codec: The codec of the values.
  ///   - valuePrefix: The prefix of the keys of the values in this store. Defaults to `v/`.
  ///   - indexPrefix: The prefix of the keys of the indexes in this store. Defaults to `i/`.
  /// - Throws: The errors of ``IndexedStore/init(_:by:codec:valuePrefix:indexPrefix:)``.
  public func indexed<Indexed: Sendable>(
    by indexes: [StoreIndex<Indexed>], codec: some Codec<Indexed>, valuePrefix: StoreKey = "v/",
    indexPrefix: StoreKey = "i/"
  ) async throws -> IndexedStore<Self, Indexed> {
    try await IndexedStore(self, by: indexes, codec: codec, valuePrefix: valuePrefix, indexPrefix: indexPrefix)
  }
}

extension DataStore {
  /// Names the missing step, if this is not a store of bytes.
  @available(
    *, unavailable,
    message: """
      indexes need a store of bytes: open this one with the codec .raw, and give the codec of the values to \
      .indexed(by: […], codec: .json())
      """
  )
  public func indexed<Indexed: Sendable>(
    by indexes: [StoreIndex<Indexed>], codec: some Codec<Indexed>, valuePrefix: StoreKey = "v/",
    indexPrefix: StoreKey = "i/"
  ) async throws -> Self {
    self
  }
}
