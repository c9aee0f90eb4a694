#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The codec writes some types in a form of its own. A type that hands its decoder on, as `URL(from: decoder)`, asks for
/// what that type's own `Codable` writes instead; it is made here of the bytes there are.
extension CBORReader {
  /// The next item as the own `Codable` of its type writes it; `nil` if the item is of no type with another form.
  ///
  /// The reader stays where it is.
  ///
  /// - Parameters:
  ///   - kind: The container that is asked for, which the item is not.
  ///   - asksFor: Whether the container can have a field of a name, and not of any: a type that takes every name wants to
  ///     know what is there, and has another way for what is no map.
  mutating func ownForm(as kind: DecodingLevel.Kind, asksFor: (String) -> Bool) throws -> [UInt8]? {
    let (start, depth) = (next, depth)
    defer { (next, self.depth) = (start, depth) }
    let tag = try readTag()
    let head = try readHead()
    next = start
    switch (kind, tag, head.major) {
    case (.array, CBORWriter.tagOfBytes, .bytes): return try CBORWriter.ownForm(of: try readBytes())
    case (.map, 4, .array) where asksFor("mantissa"): return try CBORWriter.ownForm(of: try Decimal(from: &self))
    case (.map, 32, .text) where asksFor("relative"): return try CBORWriter.ownForm(of: try URL(from: &self))
    case (.map, nil, .simple) where head.float?.isNaN == true && asksFor("mantissa"):
      return try CBORWriter.ownForm(of: Decimal.nan)
    default: return nil
    }
  }

  /// Reads an array of bytes as an array of any numbers.
  @usableFromInline
  mutating func readBytesAsArray<Value>(_ body: (inout CBORReader) throws -> Value) throws -> Value {
    let path = path(to: next)
    let bytes = try CBORWriter.ownForm(of: try readBytes())
    return try bytes.withUnsafeBytes { bytes in
      var reader = CBORReader(bytes)
      reader.sharedUserInfo = sharedUserInfo
      reader.pathFinder = CBORPathFinder(prefix: path)
      return try body(&reader)
    }
  }

  /// Whether the next item is the byte string of a `[UInt8]`, by its tag.
  ///
  /// One without the tag is `Data`, which a type that tries an array first must not find in its place.
  @inlinable
  mutating func isNextAnArrayOfBytes() throws -> Bool {
    guard next < end, next.load(as: UInt8.self) &>> 5 == 6 else { return false }
    return try isNextAByteString(tagged: CBORWriter.tagOfBytes)
  }

  @usableFromInline
  mutating func isNextAByteString(tagged tag: UInt64) throws -> Bool {
    let start = next
    defer { next = start }
    return try readTag() == tag && next < end && next.load(as: UInt8.self) &>> 5 == 2
  }

  /// Whether the next item is a date.
  var isNextADate: Bool {
    guard remainingCount > 3 else { return next < end && next.load(as: UInt8.self) & 0xFE == 0xC0 }
    let first = next.load(as: UInt8.self)
    return first & 0xFE == 0xC0
      || first == 0xD9 && next.load(fromByteOffset: 1, as: UInt8.self) == 0x03
        && next.load(fromByteOffset: 2, as: UInt8.self) == 0xE9
  }
}

extension CBORWriter {
  /// The bytes that the own `Codable` of a value writes.
  fileprivate static func ownForm(of value: some Encodable) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try append(to: &bytes) { try EncodingState.encodeOwnForm(value, with: &$0) }
    return bytes
  }
}
