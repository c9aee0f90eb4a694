#if LMDB
import CLMDB
public import Larder
import LarderCBOR

/// A store in an LMDB environment: a memory-mapped B+tree that any number of processes can share.
///
/// ```swift
/// let store = try await LMDBStore<User>(path: "users")
/// try await store.setValue(User(name: "Ada"), forKey: "user:1")
/// let user = try store.value(forKey: "user:1")
/// try await store.close()
/// ```
///
/// A read finds a value in the memory map and decodes it on the caller's executor. Many or large values are decoded on
/// the cooperative pool (see "Threads and actors" in the documentation of `Larder`). A read never waits for a writer,
/// but it waits for the disk if the data is not in memory. Writes run one after another on a thread that belongs to the
/// environment.
///
/// The named database of the store holds exactly its entries: the keys unchanged, and the values as encoded by the
/// codec. The name of the codec is recorded in a separate named database, `larder`. A store cannot be opened with a
/// different codec.
///
/// Stores of different types need different names. Within a process, a store cannot be open with two types at the same
/// time, except that `JSONText` and `[UInt8]` may be beside any other type. To detect a wrong name in every process, label
/// the stores with `contents`, such as `"notes"` and `"folders"`. Type names are not recorded, so you may rename types.
///
/// Several stores can share an ``LMDBEnvironment``. It offers transactions across stores and access to bytes without
/// copying.
public final class LMDBStore<Value: Sendable>: DataStore {
  /// The default name of a store.
  public static var defaultName: String { "default" }

  /// The name, limits and durability of the store.
  public let information: StoreInformation

  let handle: EnvironmentHandle
  let coder: ValueCoder<Value>
  let identifier: MDB_dbi

  /// The key of the named database in the main database.
  let mainKey: StoreKey

  let recordedCodec: RecordedCodec

  /// The environment, if the store opened it itself and therefore closes it.
  private let ownEnvironment: LMDBEnvironment?

  /// Opens a store in an environment.
  ///
  /// ```swift
  /// let environment = try await LMDBEnvironment(path: "shop")
  /// let orders = try await LMDBStore(in: environment, name: "orders", codec: .json(Order.self))
  /// ```
  ///
  /// - Parameters:
  ///   - environment: The environment that holds the store.
  ///   - name: The name of the store: 1 to 511 bytes of UTF-8 without NUL. Defaults to `default`. The name `larder` is
  ///     reserved.
  ///   - codec: The codec of the values.
  ///   - contents: A label for the kind of the values, such as `"notes"`, of 1 to 511 bytes. Defaults to `nil`, to
  ///     open a store with any label. The first label with which a writable store is opened is recorded beside the
  ///     codec, and other labels are refused from then on.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the store if it is missing. Defaults to
  ///     `true`.
  /// - Throws: `StoreError`: `invalidArgument` if the name or label is invalid, or if this process has the store open with
  ///   another type; `notFound`; `versionMismatch` if the store was written by a newer version, with a different codec or
  ///   with a different label; `unsupported` if the named database is of a kind that
  ///   stores do not use; `closed`; `full`; `ioFailed`.
  public convenience init(
    in environment: LMDBEnvironment, name: String = LMDBStore.defaultName, codec: some Codec<Value>,
    contents: String? = nil, createsIfMissing: Bool = true
  ) async throws {
    try self.init(
      await UntypedDatabase(
        in: environment, isOwned: false, name: name, createsIfMissing: createsIfMissing, newCodecName: codec.name),
      codec: codec)
    if let contents { try await label(name, contents: contents) }
  }

