/// A codec that stores a version with each value, and reads the values of older versions with migrations.
///
/// ```swift
/// let codec = try JSONCodec<User>().versioned(2, ValueMigration(from: 1, .json(UserV1.self)) { User($0) })
/// ```
///
/// A value of an older version is decoded as its own type and converted when it is read. The next write of the value
/// stores it in the new version. ``DataStore/migrateAll(in:batchSize:progress:)`` does so for all values.
///
/// Reading a value of a newer version throws ``StoreError/Code/versionMismatch``. The value stays as it is, and other
/// values are readable.
///
/// ``VersionFrame`` describes the stored bytes. The name of the codec is that of its base, followed by `+v` and the version.
///
/// ## Older programs
///
/// A store records the name of its codec. The first write of a program with a newer version records that version. From then
/// on, programs with an older one can read the values of their own versions, and can neither write nor open the store:
/// that throws `versionMismatch`. They would remove what only newer values have.
///
/// If programs of both versions write for some time, as while a deployment replaces one server after the other, first
/// deploy a program that reads the new version and writes the old one, with an ``OlderVersion``:
///
/// ```swift
/// let codec = try JSONCodec<User>().versioned(
///   2, ValueMigration(from: 1, .json(UserV1.self)) { User($0) }, writing: OlderVersion(1, .json()) { UserV1($0) })
/// ```
///
/// When it has replaced all older programs, deploy the next one without `writing`. Its first write to a store raises
/// the recorded version, and the other programs then write the new version to this store too. <doc:Migrations> has the steps.
///
/// ## Stores without versions
///
/// If the base writes JSON or CBOR, a value without a version is of version 0. With a migration from version 0, the
/// codec can open a store of the base codec, as ``adoptedNames`` says. The store is unchanged until the first write,
/// which records the name of this codec. From then on, the store refuses programs with the base codec.
///
/// Before you adopt a JSON store, make sure that no value in it is an object of exactly the members `$version` and
/// `$value`, because it has the form of a value with a version. ``JSONCodec`` writes such members in the other order by
/// default. Then reading throws ``StoreError/Code/undecodable``, so the value is not mistaken.
///
/// ## Other codecs around it
///
/// Call ``Codec/versioned(_:_:writing:)-(Int,ValueMigration<Self.Value>...,OlderVersion<Self.Value>?)`` first, before expiry,
/// compression and encryption: `.versioned(…).expiring().compressed()`. Then the migrations need no knowledge of them, and
/// `json+v1+expiring` adopts `json+expiring`.
public struct VersionedCodec<Base: Codec>: Codec {
  /// The codec of the values of the newest version.
  public let base: Base

  /// The newest version of the values.
  public let version: Int

  /// The name of the format: the name of the base, followed by `+v` and the version that the codec writes.
  ///
  /// It is the name of the base alone if the codec still writes version 0.
  public let name: String

  /// The names of the formats of older versions.
  ///
  /// If a migration reads values without a version, they begin with the name of the base and those that it adopts.
  public let adoptedNames: [String]

  /// The name of the format of ``version``, while the codec writes an older one.
  public let newestName: String?

  /// The version that the codec writes, unless a store has a newer one.
  private let older: OlderVersion<Base.Value>?

  private let readers: [Int: @Sendable (RawSpan, ValueContext) throws -> Base.Value]

  /// Returns the suffix of the names of the formats of a version, such as `+v2`, which is empty for version 0.
  public static func nameSuffix(ofVersion version: Int) -> String { version == 0 ? "" : "+v\(version)" }

