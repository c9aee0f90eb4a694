import Foundation
public import Larder

extension CBORItem {
  /// Creates an item from JSON.
  ///
  /// The result of ``json()`` gives the same item in its preferred form.
  ///
  /// Numbers without a fraction and an exponent become integers. All other numbers become floating-point numbers.
  ///
  /// - Parameter json: The JSON.
  /// - Throws: ``CBORConversionError`` if a number is too large, an object has a duplicate name, or a diagnostic
  ///   notation does not match the bytes beside it. `DecodingError` if the item would nest more than 512 levels deep.
  public init(_ json: JSONText) throws {
    var bytes: [UInt8] = []
    try JSONToCBOR.append(json, to: &bytes)
    try self.init(bytes)
  }

  /// Returns the item in diagnostic notation (RFC 8949, section 8), on one line.
  ///
  /// Strings, arrays and maps of indefinite length are shown like others.
  ///
  /// - Throws: An error, but never in practice, because every item is validated.
  public func notation() throws -> String {
    try CBORValue(self).notation
  }

  /// Returns the item as JSON.
  ///
  /// Integers, finite floating-point numbers, text, `true`, `false`, `null`, arrays, and maps whose keys are text have
  /// the same form in JSON. All others become tagged objects, which ``init(_:)-(JSONText)`` reads back:
  ///
  /// - a byte string: `{"$base64":"AQID"}`
  /// - a tag: `{"$tag":1,"$value":1700000000}`
  /// - a map with a key that is not text, or with a duplicate key: `{"$map":[[1,"one"],[2,"two"]]}`
  /// - a floating-point number that is not finite: `{"$float":"NaN"}`, `Infinity` or `-Infinity`
  /// - `undefined` and other simple values: `{"$simple":23}`
  ///
  /// A map key that looks like one of these names gets another `$` in front. A NaN with a sign or a payload, and an
  /// item that would nest more than 512 levels deep as JSON, become their diagnostic notation and their bytes:
  /// `{"$diagnostic":"{[1]: {[2]: …}}","$base64":"oYEBoYEC…"}`.
  ///
  /// ```swift
  /// let item = try CBORItem([0xA1, 0x61, 0x6E, 0x18, 0x2A])
  /// print(try item.json())  // {"n":42}
  /// ```
  ///
  /// - Throws: An error, but never in practice, because every item is validated.
  public func json() throws -> JSONText {
    let value = try CBORValue(self)
    do {
      return try JSONText(value.json())
    } catch is JSONSyntaxError {
      // A tagged object nests deeper than the item that it represents.
      return try JSONText(value.diagnostic(of: bytes))
    }
  }
}