  /// Opens a store together with its environment.
  ///
  /// ```swift
  /// let photos = try await LMDBStore(path: "photos", codec: .raw, durability: .buffered)
  /// ```
  ///
  /// - Parameters:
  ///   - path: The path of the environment, a folder or a data file; see
  ///     ``LMDBEnvironment/init(path:durability:access:createsIfMissing:busyTimeout:)``.
  ///   - name: The name of the store. Defaults to `default`.
  ///   - codec: The codec of the values.
  ///   - contents: A label for the kind of the values, such as `"notes"`. Defaults to `nil`, to open a store with any
  ///     label.
  ///   - durability: The durability of a write when it returns. Defaults to `Durability.File.synced`.
  ///   - access: The access of the store to its files. Defaults to `StoreAccess.readWrite`.
  ///     With any other access, nothing is created.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the environment or store if it is missing.
  ///     Defaults to `true`.
  /// - Throws: The errors of opening the environment and of opening a store in it.
  public convenience init(
    path: String, name: String = LMDBStore.defaultName, codec: some Codec<Value>, contents: String? = nil,
    durability: Durability.File = .synced, access: StoreAccess = .readWrite, createsIfMissing: Bool = true
  ) async throws {
    let environment = try await LMDBEnvironment(
      path: path, durability: durability, access: access, createsIfMissing: createsIfMissing)
    try self.init(
      await UntypedDatabase(
        in: environment, isOwned: true, name: name, createsIfMissing: createsIfMissing, newCodecName: codec.name),
      codec: codec)
    if let contents { try await label(name, contents: contents) }
  }

  /// Creates a store from its open database.
  ///
  /// - Throws: `StoreError` with `versionMismatch` if it was written with a different codec, and `invalidArgument` if
  ///   this process has it open with another type.
  init(_ database: UntypedDatabase, codec: some Codec<Value>) throws {
    handle = database.handle
    coder = ValueCoder(codec: codec, store: handle.name, maximumSize: SharedEnvironment.maximumValueSize)
    _ = try coder.codecRecord.name(replacing: database.codecName, during: .open, store: handle.name)
    try handle.claimDatabase(for: Value.self)
    var information = handle.information
    information.identity = StoreIdentity()
    information.noteEncryption(by: codec)
    self.information = information
    identifier = database.identifier
    let databaseName = StoreKey(database.name)
    mainKey = DataFileFormat.linked.key(ofDatabase: databaseName)
    recordedCodec = RecordedCodec(coder.codecRecord, ofStore: databaseName)
    ownEnvironment = database.ownEnvironment
  }

  private func label(_ name: String, contents: String) async throws {
    try await handle.withWriter(during: .open) { [handle] in
      try await $0.label(handle, named: name, contents: contents, turn: $1)
    }
  }

  // MARK: Reading

  /// Returns the value of a key.
  ///
  /// The value is decoded on the caller's executor, whatever its size.
  ///
  /// - Throws: `StoreError`: `invalidKey`; `corrupted` or `undecodable` if the value cannot be decoded; `closed`;
  ///   `full` if no reader slot is free; `ioFailed`.
  @_specialize(where Value == [UInt8])
  public func value(forKey key: StoreKey) throws -> Value? {
    try check(key, for: .value)
    return try handle.read(for: .value) { try value(forKey: key, in: $0, during: .value) }
  }

