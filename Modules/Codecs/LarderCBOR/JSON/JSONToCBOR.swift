import Foundation
public import Larder

/// The error of JSON that no CBOR represents; see ``CBORItem/init(_:)-(JSONText)``.
public struct CBORConversionError: RedactedError, CustomStringConvertible {
  /// A text for people that says what is wrong, without any part of the JSON.
  public let description: String
}

/// Converts JSON to CBOR.
///
/// See ``CBORItem/init(_:)-(JSONText)``.
enum JSONToCBOR {
  /// The member names of the tagged objects, which represent values that JSON cannot.
  private static let marks: Set<String> = ["$base64", "$tag", "$map", "$float", "$simple", "$diagnostic"]

  /// Returns whether a name, with any number of `$` in front, would be read as the name of a tagged object.
  static func isMark(_ name: String) -> Bool {
    name.utf8.first == UInt8(ascii: "$") && marks.contains("$" + name.drop { $0 == "$" })
  }

  /// Appends a value as CBOR.
  static func append(_ json: JSONText, to bytes: inout [UInt8]) throws {
    var scanner = JSONScanner(json.bytes[...])
    try appendValue(from: &scanner, to: &bytes)
  }

  /// Appends the value that follows in validated text.
  private static func appendValue(from scanner: inout JSONScanner, to bytes: inout [UInt8]) throws {
    switch scanner.current {
    case UInt8(ascii: "\""):
      append(text: try scanner.string(), to: &bytes)
    case UInt8(ascii: "["):
      try appendContainer(0x80, to: &bytes) { bytes in
        var count = 0
        try scanner.forEachElement {
          count += 1
          try appendValue(from: &$0, to: &bytes)
        }
        return count
      }
    case UInt8(ascii: "{"):
      try appendObject(from: &scanner, to: &bytes)
    case UInt8(ascii: "n"), UInt8(ascii: "t"), UInt8(ascii: "f"):
      let literal = try scanner.value()
      bytes.append(literal.first == UInt8(ascii: "n") ? 0xF6 : literal.first == UInt8(ascii: "t") ? 0xF5 : 0xF4)
    default:
      try append(number: String(decoding: try scanner.value(), as: UTF8.self), to: &bytes)
    }
  }

  private static func append(text: [UInt8], to bytes: inout [UInt8]) {
    appendHead(0x60, UInt64(text.count), to: &bytes)
    bytes += text
  }

  /// Appends an array or a map.
  ///
  /// - Parameters:
  ///   - major: The major type, in the upper three bits.
  ///   - bytes: The bytes.
  ///   - content: A closure that appends the content, and returns the number of elements or pairs.
  private static func appendContainer(
    _ major: UInt8, to bytes: inout [UInt8], _ content: (inout [UInt8]) throws -> Int
  ) rethrows {
    let start = bytes.count
    bytes.append(major)
    let count = try content(&bytes)
    // The head of a short container has the one byte that is there.
    var head: [UInt8] = []
    appendHead(major, UInt64(count), to: &head)
    bytes.replaceSubrange(start...start, with: head)
  }

  private static func append(number text: String, to bytes: inout [UInt8]) throws {
    let tooLarge = CBORConversionError(description: "the number is too large")
    if let small = Int(text) {
      if small >= 0 {
        appendHead(0x00, UInt64(small), to: &bytes)
      } else {
        appendHead(0x20, UInt64(~small), to: &bytes)
      }
    } else if let small = Int128(text) {
      try CBORCodec<Int128>().encode(small, into: &bytes)
    } else if text.contains(where: { ".eE".contains($0) }) {
      guard let number = Double(text), number.isFinite else { throw tooLarge }
      try CBORCodec<Double>().encode(number, into: &bytes)
    } else if text.hasPrefix("-") {
      // A bignum has the distance from -1.
      guard let magnitude = UInt128(text.dropFirst()) else { throw tooLarge }
      bytes += [0xC3, 0x50]
      withUnsafeBytes(of: (magnitude - 1).bigEndian) { bytes += $0 }
    } else {
      guard let number = UInt128(text) else { throw tooLarge }
      try CBORCodec<UInt128>().encode(number, into: &bytes)
    }
  }