/// A CBOR value of any type.
indirect enum CBORValue {
  case integer(Int128)
  case bytes([UInt8])
  case text(String)
  case array([CBORValue])
  case map([(key: CBORValue, value: CBORValue)])
  case tag(UInt64, CBORValue)
  case float(Double)
  /// `true`, `false`, `null`, `undefined`, and numbers without a meaning.
  case simple(UInt8)

  init(_ item: CBORItem) throws {
    var bytes = item.bytes[...]
    self = try CBORValue(from: &bytes)
  }

  /// Reads a value from the start of well-formed bytes.
  private init(from bytes: inout ArraySlice<UInt8>) throws {
    let start = bytes
    guard let first = bytes.popFirst() else { throw Malformed() }
    let information = first & 0x1F
    let isIndefinite = information == 31
    var argument = UInt64(information)
    if (24...27).contains(information) {
      argument = 0
      for _ in 0..<(1 << (information - 24)) { argument = argument << 8 | UInt64(bytes.popFirst() ?? 0) }
    }
    /// Reads the elements of an array or map, or the chunks of a string.
    func elements(perCount: UInt64, from bytes: inout ArraySlice<UInt8>) throws -> [CBORValue] {
      var elements: [CBORValue] = []
      if isIndefinite {
        while bytes.first != 0xFF { elements.append(try CBORValue(from: &bytes)) }
        bytes = bytes.dropFirst()
      } else {
        for _ in 0..<argument * perCount { elements.append(try CBORValue(from: &bytes)) }
      }
      return elements
    }
    switch first >> 5 {
    case 0: self = .integer(Int128(argument))
    case 1: self = .integer(-1 - Int128(argument))
    case 2, 3:
      var content: [UInt8] = []
      if isIndefinite {
        for chunk in try elements(perCount: 1, from: &bytes) {
          if case .bytes(let part) = chunk { content += part }
          if case .text(let part) = chunk { content += part.utf8 }
        }
      } else {
        guard argument <= UInt64(bytes.count) else { throw Malformed() }
        content = Array(bytes.prefix(Int(argument)))
        bytes = bytes.dropFirst(content.count)
      }
      self = first >> 5 == 2 ? .bytes(content) : .text(String(decoding: content, as: UTF8.self))
    case 4: self = .array(try elements(perCount: 1, from: &bytes))
    case 5:
      let elements = try elements(perCount: 2, from: &bytes)
      self = .map(stride(from: 0, to: elements.count - 1, by: 2).map { (elements[$0], elements[$0 + 1]) })
    case 6: self = .tag(argument, try CBORValue(from: &bytes))
    default:
      guard (25...27).contains(information) else {
        self = .simple(UInt8(truncatingIfNeeded: argument))
        return
      }
      self = .float(try CBORCodec<Double>().decode(Array(start.prefix(start.count - bytes.count)).span.bytes))
    }
  }

  private struct Malformed: Error {}

  /// The digits of a tagged bignum of more than 64 and at most 128 bits, or `nil` for any other value.
  var bignum: String? {
    guard case .tag(let tag, .bytes(let bytes)) = self, tag == 2 || tag == 3, (9...16).contains(bytes.count),
      bytes[0] != 0
    else { return nil }
    let argument = bytes.reduce(0 as UInt128) { $0 << 8 | UInt128($1) }
    if tag == 2 { return "\(argument)" }
    // The smallest value is -1 - UInt128.max.
    return argument < .max ? "-\(argument + 1)" : nil
  }

  /// The value in diagnostic notation.
  var notation: String {
    if let bignum { return bignum }
    return switch self {
    case .integer(let number): "\(number)"
    case .bytes(let bytes): "h'\(bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())'"
    case .text(let text): JSONText(string: text).description
    case .array(let elements): "[\(elements.map(\.notation).joined(separator: ", "))]"
    case .map(let pairs): "{\(pairs.map { "\($0.key.notation): \($0.value.notation)" }.joined(separator: ", "))}"
    case .tag(let tag, let content): "\(tag)(\(content.notation))"
    case .float(let number): CBORValue.text(of: number)
    case .simple(let number):
      switch number {
      case 20: "false"
      case 21: "true"
      case 22: "null"
      case 23: "undefined"
      default: "simple(\(number))"
      }
    }
  }

  /// Returns a number as JSON writes it, with a point or an exponent, or the word for a number that is not finite.
  private static func text(of number: Double) -> String {
    if number.isNaN { return "NaN" }
    if number.isInfinite { return number < 0 ? "-Infinity" : "Infinity" }
    return number.description
  }

  /// The value as JSON, which may nest too deep.
  func json() throws -> String {
    if let bignum { return bignum }
    switch self {
    case .integer, .text, .simple(20...22): return notation
    case .bytes(let bytes): return "{\"$base64\":\"\(Data(bytes).base64EncodedString())\"}"
    case .array(let elements): return "[\(try elements.map { try $0.json() }.joined(separator: ","))]"
    case .map(let pairs):
      // Compared by bytes, because strings that Swift considers equal may be different keys.
      var names: Set<[UInt8]> = []
      let isObject = pairs.allSatisfy { pair in
        if case .text(let name) = pair.key { names.insert(Array(name.utf8)).inserted } else { false }
      }
      let members = try pairs.map { pair in
        guard isObject, case .text(let name) = pair.key else {
          return "[\(try pair.key.json()),\(try pair.value.json())]"
        }
        return try "\(JSONText(string: (JSONToCBOR.isMark(name) ? "$" : "") + name)):\(pair.value.json())"
      }.joined(separator: ",")
      return isObject ? "{\(members)}" : "{\"$map\":[\(members)]}"
    case .tag(let tag, let content): return "{\"$tag\":\(tag),\"$value\":\(try content.json())}"
    case .float(let number):
      if number.isFinite { return notation }
      if !number.isNaN || number.bitPattern == Double.nan.bitPattern { return "{\"$float\":\"\(notation)\"}" }
      // The word `NaN` omits its sign and payload.
      var bytes: [UInt8] = []
      try CBORCodec<Double>().encode(number, into: &bytes)
      return diagnostic(of: bytes)
    case .simple(let number): return "{\"$simple\":\(number)}"
    }
  }

  /// Returns the tagged object for a value that JSON cannot represent otherwise.
  ///
  /// - Parameter bytes: The bytes of the value.
  func diagnostic(of bytes: [UInt8]) -> String {
    "{\"$diagnostic\":\(JSONText(string: notation)),\"$base64\":\"\(Data(bytes).base64EncodedString())\"}"
  }
}
