/// A conversion of stored values of older versions to a newer type, for ``VersionedCodec``.
///
/// A migration decodes the values of one version as the type that they had then, and converts them. To convert them
/// step by step, append the next migration with ``then(from:_:_:)``. Each step takes the type that the step before it
/// returns, which the compiler checks:
///
/// ```swift
/// let migration = ValueMigration(from: 1, .json(UserV1.self)) { UserV2(name: $0.name, email: nil) }
///   .then(from: 2, .json()) { User($0) }
/// ```
///
/// `migration` reads the values of versions 1 and 2 as `User`. When version 4 comes, add another step and leave the
/// others as they are.
public struct ValueMigration<Value: Sendable>: Sendable {
  /// A function that reads the values of one version.
  struct Reader: Sendable {
    let version: Int
    let codecName: String
    let read: @Sendable (RawSpan, ValueContext) throws -> Value
  }

  let readers: [Reader]
}

extension ValueMigration {
  /// Creates a migration of the values of one version.
  ///
  /// ```swift
  /// let migration = ValueMigration(from: 1, .json(UserV1.self)) { User(name: $0.name, email: nil) }
  /// let codec = try JSONCodec<User>().versioned(2, migration)
  /// ```
  ///
  /// - Parameters:
  ///   - version: The version of the values; 0 for values that were written without a version.
  ///   - codec: The codec that they were written with. It must have the name of the codec that ``VersionedCodec`` wraps.
  ///   - migrate: A closure that converts a value. It must return the same value each time, because a value is
  ///     converted at each reading until it is written again.
  public init<Old: Sendable>(
    from version: Int, _ codec: some Codec<Old>, _ migrate: @escaping @Sendable (Old) throws -> Value
  ) {
    let reader = Reader(version: version, codecName: codec.name) { bytes, context in
      let old = try codec.decode(bytes, context: context)
      return try MigrationError.wrapping(version) { try migrate(old) }
    }
    self.init(readers: [reader])
  }

  /// Returns this migration with another step that also reads the values of one more version.
  ///
  /// ```swift
  /// let migration = ValueMigration(from: 1, .json(UserV1.self)) { UserV2(name: $0.name, email: nil) }
  ///   .then(from: 2, .json()) { User($0) }
  /// ```
  ///
  /// - Parameters:
  ///   - version: The version of the values that this migration returns.
  ///   - codec: The codec with which values of that version were written.
  ///   - migrate: A closure that converts such a value.
  public func then<New: Sendable>(
    from version: Int, _ codec: some Codec<Value>, _ migrate: @escaping @Sendable (Value) throws -> New
  ) -> ValueMigration<New> {
    let earlier = readers.map { reader in
      ValueMigration<New>.Reader(version: reader.version, codecName: reader.codecName) { bytes, context in
        let old = try reader.read(bytes, context)
        return try MigrationError.wrapping(version) { try migrate(old) }
      }
    }
    return ValueMigration<New>(readers: earlier + ValueMigration<New>(from: version, codec, migrate).readers)
  }
}

/// An older version in which a ``VersionedCodec`` writes values until all programs read the newest one.
///
/// Properties that the older type lacks are not stored until then.
///
/// ```swift
/// let codec = try CBORCodec<User>().versioned(
///   2, ValueMigration(from: 1, .cbor(UserV1.self)) { User(name: $0.name, email: nil) },
///   writing: OlderVersion(1, .cbor()) { UserV1(name: $0.name) })
/// ```
public struct OlderVersion<Value: Sendable>: Sendable {
  /// The version.
  public let version: Int

  let codecName: String
  let write: @Sendable (Value, inout [UInt8], ValueContext) throws -> Void

  /// Creates a version to write.
  ///
  /// - Parameters:
  ///   - version: The version of the values; 0 to write them without a version.
  ///   - codec: The codec of the values of that version. It must have the name of the codec that ``VersionedCodec`` wraps.
  ///   - convert: A closure that converts a value. A ``ValueMigration`` from the version must convert it back.
  public init<Old: Sendable>(
    _ version: Int, _ codec: some Codec<Old>, _ convert: @escaping @Sendable (Value) throws -> Old
  ) {
    self.version = version
    codecName = codec.name
    write = { try codec.encode(convert($0), into: &$1, context: $2) }
  }
}

/// An error that reports that the closure of a ``ValueMigration`` has thrown.
///
/// A store reports it as ``StoreError/Code/undecodable``, because the stored bytes are sound.
public struct MigrationError: StoreErrorConvertible {
  /// The version that the value could not be converted from.
  public let version: Int

  /// The error that the closure threw.
  public let underlying: any Error

  /// ``StoreError/Code/undecodable``.
  public var storeErrorCode: StoreError.Code { .undecodable }

  fileprivate static func wrapping<Result>(_ version: Int, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch {
      throw MigrationError(version: version, underlying: error)
    }
  }
}

extension MigrationError: CustomStringConvertible {
  /// The version and the underlying error, as text for people.
  public var description: String { "the migration from version \(version) failed: \(underlying)" }
}
