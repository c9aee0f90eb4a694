/// A coder that encodes and decodes the values of a store and converts the errors of the codec to ``StoreError``s.
///
/// A store has one instead of its codec. It passes the key and the replaced bytes in the ``ValueContext``, so an
/// encrypted value is bound to its key, and gives every failure of the codec the code that the contract has for it:
///
/// ```swift
/// let coder = ValueCoder(codec: codec, store: information.name)
///
/// let bytes = try coder.bytes(of: value, forKey: key, during: .apply)
/// let same = try coder.value(of: bytes, forKey: key, during: .value)
/// ```
///
/// It has no state that changes, and its methods work on the caller's thread. For many or large values, call them through
/// ``BulkWork``.
public struct ValueCoder<Value: Sendable>: Sendable {
  // Closures instead of an existential codec, which would be copied for each call; reads are measurably slower then. For
  // the same reason the stores inline the calls.
  @usableFromInline let encodeValue: @Sendable (Value, inout [UInt8], ValueContext) throws -> Void
  @usableFromInline let decodeValue: @Sendable (RawSpan, ValueContext) throws -> Value

  /// The kind of the bytes that the codec writes.
  public let format: CodecFormat

  /// The codec for the comparison with the record of the store, which has its name and version.
  public let codecRecord: CodecRecord

  /// The name of the store in errors.
  public let store: String

  /// The maximum size of an encoded value, in bytes.
  public let maximumSize: Int

  /// Creates a coder.
  ///
  /// ```swift
  /// let coder = ValueCoder(codec: .json(User.self), store: "users", maximumSize: 1 << 20)
  /// ```
  ///
  /// - Parameters:
  ///   - codec: The codec of the values.
  ///   - store: The name of the store in errors.
  ///   - maximumSize: The maximum size of an encoded value, in bytes. Defaults to no limit.
  public init(codec: some Codec<Value>, store: String, maximumSize: Int = .max) {
    encodeValue = { try codec.encode($0, into: &$1, context: $2) }
    decodeValue = { try codec.decode($0, context: $1) }
    format = codec.format
    codecRecord = CodecRecord(codec)
    self.store = store
    self.maximumSize = maximumSize
  }

  /// Appends the encoded bytes of a value.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key of the entry, or `nil` if the value doesn't have one yet.
  ///   - stored: The stored bytes that an update replaces. Defaults to `nil`.
  ///   - passesKey: A Boolean value that indicates whether the codec learns the key. Defaults to `true`.
  ///   - bytes: The array that receives the bytes.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError``: `encodingFailed`, or the code of a ``StoreErrorConvertible``; `valueTooLarge`.
  @inlinable @inline(__always)
  public func append(
    _ value: Value, forKey key: StoreKey?, replacing stored: ArraySlice<UInt8>? = nil, passesKey: Bool = true,
    to bytes: inout [UInt8], during operation: StoreOperation
  ) throws {
    let start = bytes.count
    do {
      try encodeValue(
        value, &bytes,
        ValueContext(
          key: passesKey ? key : nil, stored: stored, usesNewestFormat: codecRecord.format.isNewest))
    } catch {
      throw encodingError(error, forKey: key, during: operation)
    }
    guard bytes.count - start <= maximumSize else {
      throw sizeError(bytes.count - start, forKey: key, during: operation)
    }
  }