  /// Creates a codec.
  ///
  /// - Parameters:
  ///   - base: The codec of the values of the newest version.
  ///   - version: The newest version, from 1. Increment it whenever the type of the values changes.
  ///   - migrations: The migrations from older versions. They must cover every version from the oldest one that the
  ///     program can meet. Defaults to an empty list.
  ///   - older: The version to write until a store records a newer one. Defaults to `nil`, for `version`.
  /// - Throws: ``StoreError`` with `invalidArgument` if the version is less than 1; if there is no migration from the older
  ///   version to write, or its codec has another name than the base; if a version between the oldest migration and
  ///   `version` has no migration, or two; if a migration is from `version` or a newer one; if the codec of a migration has another name than the base; or if a migration is from version 0 and
  ///   the base writes neither JSON nor CBOR, because a value without a version is not recognizable then.
  public init(
    _ base: Base, version: Int, migrations: [ValueMigration<Base.Value>] = [],
    writing older: OlderVersion<Base.Value>? = nil
  ) throws {
    let readers = migrations.flatMap(\.readers).sorted { $0.version < $1.version }
    let problem =
      VersionedCodec.problem(of: readers, version: version, base: base)
      ?? older.flatMap { VersionedCodec.problem(of: $0, readers, base: base) }
    if let problem {
      throw StoreError(.invalidArgument, during: .open, message: problem)
    }
    self.base = base
    self.version = version
    self.readers = Dictionary(uniqueKeysWithValues: readers.map { ($0.version, $0.read) })
    self.older = older
    func name(of version: Int) -> String { base.name + VersionedCodec.nameSuffix(ofVersion: version) }
    let written = older?.version ?? version
    self.name = name(of: written)
    let unversioned = readers.first?.version == 0 && written > 0 ? [base.name] + base.adoptedNames : []
    // Also those without a migration, of which there may be no value any more.
    adoptedNames = unversioned + (1..<max(1, written)).map(name(of:))
    newestName = older.map { _ in name(of: version) }
  }

  private static func problem(
    of older: OlderVersion<Base.Value>, _ readers: [ValueMigration<Base.Value>.Reader], base: Base
  ) -> String? {
    if older.codecName != base.name {
      return
        "version \(older.version) is to be written with the codec \(older.codecName), but the values have the codec "
        + base.name
    }
    guard !readers.contains(where: { $0.version == older.version }) else { return nil }
    return "version \(older.version) is to be written, but there is no migration from it"
  }

  private static func problem(of readers: [ValueMigration<Base.Value>.Reader], version: Int, base: Base) -> String? {
    guard version >= 1 else { return "the version must be at least 1, not \(version)" }
    guard !base.name.contains(/\+v[0-9]/) else { return "the codec \(base.name) has versions already" }
    if let other = readers.first(where: { $0.codecName != base.name }) {
      return "the migration from version \(other.version) reads the codec \(other.codecName), but the values have the "
        + "codec \(base.name)"
    }
    guard let oldest = readers.first?.version else { return nil }
    guard oldest >= 0 else { return "a migration must be from version 0 or newer, not \(oldest)" }
    if oldest == 0, base.format == .binary {
      return "the migration from version 0 is not possible, because values of the codec \(base.name) without a "
        + "version cannot be recognized"
    }
    for (expected, reader) in zip(oldest..., readers) where reader.version != expected {
      return reader.version < expected
        ? "there are two migrations from version \(reader.version)"
        : "the migration from version \(expected) is missing"
    }
    let next = oldest + readers.count
    guard next != version else { return nil }
    return next < version
      ? "the migration from version \(next) is missing"
      : "the newest version is \(version), so there must be no migration from version \(next - 1)"
  }

  /// The format of the base.
  public var format: CodecFormat { base.format }

  /// A Boolean value that indicates whether the base encrypts the values.
  public var encryptsValues: Bool { base.encryptsValues }

  /// Appends the version and the bytes of a value.
  ///
  /// - Throws: The error that the base throws.
  public func encode(_ value: Base.Value, into bytes: inout [UInt8], context: ValueContext) throws {
    let older = context.usesNewestFormat ? nil : older.flatMap { isBelowStored($0, context) ? nil : $0 }
    let version = older?.version ?? version
    let context = context.forBase { try valuePart(of: $0, ofVersion: version) }
    func encode(_ bytes: inout [UInt8]) throws {
      if let older {
        try older.write(value, &bytes, context)
      } else {
        try base.encode(value, into: &bytes, context: context)
      }
    }
    guard version > 0 else { return try encode(&bytes) }
    try VersionFrame.append(version: version, format: format, to: &bytes, value: encode)
  }

