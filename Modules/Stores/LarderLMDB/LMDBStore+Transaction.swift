#if LMDB
import CLMDB
import Larder

/// Methods that work inside a transaction, for the store itself and for ``LMDBTransaction``.
extension LMDBStore {
  /// The number of entries that a scan reserves capacity for.
  private static var usualPageSize: Int { 1000 }

  /// Throws `invalidKey` if a key is empty or too long.
  @inline(__always)
  func check(_ key: StoreKey, for operation: StoreOperation) throws {
    // Checked here first: copying the information costs more than this check.
    if !(1...StoreKey.maximumLength).contains(key.count) { try information.check(key, for: operation) }
  }

  @inline(__always)
  func database(in transaction: OpaquePointer) -> RawDatabase {
    RawDatabase(transaction: transaction, identifier: identifier)
  }

  /// Returns the named database for writing.
  ///
  /// - Throws: ``StoreError``, with nothing changed: `conflict` if another program has removed the database, because
  ///   LMDB would follow its former pages; `versionMismatch` if another program has recorded another codec.
  func changeableDatabase(in transaction: OpaquePointer, during operation: StoreOperation) throws -> RawDatabase {
    let main = RawDatabase(transaction: transaction, identifier: RawDatabase.main)
    guard try main.value(forKey: mainKey) != nil else {
      throw StoreError(
        .conflict, during: operation, store: information.name,
        message: "another program has removed the named database of the store; close the store and open it again")
    }
    try recordedCodec.check(in: transaction, StoreCatalog(store: information.name, operation: operation))
    return database(in: transaction)
  }

  /// Records the name of the codec in a transaction that writes, if a codec that it adopts is recorded.
  ///
  /// - Throws: ``StoreError``; `LMDBError`.
  func recordCodecName(
    in transaction: OpaquePointer, during operation: StoreOperation, noting changes: inout CommitRecord<MDB_dbi>
  ) throws {
    let catalog = StoreCatalog(store: information.name, operation: operation)
    if try recordedCodec.record(in: transaction, catalog) { changes.noteWrite() }
  }

  @inline(__always)
  func value(forKey key: StoreKey, in transaction: OpaquePointer, during operation: StoreOperation) throws -> Value? {
    guard let bytes = try database(in: transaction).value(forKey: key) else { return nil }
    return try coder.value(of: bytes, forKey: key, during: operation)
  }

  // Specialized because decoding bytes is so cheap that looking up the generic types of each entry would double the
  // cost.
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
#endif
