/// The version of a stored value, and the bytes of the value itself, as ``VersionedCodec`` writes them.
///
/// Use it in a program that needs the versions without the types of the values, such as a report. The place of the
/// version depends on the format of the base codec:
///
/// - JSON: `{"$version":3,"$value":…}`. The value is the second member.
/// - CBOR: tag 1281454678 around an array of the version and the value. In bytes, `DA 4C 61 72 56` (the tag, "LarV"),
///   `82` (an array of two), the version as an unsigned integer, and the item of the value.
/// - Any other format: the same bytes as in CBOR up to the version, followed by those of the base codec.
///
/// A JSON or CBOR value of any other form has version 0.
public struct VersionFrame: Sendable, Hashable {
  /// The version of the value; 0 if the bytes do not state it.
  public let version: Int

  /// The part of the bytes that the base codec has written.
  public let value: Range<Int>

  /// The CBOR tag, a number for private use that is not registered.
  private static let tag: UInt32 = 0x4C61_7256

  /// The head of the tag and of the array of two.
  private static let head: [UInt8] = [0xDA] + tag.bigEndianBytes + [0x82]

  private static let versionName = "$version"
  private static let valueName = "$value"
}

extension VersionFrame {
  /// Finds the version of a value.
  ///
  /// - Parameters:
  ///   - bytes: The bytes that a ``VersionedCodec`` or its base has written.
  ///   - format: The format of the base.
  /// - Throws: ``ValueVersionError``: `undecodable` if a JSON object has exactly the members `$version` and `$value`,
  ///   but in the other order, or with a version that is not a whole number from 1, because it may be a value from
  ///   before versions; `corrupted` if the version is damaged, or missing in a format other than JSON and CBOR.
  ///   ``JSONSyntaxError``.
  public init(of bytes: RawSpan, format: CodecFormat) throws {
    switch format {
    case .json: try self.init(ofJSON: bytes)
    case .cbor, .binary: try self.init(ofBinary: bytes, hasVersionZero: format == .cbor)
    }
  }

  /// Appends a value with its version.
  ///
  /// - Parameters:
  ///   - version: The version, at least 1.
  ///   - format: The format of the base.
  ///   - bytes: The array that the method appends to.
  ///   - encode: A closure that appends the bytes of the value.
  /// - Throws: The error that `encode` throws.
  public static func append(
    version: Int, format: CodecFormat, to bytes: inout [UInt8], value encode: (inout [UInt8]) throws -> Void
  ) rethrows {
    switch format {
    case .json:
      bytes.append(contentsOf: "{\"\(versionName)\":\(version),\"\(valueName)\":".utf8)
      try encode(&bytes)
      bytes.append(UInt8(ascii: "}"))
    case .cbor, .binary:
      bytes.append(contentsOf: head)
      CBORHead.append(CBORHead.unsigned, max(0, version), to: &bytes)
      try encode(&bytes)
    }
  }

  // MARK: JSON

  private init(ofJSON bytes: RawSpan) throws {
    self.init(version: 0, value: 0..<bytes.byteCount)
    guard VersionFrame.mayHaveVersion(json: bytes) else { return }
    var scanner = JSONScanner(bytes.withUnsafeBytes { Array($0)[...] })
    var names: [String] = []
    var parts: [ArraySlice<UInt8>] = []
    try scanner.forEachMember { _, name, scanner in
      let part = try scanner.value()
      // More than three members are not needed to know that this is no version.
      guard names.count < 3 else { return }
      names.append(String(decoding: name, as: UTF8.self))
      parts.append(part)
    }
    try scanner.expectEnd()
    guard names.count == 2, Set(names) == [VersionFrame.versionName, VersionFrame.valueName] else { return }
    guard names[0] == VersionFrame.versionName, let version = Int(String(decoding: parts[0], as: UTF8.self)),
      version > 0
    else {
      throw ValueVersionError(
        .undecodable,
        "an object of \(VersionFrame.versionName) and \(VersionFrame.valueName) must have them in this order, with a "
          + "version from 1")
    }
    self.init(version: version, value: parts[1].startIndex..<parts[1].endIndex)
  }

  /// Returns whether a JSON text is an object whose first member can be one of the two.
  private static func mayHaveVersion(json bytes: RawSpan) -> Bool {
    bytes.withUnsafeBytes { bytes in
      var rest = bytes[...]
      func next() -> UInt8? {
        rest = rest.drop { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 }
        return rest.popFirst()
      }
      guard next() == UInt8(ascii: "{"), next() == UInt8(ascii: "\"") else { return false }
      // An escape can stand for the dollar sign.
      return rest.first == UInt8(ascii: "$") || rest.first == UInt8(ascii: "\\")
    }
  }

  // MARK: CBOR and other formats

  private init(ofBinary bytes: RawSpan, hasVersionZero: Bool) throws {
    self = try bytes.withUnsafeBytes { bytes throws(ValueVersionError) in
      let head = VersionFrame.head
      guard bytes.starts(with: head.dropLast()) else {
        guard hasVersionZero else { throw ValueVersionError(.corrupted, "the value does not begin with its version") }
        return VersionFrame(version: 0, value: 0..<bytes.count)
      }
      var start = head.count
      guard bytes.count > start, bytes[start - 1] == head[start - 1],
        let version = CBORHead.read(CBORHead.unsigned, in: bytes, at: &start),
        version > 0
      else { throw ValueVersionError(.corrupted, "the version of the value is damaged") }
      return VersionFrame(version: version, value: start..<bytes.count)
    }
  }
}

/// An error that is thrown if the version of a stored value is damaged, newer than your program, or has no migration.
public struct ValueVersionError: StoreErrorConvertible, RedactedError, Hashable {
  /// The code with which a store reports the error: `versionMismatch` if the version is newer than your program,
  /// `undecodable` if an older one has no migration, and `corrupted` if it is damaged.
  public let storeErrorCode: StoreError.Code

  /// A text for people that says what is wrong, without any part of the value.
  public let message: String

  /// The version of the value, or `nil` if it is unknown.
  public let version: Int?

  init(_ code: StoreError.Code, _ message: String, version: Int? = nil) {
    storeErrorCode = code
    self.message = message
    self.version = version
  }
}

extension ValueVersionError: CustomStringConvertible {
  /// The message.
  public var description: String { message }
}
