import Foundation

/// The codec writes some types in a form of its own. A type that passes its decoder on, as in `URL(from: decoder)`,
/// expects the form that the `Codable` conformance writes. This extension converts the bytes to that form.
extension CBORReader {
  /// Returns the next item in the form that the `Codable` conformance of its type writes, or `nil` if its type has no
  /// other form.
  ///
  /// The reader does not move.
  ///
  /// - Parameters:
  ///   - kind: The container that was requested, and that the item is not.
  ///   - asksFor: A closure that returns whether the container has a key with a given name. It returns `false` for keys
  ///     that accept every name, because their type reads whatever fields there are, and handles an item that is not a
  ///     map in its own way.
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

  /// Reads an array of bytes as an array of numbers of any type.
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

  /// A Boolean value that indicates whether the next item is a byte string with the tag of a `[UInt8]`.
  ///
  /// A byte string without the tag is `Data`. A type that first tries to read an array must not find one there.
  mutating func isNextAnArrayOfBytes() throws -> Bool {
    guard next < end, next.load(as: UInt8.self) &>> 5 == 6 else { return false }
    return try isNextAByteString(tagged: CBORWriter.tagOfBytes)
  }
  mutating func isNextAByteString(tagged tag: UInt64) throws -> Bool {
    let start = next
    defer { next = start }
    return try readTag() == tag && next < end && next.load(as: UInt8.self) &>> 5 == 2
  }

  /// A Boolean value that indicates whether the next item is a date.
  var isNextADate: Bool {
    guard remainingCount > 3 else { return next < end && next.load(as: UInt8.self) & 0xFE == 0xC0 }
    let first = next.load(as: UInt8.self)
    return first & 0xFE == 0xC0
      || first == 0xD9 && next.load(fromByteOffset: 1, as: UInt8.self) == 0x03
        && next.load(fromByteOffset: 2, as: UInt8.self) == 0xE9
  }
}

extension CBORWriter {
  /// Returns the bytes that the `Codable` conformance of a value writes.
  fileprivate static func ownForm(of value: some Encodable) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try append(to: &bytes) { try EncodingState.encode(value, with: &$0, inOwnForm: true) }
    return bytes
  }
}