  /// Returns whether the value that an update replaces has a newer version, whose own fields the older one would drop.
  private func isBelowStored(_ older: OlderVersion<Base.Value>, _ context: ValueContext) -> Bool {
    guard let stored = context.stored else { return false }
    do {
      return try stored.withUnsafeBytes { try VersionFrame(of: $0.bytes, format: format).version } > older.version
    } catch {
      // The bytes of a codec around this one that passes on its own must not fail a write.
      return false
    }
  }

  /// Returns the bytes of the value, unless they are those of another version.
  private func valuePart(of stored: ArraySlice<UInt8>, ofVersion version: Int) throws -> ArraySlice<UInt8>? {
    let frame = try stored.withUnsafeBytes { try VersionFrame(of: $0.bytes, format: format) }
    return frame.version == version ? stored.dropFirst(frame.value.lowerBound).prefix(frame.value.count) : nil
  }

  /// Returns a value, after converting one of an older version.
  ///
  /// - Throws: ``ValueVersionError`` if the version is newer, has no migration, or is damaged; ``MigrationError``;
  ///   ``JSONSyntaxError``; the error that the base or the codec of a migration throws.
  public func decode(_ bytes: RawSpan, context: ValueContext) throws -> Base.Value {
    let frame = try VersionFrame(of: bytes, format: format)
    let value = bytes.extracting(frame.value)
    if frame.version == version { return try base.decode(value, context: context) }
    if let read = readers[frame.version] { return try read(value, context) }
    let isNewer = frame.version > version
    throw ValueVersionError(
      isNewer ? .versionMismatch : .undecodable,
      isNewer
        ? "the value has version \(frame.version), but this program reads only versions up to \(version)"
        : "the value has version \(frame.version), but this program has no migration from it",
      version: frame.version)
  }
}

extension Codec {
  /// Returns this codec with a version in each value; see ``VersionedCodec``.
  ///
  /// ```swift
  /// let codec = try JSONCodec<User>().versioned(
  ///   2, ValueMigration(from: 1, .json(UserV1.self)) { old in User(email: "", name: old.name) })
  /// let users = try await JSONFileStore(path: folder + "/users.json", codec: codec)
  /// ```
  ///
  /// - Parameters:
  ///   - version: The newest version, from 1.
  ///   - migrations: The migrations from older versions. Each covers one version, or several steps.
  ///   - older: The version to write until a store records a newer one, for rolling deployments. Defaults to `nil`, for
  ///     `version`.
  /// - Throws: ``StoreError`` with `invalidArgument`; see ``VersionedCodec/init(_:version:migrations:writing:)``.
  public func versioned(
    _ version: Int, _ migrations: ValueMigration<Value>..., writing older: OlderVersion<Value>? = nil
  ) throws -> VersionedCodec<Self> {
    try VersionedCodec(self, version: version, migrations: migrations, writing: older)
  }
}

extension AuthenticatedCodec {
  /// Returns this codec with a version in each value, which is not authenticated.
  ///
  /// - Parameters:
  ///   - version: The newest version, from 1.
  ///   - migrations: The migrations from older versions.
  ///   - older: The version to write until a store records a newer one. Defaults to `nil`, for `version`.
  /// - Throws: ``StoreError`` with `invalidArgument`; see ``VersionedCodec/init(_:version:migrations:writing:)``.
  @available(
    *, deprecated,
    message: "a version around an authenticated codec can be forged; call versioned(…) before encrypted(…)"
  )
  public func versioned(
    _ version: Int, _ migrations: ValueMigration<Value>..., writing older: OlderVersion<Value>? = nil
  ) throws -> VersionedCodec<Self> {
    try VersionedCodec(self, version: version, migrations: migrations, writing: older)
  }
}