  /// Returns the values of several keys from one consistent snapshot.
  ///
  /// More than 64 values, or more than 64 KiB, are decoded off the caller's actor.
  ///
  /// - Throws: `StoreError`: `invalidKey`; `corrupted` or `undecodable` if a value cannot be decoded; `closed`; `full`
  ///   if no reader slot is free; `ioFailed`.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try information.check(keys, for: .values)
    return try await BulkWork.run(atMost: keys.count) { [self] allowance in
      try handle.read(for: .values) { transaction in
        try keys.map { key in
          guard let bytes = try database(in: transaction).value(forKey: key) else { return nil }
          try allowance.take(bytes.count)
          return try coder.value(of: bytes, forKey: key, during: .values)
        }
      }
    }
  }

  /// Returns the first entries of a range from one consistent snapshot.
  ///
  /// If the limit is above 64, or the entries have more than 64 KiB, they are decoded off the caller's actor.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the limit is negative; `corrupted` or `undecodable` if a value cannot
  ///   be decoded; `closed`; `full` if no reader slot is free; `ioFailed`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try information.check(limit: limit, for: .entries)
    return try await BulkWork.run(atMost: limit) { [self] allowance in
      try handle.read(for: .entries) {
        try entries(in: range, limit: limit, order: order, in: $0, during: .entries, &allowance)
      }
    }
  }

  /// Returns the first keys of a range from one consistent snapshot.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the limit is negative; `closed`; `full` if no reader slot is free;
  ///   `ioFailed`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    return try handle.read(for: .keys) { try database(in: $0).keys(in: range, limit: limit, order: order) }
  }

  /// Returns the number of entries in a range.
  ///
  /// Counting all entries takes constant time. The entries of any other range are counted one by one, without reading
  /// values.
  ///
  /// - Throws: `StoreError`: `closed`; `full` if no reader slot is free; `ioFailed`.
  public func count(in range: KeyRange) throws -> Int {
    try handle.read(for: .count) { try database(in: $0).count(in: range) }
  }

  // MARK: Writing

  /// Applies a batch of changes atomically; see `DataStore.apply(_:)`.
  ///
  /// The changes are one transaction and may be in any order. They are sorted first as far as their semantics allow,
  /// because LMDB writes sorted keys fastest. The values of more than 64 changes, or of more than 64 KiB, are encoded
  /// off the caller's actor; those of several thousand changes are encoded on several threads.
  ///
  /// The method throws `conflict` if another program has removed the named database, as `update` does, and
  /// `versionMismatch` if a newer program has recorded another codec since the store was opened.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try handle.checkOpen(for: .apply)
    try information.checkWritable(for: .apply)
    guard !changes.isEmpty else { return }
    let format = coder.codecRecord.format
    let encoded = try await coder.encoded(changes, for: information, during: .apply)
    try await handle.write(during: .apply) { [self, identifier] transaction, record in
      let database = try changeableDatabase(in: transaction, during: .apply)
      try coder.codecRecord.checkUnchanged(since: format, during: .apply, store: information.name)
      let hasWritten = try encoded.write(to: database)
      try recordCodecName(in: transaction, during: .apply, noting: &record)
      record.append(changes, in: identifier, hasWritten: hasWritten)
      return .commit(())
    }
  }

  /// Reads, changes and writes back the values of several keys atomically; see `DataStore.update(deciding:_:)`.
  ///
  /// `body` runs on the thread of the environment's writer, inside the transaction, so other processes wait for it too.
  /// If the memory map has to be enlarged, it runs again.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try information.check(updateOf: keys)
    return try await handle.write(during: .update) { [self, identifier] transaction, record in
      let database = try changeableDatabase(in: transaction, during: .update)
      let (decision, assigned, changes) = try update(keys, in: database, body)
      // LMDB commits a transaction without changes without writing anything.
      let hasWritten = try changes.map { changes in
        let hasWritten = try changes.write(to: database)
        try recordCodecName(in: transaction, during: .update, noting: &record)
        return hasWritten
      }
      record.append(assigned, in: identifier, hasWritten: hasWritten ?? false)
      return decision
    }
  }

  /// Runs the body of an update, and returns its decision, the keys that it has assigned, and the changes, if there are any.
  private func update<Result>(
    _ keys: [StoreKey], in database: RawDatabase, _ body: (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) throws -> (decision: UpdateDecision<Result>, assigned: [StoreKey], changes: EncodedChanges?) {
    // Bytes of the memory map, which stay in place until the transaction writes.
    let stored = try keys.map { try database.value(forKey: $0) }
    var slots = try slots(of: keys, stored: stored)
    let decision = body(&slots)
    guard decision.isCommit else { return (decision, [], nil) }
    return (decision, slots.assignedIndices.map { keys[$0] }, try changes(in: slots, of: keys, stored: stored))
  }

  // Both are specialized for the same reason as `encoded(_:_:)`.

  /// Decodes the stored bytes of an update.
  @_specialize(where Value == [UInt8])
  private func slots(of keys: [StoreKey], stored: [UnsafeRawBufferPointer?]) throws -> UpdateSlots<Value> {
    UpdateSlots(
      stored: try keys.indices.map { number in
        try stored[number].map { try coder.value(of: $0, forKey: keys[number], during: .update) }
      })
  }

  /// Encodes what an update has changed, before any of it is written, and returns `nil` if that is nothing.
  @_specialize(where Value == [UInt8])
  private func changes(
    in slots: UpdateSlots<Value>, of keys: [StoreKey], stored: [UnsafeRawBufferPointer?]
  ) throws -> EncodedChanges? {
    // In the order in which the changes are encoded.
    let assigned = slots.assignedIndices.filter { slots[$0] != nil || stored[$0] != nil }.sorted { keys[$0] < keys[$1] }
    let changes = assigned.map { number -> BatchChange<Replacement> in
      guard let value = slots[number] else { return .remove(keys[number]) }
      return .set(keys[number], Replacement(value: value, stored: stored[number].map { ArraySlice($0) }))
    }
    var encoded = try EncodedChanges(ChangeBatch(changes)) { _ in
      // The keys were checked before.
    } encode: { replacement, key, bytes in
      try coder.append(replacement.value, forKey: key, replacing: replacement.stored, to: &bytes, during: .update)
    }
    encoded.removeUnchanged(from: assigned.map { stored[$0] })
    return encoded.steps.isEmpty ? nil : encoded
  }

  /// A value of an update, with a copy of the stored bytes that it replaces.
  private struct Replacement: Sendable {
    let value: Value
    let stored: ArraySlice<UInt8>?
  }

  /// Flushes all previous writes to disk, so they survive power loss; see ``LMDBEnvironment/synchronize()``.
  ///
  /// - Throws: `StoreError`: `closed`; `conflict`; `ioFailed`.
  public func synchronize() async throws {
    try await handle.environment.writer.synchronize(handle)
  }

  /// Waits for running operations, then closes the store, and also the environment if the store opened it itself.
  ///
  /// - Throws: `StoreError`: `conflict` if the files were moved, removed or replaced; `ioFailed` if previous writes
  ///   could not be made durable. The store is closed even if an error is thrown.
  public func close() async throws {
    do {
      try await handle.close()
    } catch {
      try await ownEnvironment?.close()
      throw error
    }
    try await ownEnvironment?.close()
  }
}

