#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import Larder

/// Turns JSON into CBOR; see ``CBORItem/init(_:)-(JSONText)``.
enum JSONToCBOR {
  /// A value of JSON.
  private indirect enum Value {
    case word(String)
    case number(String, Int)
    case string(String)
    case array([Value])
    case object([(name: String, place: Int, value: Value)])
  }

  /// Writes a value.
  static func write(_ json: JSONText, to writer: inout CBORWriter) throws {
    var scanner = JSONScanner(json.bytes[...])
    let value = try read(&scanner)
    try write(value, scanner, to: &writer)
  }

  private static func read(_ scanner: inout JSONScanner) throws -> Value {
    switch scanner.current {
    case UInt8(ascii: "\""):
      return .string(String(decoding: try scanner.string(), as: UTF8.self))
    case UInt8(ascii: "["):
      var elements: [Value] = []
      try scanner.expect(UInt8(ascii: "["))
      if scanner.skip(UInt8(ascii: "]")) { return .array([]) }
      repeat {
        scanner.skipWhitespace()
        elements.append(try read(&scanner))
      } while scanner.skip(UInt8(ascii: ","))
      try scanner.expect(UInt8(ascii: "]"))
      return .array(elements)
    case UInt8(ascii: "{"):
      var members: [(name: String, place: Int, value: Value)] = []
      try scanner.forEachMember { place, name, scanner in
        scanner.skipWhitespace()
        members.append((String(decoding: name, as: UTF8.self), place, try read(&scanner)))
      }
      return .object(members)
    case let first:
      let place = scanner.position
      let text = String(decoding: try scanner.value(), as: UTF8.self)
      let isNumber = first == UInt8(ascii: "-") || first.map { (0x30...0x39).contains($0) } == true
      return isNumber ? .number(text, place) : .word(text)
    }
  }

  private static func write(_ value: Value, _ scanner: JSONScanner, to writer: inout CBORWriter) throws {
    switch value {
    case .word("null"): writer.writeNull()
    case .word(let word): writer.put(word == "true")
    case .string(let text): writer.put(text: text)
    case .number(let text, let place):
      if let small = Int64(text) {
        writer.putInteger(small)
      } else if text.utf8.contains(where: { [UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E")].contains($0) }) {
        guard let number = Double(text), number.isFinite else {
          throw scanner.error("the number is too large", at: place)
        }
        writer.putFloat(number)
      } else {
        let digits = text.utf8.first == UInt8(ascii: "-") ? text.dropFirst() : text[...]
        guard let magnitude = UInt128(digits) else { throw scanner.error("the number is too large", at: place) }
        let isNegative = digits.count != text.count && magnitude > 0
        try writer.putBignum(isNegative: isNegative, isNegative ? magnitude - 1 : magnitude)
      }
    case .array(let elements):
      try writer.writeArray { array in
        for element in elements { try write(element, scanner, to: &array) }
      }
    case .object(let members):
      if try writeMarked(members, scanner, to: &writer) { return }
      var names: Set<[UInt8]> = []
      try writer.writeMap { map in
        for member in members {
          let isEscaped = CBORToJSON.isMark(member.name) && member.name.hasPrefix("$$")
          let name = isEscaped ? String(member.name.dropFirst()) : member.name
          guard names.insert(Array(name.utf8)).inserted else {
            throw scanner.error("this name stands in the object twice", at: member.place)
          }
          map.put(text: name)
          try write(member.value, scanner, to: &map)
        }
      }
    }
  }

  /// Writes what an object with a mark stands for.
  ///
  /// - Returns: Whether it is one.
  private static func writeMarked(
    _ members: [(name: String, place: Int, value: Value)], _ scanner: JSONScanner, to writer: inout CBORWriter
  ) throws -> Bool {
    switch (members.first.map { ($0.name, $0.value) }, members.count) {
    case (("$base64", .string(let text))?, 1):
      guard let bytes = Data(base64Encoded: text) else { return false }
      bytes.withUnsafeBytes { writer.put(bytes: $0) }
    case (("$float", .string(let text))?, 1):
      guard let number = ["NaN": Double.nan, "Infinity": .infinity, "-Infinity": -.infinity][text] else { return false }
      writer.putFloat(number)
    case (("$simple", .number(let text, _))?, 1):
      guard let number = UInt8(text), number < 24 || number >= 32 else { return false }
      writer.putSimple(number)
    case (("$tag", .number(let text, _))?, 2):
      guard let tag = UInt64(text), members[1].name == "$value" else { return false }
      try writer.writeTag(tag) { try write(members[1].value, scanner, to: &$0) }
    case (("$diagnostic", .string(let text))?, 2):
      guard members[1].name == "$base64", case .string(let base64) = members[1].value,
        let bytes = Data(base64Encoded: base64)
      else { return false }
      // Whoever changes the one has to change the other, so that nothing is taken for what it is not.
      guard let item = item(of: bytes), item.diagnosticDescription == text else {
        throw scanner.error("the diagnostic notation is not that of the bytes beside it", at: members[0].place)
      }
      item.write(to: &writer)
    case (("$map", .array(let pairs))?, 1):
      let items = pairs.compactMap { pair -> [Value]? in
        guard case .array(let pair) = pair, pair.count == 2 else { return nil }
        return pair
      }
      guard items.count == pairs.count else { return false }
      try writer.writeMap { map in
        for item in items.joined() { try write(item, scanner, to: &map) }
      }
    default: return false
    }
    return true
  }

  private static func item(of bytes: Data) -> CBORItem? {
    do {
      return try CBORItem(bytes)
    } catch {
      // They are no item, whatever the reason.
      return nil
    }
  }
}

extension CBORWriter {
  /// Writes a simple value.
  fileprivate mutating func putSimple(_ number: UInt8) {
    putHead(0xE0, UInt64(number))
    itemCount += 1
  }
}
