#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Turns values into the JSON text that stands for them in a file, and back.
///
/// What a codec writes as JSON stands as it is; bytes of any other codec stand as a string in base64 (RFC 4648).
package struct JSONValueCoder<Value: Sendable>: Sendable {
  private let codec: any Codec<Value>
  package let store: String

  /// What the bytes of the codec are.
  package var format: CodecFormat { codec.format }

  /// Makes a coder.
  ///
  /// - Parameters:
  ///   - codec: Turns values into bytes and back.
  ///   - store: The name of the store, in errors.
  package init(codec: any Codec<Value>, store: String) {
    self.codec = codec
    self.store = store
  }

  /// The text of a value.
  ///
  /// - Throws: ``StoreError`` with `encodingFailed`.
  package func text(of value: Value, forKey key: StoreKey, during operation: StoreOperation) throws -> ArraySlice<UInt8>
  {
    do {
      var bytes: [UInt8] = []
      try codec.encode(value, into: &bytes)
      switch codec.format {
      case .json:
        // What is not JSON would make the whole file unreadable.
        var scanner = JSONScanner(bytes[...])
        let text = try scanner.value()
        try scanner.expectEnd()
        // In one line, as files of lines need it; most codecs write it so.
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

  /// The changes of a batch, with the texts of the values, encoded as ``BulkWork`` does it.
  ///
  /// - Throws: ``StoreError`` with `encodingFailed`.
  package func texts(of batch: ChangeBatch<Value>) async throws -> [Change<ArraySlice<UInt8>>] {
    try await BulkWork.run(atMost: batch.count) { allowance in
      try batch.changes.map { change in
        try change.mapValue { key, value in
          try allowance.encode { try text(of: value, forKey: key, during: .apply) }
        }
      }
    }
  }

  /// Does what an update asks for: decodes the values, lets them be changed, and says which texts become others.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - texts: The text of each, as it is stored; `nil` where the key is missing.
  ///   - checks: What the store says of itself.
  ///   - body: Changes the values.
  /// - Returns: What is to be changed, nothing where every value stays as it was, and what `body` returns.
  /// - Throws: ``StoreError`` with `corrupted`, `encodingFailed` or `invalidArgument`; what `body` throws.
  package func update<Result>(
    _ keys: [StoreKey], _ texts: [ArraySlice<UInt8>?], checks: StoreInformation,
    _ body: (inout [Value?]) throws -> Result
  ) throws -> (changes: [Change<ArraySlice<UInt8>>], result: Result) {
    var slots = try zip(keys, texts).map { key, text in
      try text.map { try value(of: $0, forKey: key, during: .update) }
    }
    let result = try body(&slots)
    try checks.check(slotCount: slots.count, forUpdateOf: keys)
    var changes: [Change<ArraySlice<UInt8>>] = []
    for (index, key) in keys.enumerated() {
      let newText = try slots[index].map { try text(of: $0, forKey: key, during: .update) }
      guard newText != texts[index] else { continue }
      changes.append(newText.map { .set(key, $0) } ?? .remove(key))
    }
    return (changes, result)
  }

  /// The value of a text.
  ///
  /// - Throws: ``StoreError`` with `corrupted`.
  package func value(of text: ArraySlice<UInt8>, forKey key: StoreKey, during operation: StoreOperation) throws -> Value
  {
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
  package func decode(_ text: ArraySlice<UInt8>) throws -> Value {
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
