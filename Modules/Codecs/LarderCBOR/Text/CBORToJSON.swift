#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import Larder

/// Shows CBOR as JSON; see ``CBORItem/json()``.
enum CBORToJSON {
  /// The names that mark what JSON has no form for.
  static let marks: Set<String> = ["$base64", "$tag", "$map", "$float", "$simple", "$diagnostic"]

  /// What stands for an item that JSON cannot say.
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
      // Decided before anything is written: to write the values of a map twice would double with each level of nesting.
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
          // A word says nothing of its sign and payload.
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

  /// Whether the keys of a map are all text, and all different; passes over the map.
  private static func canBeObject(_ head: ItemHead, _ reader: inout CBORReader) throws -> Bool {
    try reader.descend()
    defer { reader.depth -= 1 }
    var remaining = head.isIndefinite ? -1 : Int(clamping: head.argument)
    // By bytes: what Swift takes for equal text may be two keys.
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

  /// Whether a key would be taken for a mark, with any number of `$` in front.
  static func isMark(_ name: String) -> Bool {
    guard name.utf8.first == UInt8(ascii: "$") else { return false }
    return marks.contains("$" + name.drop { $0 == "$" })
  }
}
