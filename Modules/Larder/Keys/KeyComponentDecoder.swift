#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Reads components from the tuple encoding of FoundationDB.
///
/// The key has at most ``StoreKey/maximumLength`` bytes, which bounds how deep components can nest.
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
    StoreError(.invalidKey, during: .decodeKey, key: key, message: "the key is not made of components: \(message)")
  }

  private func malformed(_ message: String) -> StoreError {
    KeyComponentDecoder.error("\(message) at byte \(position)", key: key)
  }

  private mutating func next() throws -> UInt8 {
    guard position < bytes.count else { throw malformed("it ends early") }
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
        throw malformed("a string is not UTF-8")
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
      throw malformed("0x\(Hexadecimal.text(of: [code])) is no type code")
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
    guard length > 8 else { throw malformed("an integer is not in its shortest form") }
    return try integer(length: Int(length), isNegative: isNegative)
  }

  private mutating func integer(length: Int, isNegative: Bool) throws -> Int128 {
    guard length <= 16 else { throw malformed("an integer of \(length) bytes is beyond 128 bits") }
    var magnitude: UInt128 = 0
    for byte in try fixed(length) {
      magnitude = magnitude << 8 | UInt128(isNegative ? ~byte : byte)
    }
    guard length == 16 - magnitude.leadingZeroBitCount / 8 else {
      throw malformed("an integer is not in its shortest form")
    }
    guard let positive = Int128(exactly: magnitude) else {
      guard isNegative, magnitude == Int128.min.magnitude else { throw malformed("an integer is beyond 128 bits") }
      return .min
    }
    return isNegative ? -positive : positive
  }

  private mutating func bigEndian<Bits: FixedWidthInteger>() throws -> Bits {
    try fixed(Bits.bitWidth / 8).reduce(0) { $0 << 8 | Bits($1) }
  }

  private mutating func fixed(_ length: Int) throws -> ArraySlice<UInt8> {
    guard bytes.count - position >= length else { throw malformed("it ends early") }
    defer { position += length }
    return bytes[position..<position + length]
  }
}
