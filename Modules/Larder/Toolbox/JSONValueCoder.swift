import Foundation

/// A coder that converts values into their JSON text in a file, and back.
///
/// The bytes of a JSON codec are written as they are. The bytes of any other codec are written as a string in base64
/// (RFC 4648).
public struct JSONValueCoder<Value: Sendable>: Sendable {
  private let coder: ValueCoder<Value>

  /// The name of the store in errors.
  public var store: String { coder.store }

  /// The codec for the comparison with the record of the store.
  public var codecRecord: CodecRecord { coder.codecRecord }

  /// The kind of the bytes that the codec writes.
  public var format: CodecFormat { coder.format }

  /// Creates a coder.
  ///
  /// - Parameters:
  ///   - codec: The codec of the values.
  ///   - store: The name of the store in errors.
  public init(codec: some Codec<Value>, store: String) {
    coder = ValueCoder(codec: codec, store: store)
  }

  /// Returns the JSON text of a value.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key of the entry.
  ///   - stored: The stored bytes that an update replaces, as the codec wrote them. Defaults to `nil`.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError`` with `encodingFailed`.
  public func text(
    of value: Value, forKey key: StoreKey, replacing stored: ArraySlice<UInt8>? = nil, during operation: StoreOperation
  ) throws -> ArraySlice<UInt8> {
    var bytes: [UInt8] = []
    try coder.append(value, forKey: key, replacing: stored, to: &bytes, during: operation)
    guard format == .json else { return Array("\"\(Data(bytes).base64EncodedString())\"".utf8)[...] }
    do {
      // Text that is not JSON would make the whole file unreadable, and files with one entry per line need text without
      // line ends.
      return try JSONText(bytes).bytes[...]
    } catch {
      throw coder.encodingError(error, forKey: key, during: operation)
    }
  }

  /// Returns the changes of a batch with the JSON texts of the values, which are encoded through ``BulkWork``.
  ///
  /// - Throws: ``StoreError`` with `encodingFailed`.
  public func texts(of batch: ChangeBatch<Value>) async throws -> [BatchChange<ArraySlice<UInt8>>] {
    try await BulkWork.encode(batch) { value, key in try text(of: value, forKey: key, during: .apply) }
  }

  /// Decodes the values of an update, passes them to its body, and returns the changes to the stored texts.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - texts: The stored text for each key, or `nil` if the key is missing.
  ///   - body: The body of the update.
  /// - Returns: The changes, which are empty if nothing is committed or every value stays the same, and the result.
  /// - Throws: ``StoreError`` with `corrupted`; `undecodable`; `encodingFailed`.
  public func update<Result>(
    _ keys: [StoreKey], _ texts: [ArraySlice<UInt8>?],
    deciding body: (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) throws -> (changes: [BatchChange<ArraySlice<UInt8>>], result: Result) {
    let stored = try zip(keys, texts).map { key, text in
      try text.map { try bytes(of: $0, forKey: key, during: .update) }
    }
    var slots = UpdateSlots(
      stored: try zip(keys, stored).map { key, bytes in
        try bytes?.withUnsafeBytes { try coder.value(of: $0, forKey: key, during: .update) }
      })
    let decision = body(&slots)
    var changes: [BatchChange<ArraySlice<UInt8>>] = []
    for index in decision.isCommit ? slots.assignedIndices : [] {
      let newText = try slots[index].map {
        try text(of: $0, forKey: keys[index], replacing: stored[index], during: .update)
      }
      guard newText != texts[index] else { continue }
      changes.append(newText.map { .set(keys[index], $0) } ?? .remove(keys[index]))
    }
    return (changes, decision.result)
  }

  /// Returns the value of a JSON text.
  ///
  /// - Throws: ``StoreError`` with `corrupted` or `undecodable`, or the code of a ``StoreErrorConvertible``.
  public func value(
    of text: ArraySlice<UInt8>, forKey key: StoreKey, during operation: StoreOperation
  ) throws -> Value {
    switch format {
    case .json: try text.withUnsafeBytes { try coder.value(of: $0, forKey: key, during: operation) }
    case .cbor, .binary:
      try data(of: text, forKey: key, during: operation)
        .withUnsafeBytes { try coder.value(of: $0, forKey: key, during: operation) }
    }
  }

  /// Returns a text about a value that cannot be decoded, for verification.
  ///
  /// - Parameters:
  ///   - text: The JSON text, or the error of reading it.
  ///   - key: The key of the entry.
  /// - Returns: The text, or `nil` if the value can be decoded.
  public func problem(in text: @autoclosure () throws -> ArraySlice<UInt8>, forKey key: StoreKey) -> String? {
    do {
      _ = try value(of: text(), forKey: key, during: .verify)
      return nil
    } catch {
      return VerificationReport.Finding.message(for: error)
    }
  }

  /// Returns the bytes that the codec wrote for a JSON text.
  private func bytes(
    of text: ArraySlice<UInt8>, forKey key: StoreKey, during operation: StoreOperation
  ) throws -> ArraySlice<UInt8> {
    switch format {
    case .json: text
    case .cbor, .binary: ArraySlice(try data(of: text, forKey: key, during: operation))
    }
  }

  /// Returns the bytes of a string in base64.
  private func data(of text: ArraySlice<UInt8>, forKey key: StoreKey, during operation: StoreOperation) throws -> Data {
    do {
      var scanner = JSONScanner(text)
      let base64 = try scanner.string()
      guard let decoded = Data(base64Encoded: Data(base64)) else { throw scanner.error("invalid base64") }
      return decoded
    } catch {
      throw coder.decodingError(error, forKey: key, during: operation)
    }
  }
}