/// Every commit of this process is reported, also transactions of the environment and writes through other objects. A
/// commit of another process is reported as a change of all keys, within about 50 milliseconds. It may be reported before
/// the preceding one of this process.
extension LMDBStore: ObservableStore {
  /// Observes a range; see `ObservableStore`.
  public func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
    handle.observe(range, of: identifier, observer)
  }
}

extension LMDBStore where Value: Codable {
  /// Opens a store of `Codable` values in an environment, with `CBORCodec`.
  ///
  /// - Parameters:
  ///   - environment: The environment that holds the store.
  ///   - name: The name of the store. Defaults to `default`.
  ///   - contents: A label for the kind of the values, such as `"notes"`. Defaults to `nil`, to open a store with any
  ///     label.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the store if it is missing. Defaults to
  ///     `true`.
  /// - Throws: The same errors as ``init(in:name:codec:contents:createsIfMissing:)``.
  public convenience init(
    in environment: LMDBEnvironment, name: String = LMDBStore.defaultName, contents: String? = nil,
    createsIfMissing: Bool = true
  ) async throws {
    try await self.init(
      in: environment, name: name, codec: CBORCodec(), contents: contents, createsIfMissing: createsIfMissing)
  }

  /// Opens a store of `Codable` values together with its environment, with `CBORCodec`.
  ///
  /// - Parameters:
  ///   - path: The path of the environment, a folder or a data file.
  ///   - name: The name of the store. Defaults to `default`.
  ///   - contents: A label for the kind of the values, such as `"notes"`. Defaults to `nil`, to open a store with any
  ///     label.
  ///   - durability: The durability of a write when it returns. Defaults to `Durability.File.synced`.
  ///   - access: The access of the store to its files. Defaults to `StoreAccess.readWrite`.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the environment or store if it is missing.
  ///     Defaults to `true`.
  /// - Throws: The same errors as ``init(path:name:codec:contents:durability:access:createsIfMissing:)``.
  public convenience init(
    path: String, name: String = LMDBStore.defaultName, contents: String? = nil, durability: Durability.File = .synced,
    access: StoreAccess = .readWrite, createsIfMissing: Bool = true
  ) async throws {
    try await self.init(
      path: path, name: name, codec: CBORCodec(), contents: contents, durability: durability, access: access,
      createsIfMissing: createsIfMissing)
  }
}
#endif
