public import Larder

/// A codec of bytes that needs a key, as encrypted values do, for those that begin with 0xFF.
public struct LockedCodec: Codec {
  private struct MissingKey: StoreErrorConvertible {
    let storeErrorCode: StoreError.Code
  }

  private let code: StoreError.Code
  private let hasKey: @Sendable () -> Bool

  /// Creates a codec.
  ///
  /// - Parameters:
  ///   - code: The code of the error without a key.
  ///   - hasKey: A closure that returns whether the codec has its key. It runs while such a value is decoded.
  public init(code: StoreError.Code = .keyUnavailable, hasKey: @escaping @Sendable () -> Bool) {
    self.code = code
    self.hasKey = hasKey
  }

  /// `CodecFormat.binary`.
  public var format: CodecFormat { .binary }

  /// The name of the codec of bytes.
  public var name: String { "raw" }

  /// Appends the bytes.
  public func encode(_ value: [UInt8], into bytes: inout [UInt8], context: ValueContext) {
    bytes += value
  }

  /// Returns the bytes, or throws an error if they need a key.
  public func decode(_ bytes: RawSpan, context: ValueContext) throws -> [UInt8] {
    let value = bytes.withUnsafeBytes { Array($0) }
    if value.first == 0xFF, !hasKey() { throw MissingKey(storeErrorCode: code) }
    return value
  }
}
