#if LMDB
internal import CLMDB
public import Larder
internal import LarderFiles

/// A store in an LMDB environment: a B+tree in a memory map, which any number of processes may share.
///
/// ```swift
/// let store = try await LMDBStore<User>(path: "users")
/// try await store.setValue(User(name: "Ada"), forKey: "user:1")
/// let user = try store.value(forKey: "user:1")
/// try await store.close()
/// ```
///
/// A read finds a value in the memory map and decodes it where the caller is, many or large ones on the cooperative pool
/// (`Docs/Concurrency.md`). It never waits for a writer, though it waits for the disk where the data are not in memory.
/// Writes run one after
/// another on a thread of the environment's own.
///
/// The named database of the store holds exactly its entries: keys as they are, values as the codec made them. The
/// codec's name is kept in a named database of Larder's own, `larder`, and a store is not opened with another.
///
/// Several stores share an ``LMDBEnvironment``, which has transactions across them and bytes without copying.
public final class LMDBStore<Value: Sendable>: DataStore {
  /// The name of a store that is not given another.
  public static var defaultName: String { "default" }

  /// For how many entries a scan makes room at first.
  private static var usualPageSize: Int { 1000 }

  /// What the store is called, its limits, what its acknowledgement means, and its maintenance.
  public let information: StoreInformation

  let lease: EnvironmentLease
  let coder: LMDBValueCoder<Value>
  let identifier: MDB_dbi

  /// The name of the named database.
  private let databaseName: StoreKey

  /// The environment, where the store has opened it itself and closes it.
  private let ownEnvironment: LMDBEnvironment?

  /// Opens a store in an environment.
  ///
  /// - Parameters:
  ///   - environment: Where the store is.
  ///   - name: Its name, 1 to 511 bytes of UTF-8 without NUL; `default` unless given. `larder` is taken.
  ///   - codec: Turns values into bytes and back.
  ///   - createsIfMissing: Whether a missing store is created; `true` unless said.
  /// - Throws: ``StoreError``: `invalidArgument` where the name cannot be one; `notFound`; `versionMismatch` where the
  ///   store was written by a newer version or with another codec; `unsupported` where the named database is of a kind that
  ///   no store has; `closed`; `full`; `ioFailed`.
  public convenience init(
    in environment: LMDBEnvironment, name: String = LMDBStore.defaultName, codec: some Codec<Value>,
    createsIfMissing: Bool = true
  ) async throws {
    try await self.init(in: environment, isOwned: false, name: name, createsIfMissing: createsIfMissing) { _ in codec }
  }

  /// Opens a store, and the environment that it is in.
  ///
  /// - Parameters:
  ///   - path: The environment: a folder or a data file; see
  ///     ``LMDBEnvironment/init(path:durability:access:createsIfMissing:)``.
  ///   - name: The name of the store; `default` unless given.
  ///   - codec: Turns values into bytes and back.
  ///   - durability: What happens before a write returns; ``Durability/synced`` unless said.
  ///   - access: Whether the store may write; defaults to ``StoreAccess/readWrite``. With any other access nothing is
  ///     created.
  ///   - createsIfMissing: Whether a missing environment or store is created; `true` unless said.
  /// - Throws: As opening the environment, and the store in it.
  public convenience init(
    path: String, name: String = LMDBStore.defaultName, codec: some Codec<Value>, durability: Durability = .synced,
    access: StoreAccess = .readWrite, createsIfMissing: Bool = true
  ) async throws {
    try await self.init(
      path: path, name: name, durability: durability, access: access, createsIfMissing: createsIfMissing
    ) { _ in codec }
  }

