import Synchronization

/// The codec of an open store, which the store compares with the name in its record.
///
/// A store keeps the name of the codec of its values in a record. It compares the two when it is opened. If several
/// programs can have it open, it also compares them in each commit that writes, in the same transaction, because a newer
/// program may have recorded a newer format since:
///
/// ```swift
/// let format = codecRecord.format                        // before a value is encoded
/// …
/// let name = try codecRecord.name(replacing: recordedName, during: .apply, store: information.name)
/// try codecRecord.checkUnchanged(since: format, during: .apply, store: information.name)
/// if name != recordedName { try record(name) }           // in the same transaction as the write
/// ```
///
/// So an older program never writes over values of a newer one, which it does not understand.
public final class CodecRecord: Sendable {
  /// The format in which values are encoded.
  ///
  /// It changes with the record if the codec has a ``newestName``.
  public struct Format: Sendable, Hashable {
    /// The number of changes between the own format, at 0, and the newest one.
    fileprivate let number: Int

    /// A Boolean value that indicates whether it is the newest one; see ``ValueContext/usesNewestFormat``.
    public var isNewest: Bool { !number.isMultiple(of: 2) }
  }

  /// The name of the codec.
  public let name: String

  /// The recorded names that the codec replaces with its own; see ``Codec/adoptedNames``.
  public let adoptedNames: [String]

  /// The recorded name that stays, because the codec can write that format too; see ``Codec/newestName``.
  public let newestName: String?

  private let changeCount = Atomic(0)

  /// Creates the record of a codec.
  ///
  /// - Parameter codec: The codec.
  public init(_ codec: some Codec) {
    name = codec.name
    adoptedNames = codec.adoptedNames
    newestName = codec.newestName
  }

  /// The format in which values are encoded now.
  public var format: Format {
    Format(number: newestName == nil ? 0 : changeCount.load(ordering: .acquiring))
  }

  /// Compares the codec with the name in the record of a store, and returns the name that the record must have.
  ///
  /// If the record is ``newestName``, or no longer is, the ``format`` changes.
  ///
  /// - Parameters:
  ///   - recordedName: The name in the record.
  ///   - operation: The operation, for the error.
  ///   - store: The name of the store, for the error.
  /// - Returns: The recorded name if it stays, or the ``name`` of the codec, which the store must record with its next write,
  ///   in the same commit.
  /// - Throws: ``StoreError`` with `versionMismatch` if the store has the values of another codec.
  public func name(
    replacing recordedName: String, during operation: StoreOperation, store: String
  ) throws(StoreError) -> String {
    let isNewest = recordedName == newestName
    guard isNewest || recordedName == name || adoptedNames.contains(recordedName) else {
      throw StoreError(
        .versionMismatch, during: operation, store: store,
        message: operation == .open
          ? "the store was written with the codec \(recordedName), not with \(name); open it with the codec "
            + "\(recordedName)"
          : "another program now writes the store with the codec \(recordedName), not with \(name); close the store and "
            + "open it with the codec \(recordedName)")
    }
    let format = format
    if newestName != nil, format.isNewest != isNewest {
      // If another task has made the change at the same time, it is made.
      _ = changeCount.compareExchange(
        expected: format.number, desired: format.number + 1, ordering: .acquiringAndReleasing)
    }
    return isNewest ? recordedName : name
  }

  /// Throws an error if values were encoded in another format than the store has.
  ///
  /// Call it after ``name(replacing:during:store:)``, in the commit.
  ///
  /// - Parameters:
  ///   - format: The ``format`` before the first value was encoded.
  ///   - operation: The operation, for the error.
  ///   - store: The name of the store, for the error.
  /// - Throws: ``StoreError`` with a `conflict` that can be retried, with nothing changed.
  public func checkUnchanged(
    since format: Format, during operation: StoreOperation, store: String
  ) throws(StoreError) {
    guard format != self.format else { return }
    throw StoreError(
      .conflict, during: operation, store: store,
      message: "another program has changed the version in which the store is written; try again", isRetryable: true)
  }
}
