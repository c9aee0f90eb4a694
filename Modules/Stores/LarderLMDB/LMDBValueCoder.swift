#if LMDB
import Larder

/// Turns values into the bytes that stand for them in an environment, and back.
struct LMDBValueCoder<Value: Sendable>: Sendable {
  /// The most bytes that LMDB takes: the size is stored in 32 bits.
  static var maximumSize: Int { Int(UInt32.max) }

  // Not the codec itself, as an existential: that is copied for each call, which a read notices.
  private let encode: @Sendable (Value, inout [UInt8]) throws -> Void
  private let decode: @Sendable (RawSpan) throws -> Value
  private let store: String

  init(codec: some Codec<Value>, store: String) {
    encode = { try codec.encode($0, into: &$1) }
    decode = { try codec.decode($0) }
    self.store = store
  }

  /// Appends the bytes of a value.
  ///
  /// - Throws: ``StoreError``: `encodingFailed`; `valueTooLarge`.
  func append(_ value: Value, forKey key: StoreKey, to bytes: inout [UInt8], during operation: StoreOperation) throws {
    let start = bytes.count
    do {
      try encode(value, &bytes)
    } catch {
      throw StoreError(
        .encodingFailed, during: operation, store: store, key: key, message: "the value could not be encoded",
        underlying: error)
    }
    guard bytes.count - start <= LMDBValueCoder.maximumSize else {
      throw StoreError(
        .valueTooLarge, during: operation, store: store, key: key,
        message: "the value has \(bytes.count - start) bytes, LMDB takes \(LMDBValueCoder.maximumSize)")
    }
  }

  /// The value of bytes in the memory map.
  ///
  /// - Throws: ``StoreError`` with `corrupted`.
  @inline(__always)
  func value(of bytes: UnsafeRawBufferPointer, forKey key: StoreKey, during operation: StoreOperation) throws -> Value {
    do {
      return try decode(bytes.bytes)
    } catch {
      throw StoreError(
        .corrupted, during: operation, store: store, key: key, message: "the value could not be decoded",
        underlying: error)
    }
  }
}
#endif