  /// Opens a store, and the environment that it is in, with a codec that is chosen by the name of the one that the store
  /// was written with.
  convenience init(
    path: String, name: String, durability: Durability, access: StoreAccess, createsIfMissing: Bool,
    choosing codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws {
    let environment = try await LMDBEnvironment(
      path: path, durability: durability, access: access, createsIfMissing: createsIfMissing)
    try await self.init(
      in: environment, isOwned: true, name: name, createsIfMissing: createsIfMissing, choosing: codec)
  }

  private init(
    in environment: LMDBEnvironment, isOwned: Bool, name: String, createsIfMissing: Bool,
    choosing codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws {
    let fullName = name == LMDBStore.defaultName ? environment.name : "\(environment.name)#\(name)"
    guard
      (1...StoreKey.maximumLength).contains(name.utf8.count), !name.utf8.contains(0), name != StoreCatalog.name
    else {
      throw StoreError(
        .invalidArgument, during: .open, store: fullName,
        message: "the name of a store has 1 to \(StoreKey.maximumLength) bytes, no NUL, and is not \(StoreCatalog.name)"
      )
    }
    let lease = EnvironmentLease(dependingOn: environment.lease, name: fullName)
    let (identifier, codec) = try await lease.environment.writer.openDatabase(
      for: lease, named: name, createsIfMissing: createsIfMissing, choosing: codec)
    let coder = LMDBValueCoder(codec: codec, store: fullName)
    self.lease = lease
    self.coder = coder
    self.identifier = identifier
    databaseName = StoreKey(name)
    ownEnvironment = isOwned ? environment : nil
    information = StoreInformation(
      name: fullName, acknowledgement: Acknowledgement(lease.environment.durability), sharing: .betweenProcesses,
      access: lease.environment.access, maximumValueSize: LMDBValueCoder<Value>.maximumSize,
      maintenance: LMDBStoreMaintenance(lease: lease, coder: coder, identifier: identifier))
  }

  // MARK: Reading

  /// Reads the value of one key.
  ///
  /// It is decoded where the caller is, however large it is.
  ///
  /// - Throws: ``StoreError``: `invalidKey`; `corrupted` where the value cannot be decoded; `closed`; `full` where no
  ///   reader slot is free; `ioFailed`.
  @_specialize(where Value == [UInt8])
  public func value(forKey key: StoreKey) throws -> Value? {
    try check(key, for: .value)
    return try lease.read(for: .value) { try value(forKey: key, in: $0, during: .value) }
  }

  /// Reads the values of several keys as they are at one moment.
  ///
  /// More than 64, or more than 64 KiB, are decoded off the caller's actor.
  ///
  /// - Throws: ``StoreError``: `invalidKey`; `corrupted` where a value cannot be decoded; `closed`; `full` where no
  ///   reader slot is free; `ioFailed`.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try information.check(keys, for: .values)
    return try await BulkWork.run(atMost: keys.count) { [self] allowance in
      try lease.read(for: .values) { transaction in
        try keys.map { key in
          guard let bytes = try database(in: transaction).value(forKey: key) else { return nil }
          try allowance.take(bytes.count)
          return try coder.value(of: bytes, forKey: key, during: .values)
        }
      }
    }
  }

  /// Reads the first entries of a range as they are at one moment.
  ///
  /// If the limit is above 64, or the entries have more than 64 KiB, they are decoded off the caller's actor.
  ///
  /// - Throws: ``StoreError``: `invalidArgument` where the limit is negative; `corrupted` where a value cannot be decoded;
  ///   `closed`; `full` where no reader slot is free; `ioFailed`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try information.check(limit: limit, for: .entries)
    return try await BulkWork.run(atMost: limit) { [self] allowance in
      try lease.read(for: .entries) {
        try entries(in: range, limit: limit, order: order, in: $0, during: .entries, &allowance)
      }
    }
  }

