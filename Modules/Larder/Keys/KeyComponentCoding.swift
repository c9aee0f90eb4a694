import Foundation

/// The type codes of the tuple encoding of FoundationDB.
enum KeyComponentCode {
  static let null: UInt8 = 0x00
  static let bytes: UInt8 = 0x01
  static let string: UInt8 = 0x02
  static let nested: UInt8 = 0x05
  static let longNegative: UInt8 = 0x0B
  /// The integer zero.
  ///
  /// An integer of n bytes has this code plus n, or minus n if it is negative.
  static let zero: UInt8 = 0x14
  static let longPositive: UInt8 = 0x1D
  static let float: UInt8 = 0x20
  static let double: UInt8 = 0x21
  static let `false`: UInt8 = 0x26
  static let `true`: UInt8 = 0x27
  static let uuid: UInt8 = 0x30

  /// The byte that ends bytes, strings and nested components.
  static let terminator: UInt8 = 0x00
  /// The byte that follows a zero that is not a terminator.
  static let escape: UInt8 = 0xFF

  /// Returns whether a byte is a type code.
  static func isKnown(_ code: UInt8) -> Bool {
    switch code {
    case null, bytes, string, nested, longNegative...longPositive, float, double, `false`, `true`, uuid: true
    default: false
    }
  }

  /// Returns the bits of a floating-point number in a form that orders as unsigned integers.
  ///
  /// The sign bit of a positive number is flipped, and all bits of a negative number.
  static func ordered<Bits: FixedWidthInteger & UnsignedInteger>(_ bits: Bits) -> Bits {
    let sign = Bits(1) << (Bits.bitWidth - 1)
    return bits & sign == 0 ? bits ^ sign : ~bits
  }

  /// Returns the bits of a floating-point number from the form that ``ordered(_:)`` returns.
  static func unordered<Bits: FixedWidthInteger & UnsignedInteger>(_ bits: Bits) -> Bits {
    let sign = Bits(1) << (Bits.bitWidth - 1)
    return bits & sign == 0 ? ~bits : bits ^ sign
  }
}

/// A decoder of components in the tuple encoding of FoundationDB.
///
/// The key must have at most ``StoreKey/maximumLength`` bytes. This limits the depth of nested components.
struct KeyComponentDecoder {
  private let key: StoreKey
  private let bytes: [UInt8]
  private var position = 0

  init(key: StoreKey) {
    self.key = key
    bytes = key.bytes
  }

  mutating func components() throws -> [KeyComponent] {
    var components: [KeyComponent] = []
    while position < bytes.count {
      components.append(try component(code: try next()))
    }
    return components
  }

  static func error(_ message: String, key: StoreKey) -> StoreError {
    StoreError(.invalidKey, during: .decodeKey, key: key, message: "the key does not consist of components: \(message)")
  }

  private func malformed(_ message: String) -> StoreError {
    KeyComponentDecoder.error("\(message) at byte \(position)", key: key)
  }

  private mutating func next() throws -> UInt8 {
    guard position < bytes.count else { throw malformed("unexpected end") }
    defer { position += 1 }
    return bytes[position]
  }

  private mutating func component(code: UInt8) throws -> KeyComponent {
    switch code {
    case KeyComponentCode.null:
      return .null
    case KeyComponentCode.bytes:
      return .bytes(try escapedBytes())
    case KeyComponentCode.string:
      guard let string = String(validating: try escapedBytes(), as: UTF8.self) else {
        throw malformed("invalid UTF-8")
      }
      return .string(string)
    case KeyComponentCode.nested:
      return .nested(try nestedComponents())
    case KeyComponentCode.longNegative:
      return .integer(try longInteger(length: ~(try next()), isNegative: true))
    case KeyComponentCode.longNegative + 1..<KeyComponentCode.zero:
      return .integer(try integer(length: Int(KeyComponentCode.zero - code), isNegative: true))
    case KeyComponentCode.zero..<KeyComponentCode.longPositive:
      return .integer(try integer(length: Int(code - KeyComponentCode.zero), isNegative: false))
    case KeyComponentCode.longPositive:
      return .integer(try longInteger(length: try next(), isNegative: false))
    case KeyComponentCode.float:
      return .float(Float(bitPattern: KeyComponentCode.unordered(try bigEndian())))
    case KeyComponentCode.double:
      return .double(Double(bitPattern: KeyComponentCode.unordered(try bigEndian())))
    case KeyComponentCode.false:
      return .boolean(false)
    case KeyComponentCode.true:
      return .boolean(true)
    case KeyComponentCode.uuid:
      return .uuid(UUID(uuid: try fixed(16).withUnsafeBytes { $0.loadUnaligned(as: uuid_t.self) }))
    default:
      throw malformed("unknown type code 0x\(Hexadecimal.text(of: [code]))")
    }
  }

