#if LMDB
import Larder

/// A store of an ``ExaminedEnvironment``, which can only be read.
///
/// If it finds damage, a scan throws `corrupted` with an `UnreadableKeysError`, and can continue behind the keys that the error
/// names.
final class ExaminedStore<Value: Sendable>: DataStore {
  let information: StoreInformation
  let environment: ExaminedEnvironment
  let coder: ValueCoder<Value>
  private let databaseName: StoreKey

  init(_ database: ExaminedDatabase, codec: some Codec<Value>) throws {
    var information = database.information
    information.noteEncryption(by: codec)
    self.information = information
    environment = database.environment
    databaseName = database.name
    coder = ValueCoder(codec: codec, store: information.name)
    // Nothing is recorded, because the store is read-only.
    _ = try coder.codecRecord.name(replacing: database.codecName, during: .open, store: information.name)
  }

  /// Returns the root of the tree, or `nil` if the store is empty.
  func root(in snapshot: DataFileSnapshot, during operation: StoreOperation) throws -> UInt64? {
    guard
      let record = try snapshot.database(named: databaseName, store: information.name, during: operation)
    else {
      throw StoreError(
        .conflict, during: operation, store: information.name,
        message: "another program has removed the named database",
        isRetryable: true)
    }
    return record.root
  }

  /// Returns a closure that finds the leaves of the store that damage has made unreachable.
  func unreached(in snapshot: DataFileSnapshot) -> TreeScan.Unreached {
    { [self] in try environment.unreachedLeaves(ofDatabase: databaseName, in: snapshot) }
  }

  /// Visits the entries of a range in order, and throws at the first keys that cannot be read.
  ///
  /// - Parameter visit: A closure that receives a key and a value, which is empty if `readsValues` is false, and returns
  ///   whether to continue.
  private func scan(
    _ range: KeyRange, order: ScanOrder = .ascending, in snapshot: DataFileSnapshot, readsValues: Bool = true,
    during operation: StoreOperation, _ visit: (StoreKey, [UInt8]) throws -> Bool
  ) throws {
    let root = try root(in: snapshot, during: operation)
    try TreeScan.run(
      from: root, in: snapshot, range: range, order: order, readsValues: readsValues, unreached: unreached(in: snapshot)
    ) { item in
      switch item {
      case .entry(let key, .value(let value)): return try visit(key, value)
      case .entry(let key, .unread): return try visit(key, [])
      case .entry(let key, .database):
        throw StoreError(
          .corrupted, during: operation, store: information.name, key: key,
          message: "the entry has a named database in place of a value, because its page is damaged")
      case .damage(let damage, let lost):
        guard let lost else { return true }
        throw DamagedPageError(damage, losing: lost).storeError(during: operation, store: information.name)
      }
    }
  }

  // MARK: Reading

  func value(forKey key: StoreKey) async throws -> Value? {
    try information.check(key, for: .value)
    return try await environment.read(for: .value) { [self] in try value(forKey: key, in: $0, during: .value) }
  }

