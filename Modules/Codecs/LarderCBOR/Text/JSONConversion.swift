#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import Larder

/// Converts CBOR to JSON.
///
/// See ``CBORItem/json()``.
enum CBORToJSON {
  /// The member names of the tagged objects, which represent values that JSON cannot.
  static let marks: Set<String> = ["$base64", "$tag", "$map", "$float", "$simple", "$diagnostic"]

  /// Returns the tagged object for an item that JSON cannot represent otherwise.
  static func diagnostic(of item: CBORItem) -> [UInt8] {
    var json = Array("{\"$diagnostic\":".utf8)
    JSONWriting.append(string: item.diagnosticDescription.utf8, to: &json)
    json += ",\"$base64\":\"\(Data(item.bytes).base64EncodedString())\"}".utf8
    return json
  }

  /// Appends the next item.
  static func append(_ reader: inout CBORReader, to json: inout [UInt8]) throws {
    let start = reader.next
    let head = try reader.readHead()
    switch head.major {
    case .unsigned: json += "\(head.argument)".utf8
    case .negative: json += "\(-1 - Int128(head.argument))".utf8
    case .bytes:
      reader.next = start
      json += "{\"$base64\":\"\(Data(try reader.readBytes()).base64EncodedString())\"}".utf8
    case .text:
      reader.next = start
      JSONWriting.append(string: try reader.readText().utf8, to: &json)
    case .array:
      try reader.descend()
      var remaining = head.isIndefinite ? -1 : Int(clamping: head.argument)
      json.append(UInt8(ascii: "["))
      var isFirst = true
      while try reader.hasElement(&remaining) {
        if !isFirst { json.append(UInt8(ascii: ",")) }
        isFirst = false
        try append(&reader, to: &json)
      }
      json.append(UInt8(ascii: "]"))
      reader.depth -= 1
    case .map:
      // Decided before anything is written. Writing the values of a map twice would double the work with each level of
      // nesting.
      let content = reader.next
      let isObject = try canBeObject(head, &reader)
      reader.next = content
      if isObject {
        try appendObject(head, &reader, to: &json)
      } else {
        try appendPairs(head, &reader, to: &json)
      }
    case .tag:
      if let number = try reader.bignum(tag: head.argument) {
        json += number.utf8
        return
      }
      try reader.descend()
      json += "{\"$tag\":\(head.argument),\"$value\":".utf8
      try append(&reader, to: &json)
      json.append(UInt8(ascii: "}"))
      reader.depth -= 1
    case .simple:
      if let float = head.float {
        let text = CBORDiagnostics.text(of: float)
        if float.isNaN, float.bitPattern != Double.nan.bitPattern {
          // The word `NaN` omits its sign and payload.
          let bytes = UnsafeRawBufferPointer(start: start, count: reader.next - start)
          json += diagnostic(of: CBORItem(checked: Array(bytes)))
        } else {
          json += (float.isFinite ? text : "{\"$float\":\"\(text)\"}").utf8
        }
      } else {
        let isWord = (20...22).contains(head.argument)
        json += (isWord ? CBORDiagnostics.simple(head) : "{\"$simple\":\(head.argument)}").utf8
      }
    }
  }

  /// Skips a map and returns whether its keys are all text and all different.
  private static func canBeObject(_ head: ItemHead, _ reader: inout CBORReader) throws -> Bool {
    try reader.descend()
    defer { reader.depth -= 1 }
    var remaining = head.isIndefinite ? -1 : Int(clamping: head.argument)
    // Compared by bytes, because strings that Swift considers equal may be different keys.
    var names: Set<[UInt8]> = []
    while try reader.hasElement(&remaining) {
      guard reader.next < reader.end, reader.next.load(as: UInt8.self) >> 5 == 3,
        case let name = try reader.readText(), names.insert(Array(name.utf8)).inserted
      else { return false }
      try reader.skip()
    }
    return true
  }

  /// Appends a map as an object.
  private static func appendObject(_ head: ItemHead, _ reader: inout CBORReader, to json: inout [UInt8]) throws {
    try reader.descend()
    defer { reader.depth -= 1 }
    var remaining = head.isIndefinite ? -1 : Int(clamping: head.argument)
    var isFirst = true
    json.append(UInt8(ascii: "{"))
    while try reader.hasElement(&remaining) {
      let name = try reader.readText()
      if !isFirst { json.append(UInt8(ascii: ",")) }
      isFirst = false
      JSONWriting.append(string: (isMark(name) ? "$" + name : name).utf8, to: &json)
      json.append(UInt8(ascii: ":"))
      try append(&reader, to: &json)
    }
    json.append(UInt8(ascii: "}"))
  }

  private static func appendPairs(_ head: ItemHead, _ reader: inout CBORReader, to json: inout [UInt8]) throws {
    try reader.descend()
    var remaining = head.isIndefinite ? -1 : Int(clamping: head.argument)
    json += "{\"$map\":[".utf8
    var isFirst = true
    while try reader.hasElement(&remaining) {
      json += (isFirst ? "[" : ",[").utf8
      isFirst = false
      try append(&reader, to: &json)
      json.append(UInt8(ascii: ","))
      try append(&reader, to: &json)
      json.append(UInt8(ascii: "]"))
    }
    json += "]}".utf8
    reader.depth -= 1
  }

  /// Returns whether a key, with any number of `$` in front, would be read as the name of a tagged object.
  static func isMark(_ name: String) -> Bool {
    guard name.utf8.first == UInt8(ascii: "$") else { return false }
    return marks.contains("$" + name.drop { $0 == "$" })
  }
}

/// Converts JSON to CBOR.
///
/// See ``CBORItem/init(_:)-(JSONText)``.
enum JSONToCBOR {
  /// A JSON value.
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
            throw scanner.error("the object contains this name twice", at: member.place)
          }
          map.put(text: name)
          try write(member.value, scanner, to: &map)
        }
      }
    }
  }

  /// Writes the value that a tagged object represents.
  ///
  /// - Returns: Whether the object is a tagged object.
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
      // If you edit one of the two, you must edit the other, so that no value is misread.
      guard let item = item(of: bytes), item.diagnosticDescription == text else {
        throw scanner.error("the diagnostic notation does not match the bytes beside it", at: members[0].place)
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
      // The bytes are not an item, whatever the reason.
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
