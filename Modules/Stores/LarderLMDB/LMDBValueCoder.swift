#if LMDB
import Larder

/// Turns values into the bytes that stand for them in an environment, and back.
struct LMDBValueCoder<Value: Sendable>: Sendable {
  /// The most bytes that a value may have: 2 GiB less 64 KiB and the header of a page.
  ///
  /// LMDB writes the pages of a value by one call, which the operating system cuts off below 2 GiB, at a multiple of its
  /// pages; the largest pages have 64 KiB.
  static var maximumSize: Int { 1 << 31 - DataFileHeader.maximumPageSize - DataFileHeader.pageHeaderSize }

  // Not the codec itself, as an existential: that is copied for each call, which a read notices.
  private let encode: @Sendable (Value, inout [UInt8]) throws -> Void
  private let decode: @Sendable (RawSpan) throws -> Value
  private let store: String
  private let maximumSize: Int

  init(codec: some Codec<Value>, store: String, maximumSize: Int = LMDBValueCoder.maximumSize) {
    encode = { try codec.encode($0, into: &$1) }
    decode = { try codec.decode($0) }
    self.store = store
    self.maximumSize = maximumSize
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
    guard bytes.count - start <= maximumSize else {
      throw StoreError(
        .valueTooLarge, during: operation, store: store, key: key,
        message: "the encoded value has \(bytes.count - start) bytes; at most \(maximumSize) are allowed")
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