  func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try information.check(keys, for: .values)
    return try await environment.read(for: .values) { [self] snapshot in
      try keys.map { try value(forKey: $0, in: snapshot, during: .values) }
    }
  }

  private func value(
    forKey key: StoreKey, in snapshot: DataFileSnapshot, during operation: StoreOperation
  ) throws -> Value? {
    var found: Value?
    try scan(.only(key), in: snapshot, during: operation) { key, bytes in
      found = try decode(bytes, forKey: key, during: operation)
      return false
    }
    return found
  }

  private func decode(_ bytes: [UInt8], forKey key: StoreKey, during operation: StoreOperation) throws -> Value {
    try bytes.withUnsafeBytes { try coder.value(of: $0, forKey: key, during: operation) }
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try information.check(limit: limit, for: .entries)
    return try await environment.read(for: .entries) { [self] snapshot in
      var entries: [StoreEntry<Value>] = []
      guard limit > 0 else { return entries }
      try scan(range, order: order, in: snapshot, during: .entries) { key, bytes in
        entries.append(StoreEntry(key: key, value: try decode(bytes, forKey: key, during: .entries)))
        return entries.count < limit
      }
      return entries
    }
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    return try await environment.read(for: .keys) { [self] snapshot in
      var keys: [StoreKey] = []
      guard limit > 0 else { return keys }
      try scan(range, order: order, in: snapshot, readsValues: false, during: .keys) { key, _ in
        keys.append(key)
        return keys.count < limit
      }
      return keys
    }
  }

  func count(in range: KeyRange) async throws -> Int {
    try await environment.read(for: .count) { [self] snapshot in
      var count = 0
      try scan(range, in: snapshot, readsValues: false, during: .count) { _, _ in
        count += 1
        return true
      }
      return count
    }
  }

  // MARK: Writing

  func apply(_ changes: ChangeBatch<Value>) async throws {
    try information.checkWritable(for: .apply)
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try information.checkWritable(for: .update)
    throw unsupported(.update)
  }

  func synchronize() async throws {}

  func close() async throws {
    try await environment.close()
  }

  func unsupported(_ operation: StoreOperation) -> StoreError {
    StoreError(
      .unsupported, during: operation, store: information.name,
      message: "\(operation) is unsupported for a store that is opened to be examined; open it with LMDBStore")
  }
}

/// A named database of an ``ExaminedEnvironment``, whose type of values is not chosen yet.
struct ExaminedDatabase: UntypedStore {
  let environment: ExaminedEnvironment
  let name: StoreKey
  let information: StoreInformation
  let codecName: String

  /// Finds a store.
  ///
  /// - Parameters:
  ///   - environment: The environment. It is closed together with the store.
  ///   - name: The name of the store.
  ///   - newCodecName: The codec of a database that records none, or whose record is damaged; `nil` for the default if it
  ///     is damaged.
  /// - Throws: ``StoreError``: `notFound`; `invalidArgument` if another program created the database, and no codec is
  ///   chosen; `corrupted` if the database cannot be found because of damage.
  init(in environment: ExaminedEnvironment, name: String, newCodecName: String?) async throws {
    self.environment = environment
    let key = StoreKey(name)
    var information = environment.information
    if name != LMDBStore<Never>.defaultName { information.name += "#\(name)" }
    let store = information.name
    let recorded = try await environment.read(for: .open) { snapshot in
      guard try snapshot.database(named: key, store: store, during: .open) != nil else {
        throw StoreError(
          .notFound, during: .open, store: store, message: "the environment has no store of this name")
      }
      return try snapshot.codecName(ofStore: key, store: store)
    }
    self.name = key
    information.identity = StoreIdentity()
    self.information = information
    guard recorded.name != nil || recorded.isDamaged || newCodecName != nil else {
      throw StoreError.unrecordedCodec(of: "named database", store: store)
    }
    codecName = recorded.name ?? newCodecName ?? UntypedDatabase.defaultCodecName
  }

  func typed<Value: Sendable>(codec: some Codec<Value>) async throws -> AnyDataStore<Value> {
    AnyDataStore(try ExaminedStore(self, codec: codec))
  }
}

extension DataFileSnapshot {
  /// Returns the codec in the record of a store, or `nil` if it doesn't have one or its record is damaged, and whether
  /// it may be.
  ///
  /// - Throws: ``StoreError`` with `versionMismatch` if a newer version of Larder wrote the store; `FileError`.
  fileprivate func codecName(ofStore name: StoreKey, store: String) throws -> (name: String?, isDamaged: Bool) {
    let catalog = StoreCatalog(store: store)
    do {
      let records = try database(named: StoreKey(StoreCatalog.name), store: store, during: .open)
      var record: StoreCatalog.Record?
      var isDamaged = false
      try TreeScan.run(from: records?.root, in: self, range: .only(name)) { item in
        switch item {
        case .entry(_, .value(let bytes)): record = try bytes.withUnsafeBytes(catalog.decode)
        case .entry, .damage: isDamaged = true
        }
        return true
      }
      if let record { try catalog.check(record) }
      return (record?.codec, isDamaged)
    } catch let error as StoreError where error.code == .corrupted {
      // The entries may be intact, and the caller can name their codec.
      return (nil, true)
    }
  }
}
#endif
