import Synchronization

/// The codec of an open store, which the store compares with the name in its record.
///
/// A store keeps the name of the codec of its values in a record. It compares the two when it is opened. If several
/// programs can have it open, it also compares them in each commit that writes, in the same transaction, because a newer
/// program may have recorded a newer format since:
///
/// ```swift
/// let name = try codecRecord.name(replacing: recordedName, during: .apply, store: information.name)
/// if name != recordedName { try record(name) }        // in the same transaction as the write
/// ```
///
/// So an older program never writes over values of a newer one, which it does not understand.
public final class CodecRecord: Sendable {
  /// The name of the codec.
  public let name: String

  /// The recorded names that the codec replaces with its own; see ``Codec/adoptedNames``.
  public let adoptedNames: [String]

  /// The recorded name that stays, because the codec can write that format too; see ``Codec/newestName``.
  public let newestName: String?

  private let isNewest = Atomic(false)

  /// Creates the record of a codec.
  ///
  /// - Parameter codec: The codec.
  public init(_ codec: some Codec) {
    name = codec.name
    adoptedNames = codec.adoptedNames
    newestName = codec.newestName
  }

  /// Whether the store records ``newestName``; see ``ValueContext/usesNewestFormat``.
  public var usesNewestFormat: Bool { newestName != nil && isNewest.load(ordering: .relaxed) }

  /// Compares the codec with the name in the record of a store, and returns the name that the record must have.
  ///
  /// - Parameters:
  ///   - recordedName: The name in the record.
  ///   - operation: The operation. In any other than `open`, a program that still writes an older format cannot commit what
  ///     it has encoded if the record has ``newestName``.
  ///   - store: The name of the store in errors.
  /// - Returns: The recorded name if it stays, or the ``name`` of the codec, which the store must record with its next write,
  ///   in the same commit.
  /// - Throws: ``StoreError``: `versionMismatch` if the store has the values of another codec; `conflict`, which can be
  ///   retried, if another program has recorded a newer format in the meantime. The next attempt writes that format.
  public func name(
    replacing recordedName: String, during operation: StoreOperation, store: String
  ) throws(StoreError) -> String {
    if recordedName == name { return name }
    if recordedName == newestName {
      let wasNewest = isNewest.exchange(true, ordering: .relaxed)
      guard wasNewest || operation == .open else {
        throw StoreError(
          .conflict, during: operation, store: store,
          message: "another program now writes the store with the codec \(recordedName), and so does the next attempt",
          isRetryable: true)
      }
      return recordedName
    }
    if adoptedNames.contains(recordedName) { return name }
    throw StoreError(
      .versionMismatch, during: operation, store: store,
      message: operation == .open
        ? "the store was written with the codec \(recordedName), not with \(name); open it with the codec "
          + "\(recordedName)"
        : "another program now writes the store with the codec \(recordedName), not with \(name); close the store and "
          + "open it with the codec \(recordedName)")
  }
}
