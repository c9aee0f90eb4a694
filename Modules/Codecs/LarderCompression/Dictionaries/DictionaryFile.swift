#if Compression
import Foundation
import Larder

/// The format of a dictionary file: JSON, so that any language can decompress the values of a store.
///
/// ```
/// {"larder-dictionaries":1,"dictionaries":[
/// {"crc32":"8d3f2a10","base64":"eyJuYW1lIjoi…"},
/// {"crc32":"02cc91f7","base64":"eyJpZCI6…"}
/// ]}
/// ```
///
/// The oldest dictionary comes first. The checksum is the CRC-32 of the dictionary's bytes in hexadecimal, which
/// detects damage. Its last four digits are the dictionary's identifier.
enum DictionaryFile {
  /// The maximum size of a file, in bytes.
  static let maximumSize = 64 << 20

  private static let version = 1
  private static let versionMember = "larder-dictionaries"

  /// Returns the content of a file of dictionaries.
  static func bytes(of dictionaries: CompressionDictionaries) -> [UInt8] {
    let lines = dictionaries.all.map { dictionary in
      "{\"crc32\":\"\(digits(of: dictionary.checksum))\",\"base64\":\"\(Data(dictionary.bytes).base64EncodedString())\"}"
    }
    return Array(
      "{\"\(versionMember)\":\(version),\"dictionaries\":[\n\(lines.joined(separator: ",\n"))\n]}\n".utf8)
  }

  private static func digits(of checksum: UInt32) -> String {
    Hexadecimal.text(of: withUnsafeBytes(of: checksum.bigEndian) { Array($0) })
  }

  /// Returns the dictionaries in the content of a file.
  ///
  /// - Parameters:
  ///   - bytes: The content.
  ///   - path: The path of the file, for errors.
  /// - Throws: `StoreError` with `unrecognizedFormat`, `versionMismatch` or `corrupted`.
  static func dictionaries(in bytes: [UInt8], path: String) throws(StoreError) -> CompressionDictionaries {
    func failure(_ code: StoreError.Code, _ message: String, _ underlying: (any Error)? = nil) -> StoreError {
      StoreError(code, during: .open, store: path, message: message, underlying: underlying)
    }
    guard bytes.starts(with: "{\"\(versionMember)\":".utf8) else {
      throw failure(.unrecognizedFormat, "this is not a dictionary file")
    }
    var scanner = JSONScanner(bytes[...])
    var all: [CompressionDictionary] = []
    do {
      var members: [String] = []
      try scanner.forEachMember { place, name, scanner in
        members.append(String(decoding: name, as: UTF8.self))
        switch members {
        case [versionMember]:
          let number = String(decoding: try scanner.value(), as: UTF8.self)
          guard number == String(version) else {
            throw failure(
              .versionMismatch, "the dictionary file has version \(number), but this Larder reads version \(version)")
          }
        case [versionMember, "dictionaries"]: all = try readDictionaries(from: &scanner)
        default: throw scanner.error("expected only the members \(versionMember) and dictionaries", at: place)
        }
      }
      try scanner.expectEnd()
      guard members.count == 2 else { throw scanner.error("the member dictionaries is missing") }
      return try CompressionDictionaries(all)
    } catch let error as StoreError where error.code == .versionMismatch {
      throw error
    } catch {
      throw failure(.corrupted, "the dictionary file is damaged; restore it from a backup", error)
    }
  }

  private static func readDictionaries(from scanner: inout JSONScanner) throws -> [CompressionDictionary] {
    var dictionaries: [CompressionDictionary] = []
    try scanner.expect(UInt8(ascii: "["))
    guard !scanner.skip(UInt8(ascii: "]")) else { return [] }
    repeat {
      dictionaries.append(try readDictionary(from: &scanner))
    } while scanner.skip(UInt8(ascii: ","))
    try scanner.expect(UInt8(ascii: "]"))
    return dictionaries
  }

  private static func readDictionary(from scanner: inout JSONScanner) throws -> CompressionDictionary {
    var members: [String: String] = [:]
    scanner.skipWhitespace()
    let start = scanner.position
    try scanner.forEachMember { place, name, scanner in
      let text = String(decoding: try scanner.string(), as: UTF8.self)
      if members.updateValue(text, forKey: String(decoding: name, as: UTF8.self)) != nil {
        throw scanner.error("a member occurs twice", at: place)
      }
    }
    guard members.count == 2, let checksum = members["crc32"], let base64 = members["base64"],
      let bytes = Data(base64Encoded: base64)
    else { throw scanner.error("a dictionary must have the members crc32 and base64", at: start) }
    let dictionary = try CompressionDictionary(Array(bytes))
    guard digits(of: dictionary.checksum) == checksum else {
      throw scanner.error("the checksum does not match the dictionary", at: start)
    }
    return dictionary
  }
}
#endif
