public import Larder

/// A codec that writes values as CBOR (RFC 8949), a small and fast binary format that many languages and tools read.
///
/// It accepts every `Codable` type.
///
/// - Numbers and lengths have their shortest forms, and lengths are definite. The fields of a type keep the order in
///   which the type encodes them, under their names. The keys of a dictionary and the elements of a set are sorted by
///   their bytes (RFC 8949, section 4.2.1). Equal values therefore have equal bytes.
/// - A `Date` has tag 1, or tag 1001 if tag 1 would lose a bit. A `UUID` has tag 37, a `Decimal` tag 4 and a `URL` tag
///   32. `Data` is a byte string, and `[UInt8]` is a byte string with tag 64. Integers of more than 64 bits are
///   bignums.
/// - A type may pass its encoder or decoder on to a value, as a property wrapper does. The codec then reads what the
///   value's own `Codable` conformance writes in place of these forms, and the reverse.
/// - The codec reads any other form that CBOR allows, with the fields in any order. It skips fields that the type does
///   not read and tags that it does not know. It rejects a map with a duplicate key, text that is not UTF-8, nesting
///   deeper than 512 levels, and bytes that are not exactly one well-formed item.
///
/// ```swift
/// let codec: CBORCodec<Note> = .cbor(options: CBOROptions(userInfo: [.author: "Ada"], sortsKeys: true))
/// ```
public struct CBORCodec<Value: Sendable>: Codec {
  private let encodeValue: @Sendable (Value, inout [UInt8]) throws -> Void
  private let decodeValue: @Sendable (RawSpan) throws -> Value

  private let sortsKeys: Bool
  init(
    _ options: CBOROptions,
    encode: @escaping @Sendable (Value, inout [UInt8]) throws -> Void,
    decode: @escaping @Sendable (RawSpan) throws -> Value
  ) {
    sortsKeys = options.sortsKeys
    encodeValue = encode
    decodeValue = decode
  }

  /// `cbor`.
  public var name: String { "cbor" }

  /// `CodecFormat.cbor`.
  public var format: CodecFormat { .cbor }

  /// Appends the encoded value.
  ///
  /// - Throws: `EncodingError`, or an error that the value throws.
  public func encode(_ value: Value, into bytes: inout [UInt8], context: ValueContext) throws {
    do {
      if sortsKeys { try encodeSorted(value, into: &bytes) } else { try encodeValue(value, &bytes) }
    } catch let error as EncodingError {
      throw error.naming(value)
    }
  }

  private func encodeSorted(_ value: Value, into bytes: inout [UInt8]) throws {
    var item: [UInt8] = []
    try encodeValue(value, &item)
    try item.withUnsafeBytes { item in
      var reader = CBORReader(item)
      try MapSorter.append(&reader, to: &bytes)
    }
  }

  /// Decodes a value.
  ///
  /// - Throws: `DecodingError` with the path to the invalid item, or an error that the value throws.
  public func decode(_ bytes: RawSpan, context: ValueContext) throws -> Value {
    try decodeValue(bytes)
  }
}

extension CBORCodec where Value: Codable {
  /// Creates a codec for `Codable` values.
  ///
  /// - Parameter options: Settings for the types and for the order of map keys. Defaults to `CBOROptions()`.
  public init(options: CBOROptions = CBOROptions()) {
    let userInfo = CodingUserInfo(options.userInfo)
    self.init(
      options,
      encode: { value, bytes in
        try CBORWriter.append(to: &bytes) { writer in
          writer.sharedUserInfo = userInfo.map { Unmanaged.passUnretained($0) }
          try EncodingState.encode(value, with: &writer)
        }
      },
      decode: { bytes in try DecodingState.decode(Value.self, from: bytes, userInfo: userInfo) })
  }
}

extension Codec {
  /// A ``CBORCodec`` for `Codable` values.
  ///
  /// ```swift
  /// let users = try await SQLiteStore(path: "users.sqlite", codec: .cbor(User.self))
  /// ```
  ///
  /// - Parameters:
  ///   - type: The type of the values, usually inferred.
  ///   - options: Settings for the types and for the order of map keys. Defaults to `CBOROptions()`.
  public static func cbor<Value: Codable & Sendable>(
    _ type: Value.Type = Value.self, options: CBOROptions = CBOROptions()
  ) -> Self where Self == CBORCodec<Value> {
    CBORCodec(options: options)
  }
}

