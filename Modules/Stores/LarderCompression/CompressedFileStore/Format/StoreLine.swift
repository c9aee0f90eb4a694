#if Compression
import Larder

/// A line of the text of a compressed file that is a change.
///
/// ```
/// {"set":"user:1","value":{"name":"Ada"}}
/// {"set":"picture","base64":"iVBORw0KGgo="}
/// {"remove":"user:2"}
/// {"removeAll":{"from":"a","upTo":"b"}}
/// ```
enum StoreLine {
  /// The version of the format that is written.
  static let version = 2

  /// Why a line cannot be read, though its bytes are those that were written.
  struct Problem: ValueFreeError, CustomStringConvertible {
    let message: String
    var description: String { message }
  }

  // MARK: Writing

  /// The line of a change.
  ///
  /// - Parameters:
  ///   - change: The change, with the JSON text of the value.
  ///   - format: What the bytes of the codec are: those of a binary one stand as base64.
  static func bytes(of change: Change<ArraySlice<UInt8>>, format: CodecFormat) -> [UInt8] {
    var line: [UInt8] = []
    switch change {
    case .set(let key, let value):
      line.reserveCapacity(value.count + key.count + 32)
      line.append(contentsOf: "{\"set\":".utf8)
      JSONKey.append(key, to: &line)
      line.append(contentsOf: (format == .json ? ",\"value\":" : ",\"base64\":").utf8)
      line.append(contentsOf: value)
    case .remove(let key):
      line.append(contentsOf: "{\"remove\":".utf8)
      JSONKey.append(key, to: &line)
    case .removeAll(let range):
      line.append(contentsOf: "{\"removeAll\":".utf8)
      JSONKey.append(range, to: &line)
    }
    line.append(contentsOf: "}\n".utf8)
    return line
  }

  // MARK: Reading

  /// How nearly every line begins.
  private static let setStart = Array("{\"set\":".utf8)

  /// The codec that the first line of a file of version 1 names.
  ///
  /// - Throws: ``Problem`` where it is no such line.
  static func codecName(ofHead line: ArraySlice<UInt8>) throws -> String {
    var scanner = JSONScanner(line)
    var codecName: String?
    var names: Set<[UInt8]> = []
    try reading {
      try scanner.forEachMember { _, name, scanner in
        names.insert(name)
        if name.elementsEqual("codec".utf8) {
          codecName = String(decoding: try scanner.string(), as: UTF8.self)
        } else {
          _ = try scanner.value()
        }
      }
    }
    guard let codecName, names.contains(Array("larder".utf8)) else { throw Problem(message: "it is no head") }
    return codecName
  }

  /// The change that a line is; of a value only that there is one.
  ///
  /// - Parameter line: The line; of one that sets a key a beginning that has the key will do.
  /// - Throws: ``Problem`` where it is no change.
  static func change(_ line: ArraySlice<UInt8>) throws -> Change<Void> {
    try reading {
      if line.starts(with: setStart) {
        var scanner = JSONScanner(line, from: line.startIndex + setStart.count)
        return .set(try JSONKey.key(from: &scanner), ())
      }
      var scanner = JSONScanner(line)
      try scanner.expect(UInt8(ascii: "{"))
      let name = try scanner.string()
      try scanner.expect(UInt8(ascii: ":"))
      switch String(decoding: name, as: UTF8.self) {
      case "set": return .set(try JSONKey.key(from: &scanner), ())
      case "remove": return .remove(try JSONKey.key(from: &scanner))
      case "removeAll": return .removeAll(try JSONKey.range(from: &scanner))
      default: throw Problem(message: "a kind of change is unknown")
      }
    }
  }

  /// The value in the line that set a key.
  ///
  /// - Parameters:
  ///   - line: All of the line.
  ///   - key: The key.
  /// - Returns: The JSON text of the value, or of a string with its base64.
  /// - Throws: ``Problem`` where the line sets another key or none.
  static func value(_ line: ArraySlice<UInt8>, ofKey key: StoreKey) throws -> ArraySlice<UInt8> {
    try reading {
      var scanner = JSONScanner(line)
      var found: StoreKey?
      var value: ArraySlice<UInt8>?
      try scanner.forEachMember { _, name, scanner in
        switch String(decoding: name, as: UTF8.self) {
        case "set": found = try JSONKey.key(from: &scanner)
        case "value", "base64": value = try scanner.value()
        default: throw Problem(message: "a member is unknown")
        }
      }
      guard found == key, let value else { throw Problem(message: "it is not the line of the entry") }
      return value
    }
  }

  private static func reading<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as JSONSyntaxError {
      throw Problem(message: error.message)
    }
  }
}
#endif