  private mutating func escapedBytes() throws -> [UInt8] {
    var content: [UInt8] = []
    while true {
      let byte = try next()
      if byte == KeyComponentCode.terminator {
        guard position < bytes.count, bytes[position] == KeyComponentCode.escape else { return content }
        position += 1
      }
      content.append(byte)
    }
  }

  private mutating func nestedComponents() throws -> [KeyComponent] {
    var components: [KeyComponent] = []
    while true {
      let code = try next()
      if code == KeyComponentCode.terminator {
        guard position < bytes.count, bytes[position] == KeyComponentCode.escape else { return components }
        position += 1
        components.append(.null)
      } else {
        components.append(try component(code: code))
      }
    }
  }

  private mutating func longInteger(length: UInt8, isNegative: Bool) throws -> Int128 {
    guard length > 8 else { throw malformed("integer not in its shortest form") }
    return try integer(length: Int(length), isNegative: isNegative)
  }

  private mutating func integer(length: Int, isNegative: Bool) throws -> Int128 {
    guard length <= 16 else { throw malformed("integer of \(length) bytes, but only 128 bits are supported") }
    var magnitude: UInt128 = 0
    for byte in try fixed(length) {
      magnitude = magnitude << 8 | UInt128(isNegative ? ~byte : byte)
    }
    guard length == 16 - magnitude.leadingZeroBitCount / 8 else {
      throw malformed("integer not in its shortest form")
    }
    guard let positive = Int128(exactly: magnitude) else {
      guard isNegative, magnitude == Int128.min.magnitude else { throw malformed("integer of more than 128 bits") }
      return .min
    }
    return isNegative ? -positive : positive
  }

  private mutating func bigEndian<Bits: FixedWidthInteger>() throws -> Bits {
    try fixed(Bits.bitWidth / 8).reduce(0) { $0 << 8 | Bits($1) }
  }

  private mutating func fixed(_ length: Int) throws -> ArraySlice<UInt8> {
    guard bytes.count - position >= length else { throw malformed("unexpected end") }
    defer { position += length }
    return bytes[position..<position + length]
  }
}

/// An encoder of components in the tuple encoding of FoundationDB.
struct KeyComponentEncoder {
  private(set) var bytes: [UInt8] = []

  mutating func append(_ components: [KeyComponent], isNested: Bool = false) {
    for component in components {
      append(component, isNested: isNested)
    }
  }

  private mutating func append(_ component: KeyComponent, isNested: Bool) {
    switch component {
    case .null:
      bytes.append(KeyComponentCode.null)
      // A zero alone would end the nested component.
      if isNested { bytes.append(KeyComponentCode.escape) }
    case .bytes(let content):
      bytes.append(KeyComponentCode.bytes)
      appendEscaped(content)
    case .string(let string):
      bytes.append(KeyComponentCode.string)
      appendEscaped(string.utf8)
    case .nested(let components):
      bytes.append(KeyComponentCode.nested)
      append(components, isNested: true)
      bytes.append(KeyComponentCode.terminator)
    case .integer(let integer):
      append(integer)
    case .float(let float):
      bytes.append(KeyComponentCode.float)
      appendBigEndian(KeyComponentCode.ordered(float.bitPattern))
    case .double(let double):
      bytes.append(KeyComponentCode.double)
      appendBigEndian(KeyComponentCode.ordered(double.bitPattern))
    case .boolean(let boolean):
      bytes.append(boolean ? KeyComponentCode.true : KeyComponentCode.false)
    case .uuid(let uuid):
      bytes.append(KeyComponentCode.uuid)
      withUnsafeBytes(of: uuid.uuid) { bytes.append(contentsOf: $0) }
    }
  }

  private mutating func appendEscaped(_ content: some Sequence<UInt8>) {
    for byte in content {
      bytes.append(byte)
      if byte == KeyComponentCode.terminator { bytes.append(KeyComponentCode.escape) }
    }
    bytes.append(KeyComponentCode.terminator)
  }

  private mutating func append(_ integer: Int128) {
    let length = 16 - integer.magnitude.leadingZeroBitCount / 8
    // A negative number is the complement of its magnitude, so that the more negative number sorts first.
    let pattern = integer < 0 ? ~integer.magnitude : integer.magnitude
    switch (integer < 0, length <= 8) {
    case (false, true): bytes.append(KeyComponentCode.zero + UInt8(length))
    case (true, true): bytes.append(KeyComponentCode.zero - UInt8(length))
    case (false, false): bytes += [KeyComponentCode.longPositive, UInt8(length)]
    case (true, false): bytes += [KeyComponentCode.longNegative, ~UInt8(length)]
    }
    withUnsafeBytes(of: pattern.bigEndian) { bytes.append(contentsOf: $0.suffix(length)) }
  }

  private mutating func appendBigEndian(_ integer: some FixedWidthInteger) {
    withUnsafeBytes(of: integer.bigEndian) { bytes.append(contentsOf: $0) }
  }
}