/// Sorts the keys of all maps in an item by their bytes (RFC 8949, section 4.2.1).
private enum MapSorter {
  /// Appends the reader's next item with its maps sorted.
  ///
  /// The item must be well-formed.
  static func append(_ reader: inout CBORReader, to bytes: inout [UInt8]) throws {
    let start = reader.next
    let head = try reader.readHead()
    func appendAll(upTo end: UnsafeRawPointer) {
      bytes.append(contentsOf: UnsafeRawBufferPointer(start: start, count: end - start))
    }
    switch head.major {
    case .array, .map, .tag: appendAll(upTo: reader.next)
    default:
      reader.next = start
      try reader.skip()
      return appendAll(upTo: reader.next)
    }
    var remaining = head.isIndefinite ? -1 : head.major == .tag ? 1 : Int(head.argument)
    var pairs: [(key: [UInt8], value: [UInt8])] = []
    while try reader.hasElement(&remaining) {
      guard head.major == .map else {
        try append(&reader, to: &bytes)
        continue
      }
      var (key, value): ([UInt8], [UInt8]) = ([], [])
      try append(&reader, to: &key)
      try append(&reader, to: &value)
      pairs.append((key, value))
    }
    pairs.sort { $0.key.lexicographicallyPrecedes($1.key) }
    for pair in pairs { bytes += pair.key + pair.value }
    if head.isIndefinite { bytes.append(0xFF) }
  }
}

/// Settings of a ``CBORCodec`` for its types and for the order of map keys.
///
/// ```swift
/// let codec: CBORCodec<Note> = .cbor(options: CBOROptions(userInfo: [.author: "Ada"], sortsKeys: true))
/// ```
public struct CBOROptions: Sendable {
  /// The values that types find in `Encoder.userInfo` and `Decoder.userInfo`.
  ///
  /// Defaults to an empty dictionary.
  public var userInfo: [CodingUserInfoKey: any Sendable]

  /// A Boolean value that indicates whether the keys of all maps are sorted by their bytes.
  ///
  /// Defaults to `false`. Sorted keys give equal values equal bytes even if their types encode fields in varying order
  /// (RFC 8949, section 4.2.1). The elements of a set keep their order, and so do keys that are maps themselves.
  /// Encoding takes about twice as long. Decoding accepts any order.
  public var sortsKeys: Bool

  /// Creates options.
  ///
  /// - Parameters:
  ///   - userInfo: The values that types find in `userInfo`. Defaults to an empty dictionary.
  ///   - sortsKeys: A Boolean value that indicates whether the keys of all maps are sorted. Defaults to `false`.
  public init(userInfo: [CodingUserInfoKey: any Sendable] = [:], sortsKeys: Bool = false) {
    self.userInfo = userInfo
    self.sortsKeys = sortsKeys
  }
}

/// The `userInfo` of one codec, shared by its readers and writers.
final class CodingUserInfo: Sendable {
  private let content: [CodingUserInfoKey: any Sendable]

  /// Creates the shared values, or returns `nil` if there aren't any.
  init?(_ content: [CodingUserInfoKey: any Sendable]) {
    if content.isEmpty { return nil }
    self.content = content
  }

  var values: [CodingUserInfoKey: Any] { content }
}

extension DataStore where Value == [UInt8] {
  /// Returns a typed view of this byte store, or of a part of it, that encodes `Codable` values with ``CBORCodec``.
  ///
  /// See `TypedView`.
  ///
  /// - Parameters:
  ///   - type: The type of the values.
  ///   - prefix: The prefix of the keys in this store. Defaults to the empty key.
  public func typed<Seen: Codable & Sendable>(_ type: Seen.Type, prefix: StoreKey = "") -> TypedView<Self, Seen> {
    TypedView(self, prefix: prefix, codec: CBORCodec())
  }
}
