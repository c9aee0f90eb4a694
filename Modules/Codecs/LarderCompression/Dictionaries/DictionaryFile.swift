#if Compression
import Foundation
import Larder

/// The format of a dictionary file: JSON, so any language can decompress the values of a store.
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
      "{\"crc32\":\"\(Hexadecimal.text(of: dictionary.checksum))\",\"base64\":\"\(Data(dictionary.bytes).base64EncodedString())\"}"
    }
    return Array(
      "{\"\(versionMember)\":\(version),\"dictionaries\":[\n\(lines.joined(separator: ",\n"))\n]}\n".utf8)
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
    do {
      let members = try JSONText(bytes).members() ?? []
      let number = members.first?.value.description ?? ""
      guard number == String(version) else {
        throw failure(
          .versionMismatch, "the dictionary file has version \(number), but this Larder reads version \(version)")
      }
      guard members.map(\.name) == [versionMember, "dictionaries"], let elements = try members[1].value.elements()
      else {
        throw ValueFormatError("the only members must be \(versionMember) and an array, dictionaries")
      }
      return try CompressionDictionaries(try elements.map(dictionary))
    } catch let error as StoreError where error.code == .versionMismatch {
      throw error
    } catch {
      throw failure(.corrupted, "the dictionary file is damaged; restore it from a backup", error)
    }
  }

  private static func dictionary(_ json: JSONText) throws -> CompressionDictionary {
    let members = try json.members() ?? []
    func text(_ name: String) throws -> String? { try members.first { $0.name == name }?.value.string() }
    guard members.count == 2, let checksum = try text("crc32"), let base64 = try text("base64"),
      let bytes = Data(base64Encoded: base64)
    else { throw ValueFormatError("a dictionary must have the members crc32 and base64, and no others") }
    let dictionary = try CompressionDictionary(Array(bytes))
    guard Hexadecimal.text(of: dictionary.checksum) == checksum else {
      throw ValueFormatError("the checksum does not match the dictionary")
    }
    return dictionary
  }
}
#endif