  private static func appendObject(from scanner: inout JSONScanner, to bytes: inout [UInt8]) throws {
    // Most objects are no tagged ones. The `$` of a tagged one may be escaped.
    let start = scanner.text[scanner.position...].prefix(3)
    if start.elementsEqual("{\"$".utf8) || start.elementsEqual("{\"\\".utf8) {
      var whole = scanner
      if let members = try JSONText(try whole.value()).members(), try appendTagged(members, to: &bytes) {
        scanner = whole
        return
      }
    }
    try appendContainer(0xA0, to: &bytes) { bytes in
      // Compared by bytes, because strings that Swift considers equal may be different names.
      var names = Set<[UInt8]>()
      try scanner.forEachMember { _, name, scanner in
        let isEscaped = name.starts(with: "$$".utf8) && isMark(String(decoding: name, as: UTF8.self))
        let name = isEscaped ? Array(name.dropFirst()) : name
        guard names.insert(name).inserted else {
          throw CBORConversionError(description: "the object contains this name twice")
        }
        append(text: name, to: &bytes)
        try appendValue(from: &scanner, to: &bytes)
      }
      return names.count
    }
  }

  /// Appends the value that a tagged object represents.
  ///
  /// - Returns: A Boolean value that indicates whether the object is a tagged object. If not, nothing is appended.
  private static func appendTagged(_ members: [JSONText.Member], to bytes: inout [UInt8]) throws -> Bool {
    guard let first = members.first else { return false }
    let value = first.value
    switch (members.map(\.name), try value.string(), value.description) {
    case (["$base64"], let text?, _):
      guard let content = Data(base64Encoded: text) else { return false }
      try CBORCodec<Data>().encode(content, into: &bytes)
    case (["$float"], let text?, _):
      guard let number = ["NaN": Double.nan, "Infinity": .infinity, "-Infinity": -.infinity][text] else { return false }
      try CBORCodec<Double>().encode(number, into: &bytes)
    case (["$simple"], nil, let text):
      guard let number = UInt8(text), number < 24 || number >= 32 else { return false }
      appendHead(0xE0, UInt64(number), to: &bytes)
    case (["$tag", "$value"], nil, let text):
      guard let tag = UInt64(text) else { return false }
      appendHead(0xC0, tag, to: &bytes)
      try append(members[1].value, to: &bytes)
    case (["$diagnostic", "$base64"], let text?, _):
      guard let content = try members[1].value.string().flatMap({ Data(base64Encoded: $0) }) else { return false }
      try append(item: Array(content), shownAs: text, to: &bytes)
    case (["$map"], _, _):
      let pairs = try value.elements()?.map { try $0.elements() } ?? [nil]
      guard pairs.allSatisfy({ $0?.count == 2 }) else { return false }
      appendHead(0xA0, UInt64(pairs.count), to: &bytes)
      for item in pairs.compactMap(\.self).joined() { try append(item, to: &bytes) }
    default: return false
    }
    return true
  }

  /// Appends the bytes of a value that is shown in diagnostic notation.
  private static func append(item content: [UInt8], shownAs text: String, to bytes: inout [UInt8]) throws {
    let notation: String
    do {
      notation = try CBORItem(content).notation()
    } catch is DecodingError {
      throw CBORConversionError(description: "the bytes beside the diagnostic notation are not one CBOR item")
    }
    // If you edit one of the two, you must edit the other, so that no value is misread.
    guard notation == text else {
      throw CBORConversionError(description: "the diagnostic notation does not match the bytes beside it")
    }
    bytes += content
  }

  /// Appends the head of an item, which is a major type in the upper three bits and an argument in its shortest form.
  private static func appendHead(_ major: UInt8, _ argument: UInt64, to bytes: inout [UInt8]) {
    let size = argument < 24 ? 0 : argument <= 0xFF ? 1 : argument <= 0xFFFF ? 2 : argument <= 0xFFFF_FFFF ? 4 : 8
    bytes.append(major | (size == 0 ? UInt8(argument) : 24 + UInt8(size.trailingZeroBitCount)))
    withUnsafeBytes(of: argument.bigEndian) { bytes += $0.suffix(size) }
  }
}