  /// Returns the encoded bytes of a value; see ``append(_:forKey:replacing:passesKey:to:during:)``.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key of the entry, or `nil` if the value doesn't have one yet.
  ///   - stored: The stored bytes that an update replaces. Defaults to `nil`.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError``, as that method.
  public func bytes(
    of value: Value, forKey key: StoreKey?, replacing stored: ArraySlice<UInt8>? = nil, during operation: StoreOperation
  ) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try append(value, forKey: key, replacing: stored, to: &bytes, during: operation)
    return bytes
  }

  /// Returns the value that bytes encode; see ``value(of:forKey:passesKey:during:)``.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - key: The key of the entry, or `nil` if the value doesn't have one yet.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError``, as that method.
  public func value(
    of bytes: [UInt8], forKey key: StoreKey?, during operation: StoreOperation
  ) throws -> Value {
    try bytes.withUnsafeBytes { try value(of: $0, forKey: key, passesKey: true, during: operation) }
  }

  /// Returns the error of a value whose bytes are too many.
  @usableFromInline
  func sizeError(_ size: Int, forKey key: StoreKey?, during operation: StoreOperation) -> StoreError {
    StoreError(
      .valueTooLarge, during: operation, store: store, key: key,
      message: "the encoded value has \(size) bytes; at most \(maximumSize) are allowed")
  }

  /// Returns the error of a value that cannot be encoded.
  ///
  /// Its code is that of a ``StoreErrorConvertible``, or `encodingFailed`. A retry can help if the code is
  /// `keyUnavailable`.
  ///
  /// - Parameters:
  ///   - error: The error of the codec.
  ///   - key: The key of the entry, or `nil` if the value doesn't have one yet.
  ///   - operation: The operation.
  public func encodingError(
    _ error: any Error, forKey key: StoreKey?, during operation: StoreOperation
  ) -> StoreError {
    let code = (error as? any StoreErrorConvertible)?.storeErrorCode ?? .encodingFailed
    return StoreError(
      code, during: operation, store: store, key: key, message: "the value could not be encoded", underlying: error,
      isRetryable: code == .keyUnavailable)
  }

  /// Returns the value that bytes encode.
  ///
  /// - Parameters:
  ///   - bytes: The bytes. They are only read during the call.
  ///   - key: The key of the entry, or `nil` if the value doesn't have one yet.
  ///   - passesKey: A Boolean value that indicates whether the codec learns the key. Defaults to `true`.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError``; see ``decodingError(_:forKey:during:)``.
  @inlinable @inline(__always)
  public func value(
    of bytes: UnsafeRawBufferPointer, forKey key: StoreKey?, passesKey: Bool = true, during operation: StoreOperation
  ) throws(StoreError) -> Value {
    do {
      return try decodeValue(bytes.bytes, ValueContext(key: passesKey ? key : nil))
    } catch {
      throw decodingError(error, forKey: key, during: operation)
    }
  }

  /// Runs the body of an update on stored bytes, and returns its decision and the changes that are to be written.
  ///
  /// All values are encoded before any is written.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - stored: The stored bytes for each key, or `nil` if the key is missing.
  ///   - operation: The operation, for errors.
  ///   - body: The body of the update.
  /// - Returns: The decision; the keys that the body assigned, which an ``ObservableStore`` reports, also those with equal values; and
  ///   the new bytes for each key that changes, or `nil` to remove it. There are none if the body decides to discard.
  /// - Throws: ``StoreError``: `corrupted`; `undecodable`; `encodingFailed`; `valueTooLarge`.
  public func update<Result>(
    _ keys: [StoreKey], stored: [ArraySlice<UInt8>?], during operation: StoreOperation = .update,
    deciding body: (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) throws -> (
    decision: UpdateDecision<Result>, assigned: [StoreKey], changes: [(key: StoreKey, bytes: ArraySlice<UInt8>?)]
  ) {
    var slots = UpdateSlots(
      stored: try zip(keys, stored).map { key, bytes in
        try bytes?.withUnsafeBytes { try value(of: $0, forKey: key, during: operation) }
      })
    let decision = body(&slots)
    guard decision.isCommit else { return (decision, [], []) }
    let assigned = slots.assignedIndices.map { keys[$0] }
    return (decision, assigned, try changes(in: slots, of: keys, stored: stored, during: operation))
  }

  /// Returns the changes that the body of an update has made, for a store that decodes the slots by itself.
  ///
  /// - Parameters:
  ///   - slots: The slots after the body has decided to commit.
  ///   - keys: The keys.
  ///   - stored: The stored bytes for each key, or `nil` if the key is missing.
  ///   - operation: The operation, for errors.
  /// - Returns: The new bytes for each key that changes, or `nil` to remove it. There are none for slots that were assigned
  ///   what is stored.
  /// - Throws: ``StoreError``: `encodingFailed`; `valueTooLarge`.
  public func changes(
    in slots: UpdateSlots<Value>, of keys: [StoreKey], stored: [ArraySlice<UInt8>?],
    during operation: StoreOperation = .update
  ) throws -> [(key: StoreKey, bytes: ArraySlice<UInt8>?)] {
    var changes: [(key: StoreKey, bytes: ArraySlice<UInt8>?)] = []
    for index in slots.assignedIndices {
      let new = try slots[index].map { value in
        var bytes: [UInt8] = []
        try append(value, forKey: keys[index], replacing: stored[index], to: &bytes, during: operation)
        return bytes[...]
      }
      if new != stored[index] { changes.append((keys[index], new)) }
    }
    return changes
  }

  /// Returns a text about an entry that another program may have written, for verification.
  ///
  /// - Parameters:
  ///   - bytes: The stored bytes of the value.
  ///   - key: The stored key. It may have a length that no store accepts.
  /// - Returns: The text if the key has no allowed length or the value cannot be decoded, or `nil`.
  public func problem(in bytes: UnsafeRawBufferPointer, forStoredKey key: StoreKey) -> String? {
    guard (1...StoreKey.maximumLength).contains(key.count) else {
      return "the key has \(key.count) bytes; only 1 to \(StoreKey.maximumLength) are allowed"
    }
    return problem(in: bytes, forKey: key)
  }

  /// Returns a text about stored bytes that cannot be decoded, for verification.
  ///
  /// - Parameters:
  ///   - bytes: The stored bytes of the value.
  ///   - key: The key of the entry.
  /// - Returns: The text, or `nil` if they can be decoded.
  public func problem(in bytes: UnsafeRawBufferPointer, forKey key: StoreKey) -> String? {
    do {
      _ = try value(of: bytes, forKey: key, during: .verify)
      return nil
    } catch {
      return VerificationReport.Finding.message(for: error)
    }
  }

  /// Returns the error of stored bytes that cannot be decoded.
  ///
  /// Its code is that of a ``StoreErrorConvertible``; `undecodable` for a `DecodingError` other than `dataCorrupted`,
  /// because the bytes are sound but belong to another type; and `corrupted` for all other errors. A retry can help if the
  /// code is `keyUnavailable`.
  ///
  /// - Parameters:
  ///   - error: The error of the codec.
  ///   - key: The key of the entry, or `nil` if the value doesn't have one yet.
  ///   - operation: The operation.
  public func decodingError(
    _ error: any Error, forKey key: StoreKey?, during operation: StoreOperation
  ) -> StoreError {
    let code: StoreError.Code =
      switch error {
      case let error as any StoreErrorConvertible: error.storeErrorCode
      case DecodingError.dataCorrupted: .corrupted
      case is DecodingError: .undecodable
      default: .corrupted
      }
    return StoreError(
      code, during: operation, store: store, key: key, message: "the value could not be decoded", underlying: error,
      isRetryable: code == .keyUnavailable)
  }
}
