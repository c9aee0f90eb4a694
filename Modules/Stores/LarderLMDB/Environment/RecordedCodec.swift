#if LMDB
import Larder

/// The codec of an open store, which each write compares with the one in the store's record.
///
/// A newer program that shares the environment may record another codec while the store is open. From then on, this
/// program must not write, because it does not understand the new values.
struct RecordedCodec: ~Copyable, Sendable {
  private let codec: CodecRecord
  private let store: StoreKey

  /// The bytes of a record whose name stays, so a record is only parsed when it has changed.
  private let known = Locked<[UInt8]>([])

  /// Creates the value.
  ///
  /// - Parameters:
  ///   - codec: The codec.
  ///   - store: The name of the named database of the store.
  init(_ codec: CodecRecord, ofStore store: StoreKey) {
    self.codec = codec
    self.store = store
  }

  /// Throws an error if the record of the store has another codec, unless the codec adopts that one.
  ///
  /// A missing record is accepted, as when the store is opened.
  ///
  /// - Throws: ``StoreError``; see ``CodecRecord/name(replacing:during:store:)``. `LMDBError`.
  func check(in transaction: OpaquePointer, _ catalog: StoreCatalog) throws {
    guard let bytes = try catalog.record(of: store, in: transaction), !isKnown(bytes) else { return }
    let record = try catalog.decode(bytes)
    try catalog.check(record)
    let name = try codec.name(replacing: record.codec, during: catalog.operation, store: catalog.store)
    if name == record.codec { known.withLock { $0 = Array(bytes) } }
  }

  /// Records the name of the codec in place of one that it adopts.
  ///
  /// Call it after `check(in:_:)` in a transaction that writes.
  ///
  /// - Returns: A Boolean value that indicates whether the record was changed.
  /// - Throws: ``StoreError``; `LMDBError`.
  func record(in transaction: OpaquePointer, _ catalog: StoreCatalog) throws -> Bool {
    // The new record is not remembered here, because the transaction may be aborted.
    guard !codec.adoptedNames.isEmpty, let bytes = try catalog.record(of: store, in: transaction), !isKnown(bytes)
    else {
      return false
    }
    return try catalog.setCodecName(codec.name, ofStore: store, in: transaction)
  }

  private func isKnown(_ record: UnsafeRawBufferPointer) -> Bool {
    known.withLock { known in known.withUnsafeBytes { $0.hasSameBytes(as: record) } }
  }
}
#endif
