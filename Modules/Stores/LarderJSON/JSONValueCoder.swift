import Larder

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Turns values into the JSON text that stands for them in a document, and back.
///
/// What a codec writes as JSON stands as it is; bytes of any other codec stand as a string in base64 (RFC 4648).
struct JSONValueCoder<Value: Sendable>: Sendable {
  private let codec: any Codec<Value>
  private let store: String

  init(codec: any Codec<Value>, store: String) {
    self.codec = codec
    self.store = store
  }

  /// The text of a value.
  ///
  /// - Throws: ``StoreError`` with `encodingFailed`.
  func text(of value: Value, forKey key: StoreKey, during operation: StoreOperation) throws -> ArraySlice<UInt8> {
    do {
      var bytes: [UInt8] = []
      try codec.encode(value, into: &bytes)
      switch codec.format {
      case .json:
        // What is not JSON would make the whole document unreadable.
        var scanner = JSONScanner(bytes[...])
        let text = try scanner.value()
        try scanner.expectEnd()
        // In one line, as the journal needs it; most codecs write it so.
        var compacted: [UInt8] = []
        compacted.reserveCapacity(text.count)
        JSONWriting.append(compacted: text, to: &compacted)
        return compacted[...]
      case .binary:
        return Array("\"\(Data(bytes).base64EncodedString())\"".utf8)[...]
      }
    } catch {
      throw StoreError(
        .encodingFailed, during: operation, store: store, key: key, message: "the value could not be encoded",
        underlying: error)
    }
  }

  /// The value of a text.
  ///
  /// - Throws: ``StoreError`` with `corrupted`.
  func value(of text: ArraySlice<UInt8>, forKey key: StoreKey, during operation: StoreOperation) throws -> Value {
    do {
      return try decode(text)
    } catch {
      throw StoreError(
        .corrupted, during: operation, store: store, key: key, message: "the value could not be decoded",
        underlying: error)
    }
  }

  /// The value of a text.
  ///
  /// - Throws: What the codec throws.
  func decode(_ text: ArraySlice<UInt8>) throws -> Value {
    switch codec.format {
    case .json:
      return try text.withUnsafeBytes { try codec.decode($0.bytes) }
    case .binary:
      var scanner = JSONScanner(text)
      let base64 = try scanner.string()
      guard let data = Data(base64Encoded: Data(base64)) else { throw scanner.error("it is not base64") }
      return try data.withUnsafeBytes { try codec.decode($0.bytes) }
    }
  }
}