  /// Reads the first keys of a range as they are at one moment.
  ///
  /// - Throws: ``StoreError``: `invalidArgument` where the limit is negative; `closed`; `full` where no reader slot is
  ///   free; `ioFailed`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    return try lease.read(for: .keys) { try database(in: $0).keys(in: range, limit: limit, order: order) }
  }

  /// Counts the entries of a range.
  ///
  /// All of them are counted at once; those of another range one by one, without reading a value.
  ///
  /// - Throws: ``StoreError``: `closed`; `full` where no reader slot is free; `ioFailed`.
  public func count(in range: KeyRange) throws -> Int {
    try lease.read(for: .count) { try database(in: $0).count(in: range) }
  }

  // MARK: Writing

  /// Makes several changes, all or none of them; see ``DataStore/apply(_:)``.
  ///
  /// They are one transaction. They may be in any order: what can be sorted is sorted first, which LMDB writes fastest. The
  /// values of more than 64 changes, or of more than 64 KiB, are encoded off the caller's actor, those of some thousand on
  /// several threads.
  /// Where another program has removed the named database it throws `conflict`, as `update` does.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try lease.checkOpen(for: .apply)
    try lease.checkWritable(for: .apply)
    guard !changes.isEmpty else { return }
    let encoded =
      if EncodedChanges.areWorthThreads(changes.count) {
        try await EncodedChanges(concurrently: changes) { [self] key in
          try check(key, for: .apply)
        } encode: { [coder] value, key, bytes in
          try coder.append(value, forKey: key, to: &bytes, during: .apply)
        }
      } else {
        try await BulkWork.run(atMost: changes.count) { [self] in try self.encoded(changes, &$0) }
      }
    try await lease.environment.writer.write(for: lease, during: .apply) { transaction in
      try encoded.write(to: changeableDatabase(in: transaction, during: .apply))
    }
  }

  /// Reads, changes and writes back the values of some keys as one step; see ``DataStore/update(_:_:)``.
  ///
  /// `body` runs on the thread of the environment's writer, inside the transaction: other processes wait too. It runs
  /// again where the memory map had to be enlarged.
  public func update<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    try information.check(updateOf: keys)
    let (coder, information) = (coder, information)
    return try await lease.environment.writer.write(for: lease, during: .update) { transaction in
      let database = try changeableDatabase(in: transaction, during: .update)
      var slots = try keys.map { key in
        try database.value(forKey: key).map { try coder.value(of: $0, forKey: key, during: .update) }
      }
      let result = try ErrorOfBody.wrapping { try body(&slots) }
      try information.check(slotCount: slots.count, forUpdateOf: keys)
      // All are encoded before any is written.
      let encoded = try EncodedChanges(
        ChangeBatch(zip(keys, slots).map { key, value in value.map { .set(key, $0) } ?? .remove(key) })
      ) { _ in
        // They were checked before.
      } encode: { value, key, bytes in
        try coder.append(value, forKey: key, to: &bytes, during: .update)
      }
      // LMDB commits a transaction without changes without writing anything.
      if try !encoded.changesNothing(in: database) { try encoded.write(to: database) }
      return result
    }
  }

  /// Makes everything written before durable against power loss; see ``LMDBEnvironment/synchronize()``.
  ///
  /// - Throws: ``StoreError``: `closed`; `conflict`; `ioFailed`.
  public func synchronize() async throws {
    try await lease.environment.writer.synchronize(lease)
  }

  /// Waits for running operations and closes the store; an environment that it opened itself as well.
  ///
  /// - Throws: ``StoreError``: `conflict` if the files were moved, removed or replaced; `ioFailed` if what was written could
  ///   not be made durable. It is closed all the same.
  public func close() async throws {
    do {
      try await lease.close()
    } catch {
      try await ownEnvironment?.close()
      throw error
    }
    try await ownEnvironment?.close()
  }

  // For bytes, encoding costs so little that to look up the generic types of each change would double it.
  @_specialize(where Value == [UInt8])
  private func encoded(_ changes: ChangeBatch<Value>, _ allowance: inout BulkWork.Allowance) throws -> EncodedChanges {
    try EncodedChanges(changes) { key in
      try check(key, for: .apply)
    } encode: { value, key, bytes in
      _ = try allowance.encode {
        let start = bytes.count
        try coder.append(value, forKey: key, to: &bytes, during: .apply)
        return start..<bytes.count
      }
    }
  }

  // MARK: Inside a transaction

  /// Refuses a key that has no byte or too many.
  @inline(__always)
  func check(_ key: StoreKey, for operation: StoreOperation) throws {
    // The information is copied to be asked, which costs more than the question.
    if !(1...StoreKey.maximumLength).contains(key.count) { try information.check(key, for: operation) }
  }

  @inline(__always)
  func database(in transaction: OpaquePointer) -> RawDatabase {
    RawDatabase(transaction: transaction, identifier: identifier)
  }

  /// The named database, to be written to.
  ///
  /// - Throws: ``StoreError`` with `conflict` where another program has removed it: LMDB would follow the pages that it had.
  func changeableDatabase(in transaction: OpaquePointer, during operation: StoreOperation) throws -> RawDatabase {
    let main = RawDatabase(transaction: transaction, identifier: StoreCatalog.mainDatabase)
    guard try main.value(forKey: databaseName) != nil else {
      throw StoreError(
        .conflict, during: operation, store: information.name,
        message: "another program has removed the named database")
    }
    return database(in: transaction)
  }

  @inline(__always)
  func value(forKey key: StoreKey, in transaction: OpaquePointer, during operation: StoreOperation) throws -> Value? {
    guard let bytes = try database(in: transaction).value(forKey: key) else { return nil }
    return try coder.value(of: bytes, forKey: key, during: operation)
  }

  // For bytes, decoding costs so little that to look up the generic types of each entry would double it.
  @_specialize(where Value == [UInt8])
  func entries(
    in range: KeyRange, limit: Int, order: ScanOrder, in transaction: OpaquePointer, during operation: StoreOperation,
    _ allowance: inout BulkWork.Allowance
  ) throws -> [StoreEntry<Value>] {
    guard limit > 0 else { return [] }
    var entries: [StoreEntry<Value>] = []
    entries.reserveCapacity(min(limit, LMDBStore.usualPageSize))
    var scan = try database(in: transaction).scan(range, order: order)
    while entries.count < limit, let (key, value) = try scan.next() {
      try allowance.take(value.count)
      let key = StoreKey(copying: key)
      entries.append(StoreEntry(key: key, value: try coder.value(of: value, forKey: key, during: operation)))
    }
    return entries
  }
}

extension LMDBStore: CustomStringConvertible {
  /// The store's kind and name.
  public var description: String { "LMDBStore(\(information.name))" }
}
#endif
