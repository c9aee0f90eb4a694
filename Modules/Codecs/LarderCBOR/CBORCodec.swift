public import Larder

/// Writes values as CBOR (RFC 8949), a binary format that many languages and tools read: small, and fast.
///
/// It takes every `Codable` type, and every type that adopts ``CBORConvertible``, which is faster still.
///
/// - Numbers and lengths have their shortest forms, and lengths are definite. The fields of a type stand in the order in
///   which it encodes them, under their names; the keys of a dictionary and the elements of a set in the order of their
///   bytes (RFC 8949, section 4.2.1). So equal values have equal bytes.
/// - A `Date` has tag 1, or 1001 where tag 1 would lose a bit; a `UUID` tag 37; a `Decimal` tag 4; a `URL` tag 32. `Data`
///   is a byte string, and a `[UInt8]` one with tag 64. Integers of more than 64 bits are bignums.
/// - A type may hand its encoder or its decoder on to a value, like a property wrapper. What the value's own `Codable`
///   writes is read in place of these forms, and the other way round.
/// - What it reads may have any other form that CBOR allows, with the fields in any order; fields that nobody asks for and
///   tags that nobody knows are passed over. It refuses a map that has a key twice, text that is not UTF-8, nesting of
///   more than 512, and whatever is not all of one well-formed item.
public struct CBORCodec<Value: Sendable>: Codec {
  private let encodeValue: @Sendable (Value, inout [UInt8]) throws -> Void
  private let decodeValue: @Sendable (RawSpan) throws -> Value

  private let sortsKeys: Bool

  @usableFromInline
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

  /// ``CodecFormat/binary``.
  public var format: CodecFormat { .binary }

  /// Appends the CBOR of a value.
  ///
  /// - Throws: `EncodingError`, or what the value throws.
  public func encode(_ value: Value, into bytes: inout [UInt8]) throws {
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

  /// Makes a value of CBOR.
  ///
  /// - Throws: `DecodingError` with the path to the place, or what the value throws.
  public func decode(_ bytes: RawSpan) throws -> Value {
    try decodeValue(bytes)
  }
}

extension CBORCodec where Value: Codable {
  /// Makes a codec of `Codable` values; those that adopt ``CBORConvertible`` write and read themselves.
  public init() {
    self.init(options: CBOROptions())
  }

  /// Makes a codec of `Codable` values; those that adopt ``CBORConvertible`` write and read themselves.
  ///
  /// - Parameter options: Settings for the types and for how maps are written.
  public init(options: CBOROptions) {
    let userInfo = CodingUserInfo(options.userInfo)
    if case .convertible(let type) = CodingStrategy<Never>(of: Value.self) {
      self.init(convertible: type, options, userInfo)
    } else {
      self.init(
        options,
        encode: { value, bytes in
          try CBORWriter.append(to: &bytes, userInfo: userInfo) { try EncodingState.encode(value, with: &$0) }
        },
        decode: { bytes in try DecodingState.decode(Value.self, from: bytes, userInfo: userInfo) })
    }
  }

  /// Makes a codec of values whose type is known to the caller as that of `Value`.
  private init<Convertible: CBORConvertible>(
    convertible: Convertible.Type, _ options: CBOROptions, _ userInfo: CodingUserInfo?
  ) {
    self.init(
      options,
      encode: { value, bytes in
        try withUnsafePointer(to: value) { value in
          let value = UnsafeRawPointer(value).assumingMemoryBound(to: Convertible.self)
          try CBORWriter.append(to: &bytes, userInfo: userInfo) { try value.pointee.write(to: &$0) }
        }
      },
      decode: { bytes in
        unsafeBitCast(try CBORReader.read(bytes, userInfo: userInfo) { try Convertible(from: &$0) }, to: Value.self)
      })
  }
}

extension CBORCodec where Value: CBORConvertible {
  /// Makes a codec of values that write and read themselves, for a type that is known where this is called.
  ///
  /// It is a little faster than the one for any `Codable` type, because the compiler sees all of the way.
  @inlinable
  public init() {
    // Without what only options need, so that the compiler puts all of it into one function.
    self.init(
      CBOROptions(),
      encode: { value, bytes in try CBORWriter.append(to: &bytes) { try value.write(to: &$0) } },
      decode: { bytes in try CBORReader.read(bytes) { try Value(from: &$0) } })
  }

  /// Makes a codec of values that write and read themselves, with options.
  ///
  /// - Parameter options: Settings for the types and for how maps are written.
  public init(options: CBOROptions) {
    let userInfo = CodingUserInfo(options.userInfo)
    self.init(
      options,
      encode: { value, bytes in try CBORWriter.append(to: &bytes, userInfo: userInfo) { try value.write(to: &$0) } },
      decode: { bytes in try CBORReader.read(bytes, userInfo: userInfo) { try Value(from: &$0) } })
  }
}

extension Codec {
  /// CBOR of `Codable` values; see ``CBORCodec``.
  ///
  /// - Parameter type: The type of the values; it is usually known from where the codec goes.
  public static func cbor<Value: Codable & Sendable>(_ type: Value.Type = Value.self) -> Self
  where Self == CBORCodec<Value> {
    CBORCodec()
  }

  /// CBOR of `Codable` values, with options; see ``CBORCodec``.
  ///
  /// - Parameters:
  ///   - type: The type of the values; it is usually known from where the codec goes.
  ///   - options: Settings for the types and for how maps are written.
  public static func cbor<Value: Codable & Sendable>(
    _ type: Value.Type = Value.self, options: CBOROptions
  ) -> Self where Self == CBORCodec<Value> {
    CBORCodec(options: options)
  }

  /// CBOR of values that write and read themselves; see ``CBORCodec``.
  ///
  /// - Parameter type: The type of the values; it is usually known from where the codec goes.
  @inlinable
  public static func cbor<Value: CBORConvertible & Sendable>(_ type: Value.Type = Value.self) -> Self
  where Self == CBORCodec<Value> {
    CBORCodec()
  }

  /// CBOR of values that write and read themselves, with options; see ``CBORCodec``.
  ///
  /// - Parameters:
  ///   - type: The type of the values; it is usually known from where the codec goes.
  ///   - options: Settings for the types and for how maps are written.
  public static func cbor<Value: CBORConvertible & Sendable>(
    _ type: Value.Type = Value.self, options: CBOROptions
  ) -> Self where Self == CBORCodec<Value> {
    CBORCodec(options: options)
  }
}
