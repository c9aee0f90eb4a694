import Foundation
import LarderCBOR
import Testing

/// A value of any type and its result in each format.
struct CodingSample: Sendable {
  /// The result of encoding a value and decoding it again.
  enum Outcome: Sendable {
    /// An equal value, or a different one with its description.
    case value(isSame: Bool, description: String)
    case encodingFailed(String)
    case decodingFailed(String)

    var isSame: Bool {
      if case .value(true, _) = self { true } else { false }
    }
  }

  let name: String

  /// The CBOR of the value.
  let encoded: @Sendable () throws -> [UInt8]

  /// Decodes CBOR as the value's type.
  let read: @Sendable ([UInt8]) -> Outcome

  let json: @Sendable () -> Outcome
  let propertyList: @Sendable () -> Outcome

  init<Value: Codable & Sendable & Equatable>(_ name: String, _ value: Value) {
    self.name = name
    encoded = { try Coding.encoded(value) }
    read = { bytes in CodingSample.outcome(of: value, encode: { bytes }, decode: { try Coding.decoded(Value.self, $0) })
    }
    json = {
      CodingSample.outcome(
        of: value, encode: { try JSONEncoder().encode(value) },
        decode: { try JSONDecoder().decode(Value.self, from: $0) })
    }
    // The root of a property list is an array or a dictionary.
    propertyList = {
      CodingSample.outcome(
        of: value, encode: { try PropertyListEncoder().encode([value]) },
        decode: {
          let values = try PropertyListDecoder().decode([Value].self, from: $0)
          return try #require(values.first)
        })
    }
  }

  /// Encodes the value as CBOR and decodes it.
  func cbor() -> Outcome {
    do {
      return read(try encoded())
    } catch {
      return .encodingFailed("\(error)")
    }
  }

  private static func outcome<Value: Equatable, Encoded>(
    of value: Value, encode: () throws -> Encoded, decode: (Encoded) throws -> Value
  ) -> Outcome {
    let encoded: Encoded
    do { encoded = try encode() } catch { return .encodingFailed("\(error)") }
    do {
      let decoded = try decode(encoded)
      return .value(isSame: decoded == value, description: "\(decoded)")
    } catch {
      return .decodingFailed("\(error)")
    }
  }

  /// Returns a description of a violated expectation of CBOR, or `nil`.
  ///
  /// If JSON or a property list returns the value, CBOR must do so, too, or refuse to encode it. It may return a different
  /// value only if JSON or a property list returns that value as well.
  func fault() -> String? {
    let (cbor, json, propertyList) = (cbor(), json(), propertyList())
    switch cbor {
    case .value(true, _), .encodingFailed: return nil
    case .value(false, let description):
      for other in [json, propertyList] {
        // The descriptions of equal dictionaries have the same characters, in the order of each dictionary.
        if case .value(false, let text) = other, text.sorted() == description.sorted() { return nil }
      }
    case .decodingFailed:
      if !json.isSame, !propertyList.isSame { return nil }
    }
    return "\(name): CBOR \(cbor), JSON \(json), property list \(propertyList)"
  }
}
