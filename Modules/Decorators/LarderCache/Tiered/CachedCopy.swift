import Larder

/// The copy of an entry of the base, or the knowledge that it has none, as the cache of a ``TieredStore`` keeps it.
struct CachedCopy<Value: Sendable>: Sendable {
  /// The value, or `nil` if the base does not have the key.
  let value: Value?

  /// The time when its read or write of the base began, in microseconds since 1970.
  let time: Int64
}

/// The codec of a ``CachedCopy``.
///
/// A copy begins with a byte, 1 for a value and 0 for a missing key, and the time in 8 bytes, big-endian. Then come the
/// bytes of the value.
struct CachedCopyCodec<Base: Codec>: Codec {
  private static var headerSize: Int { 1 + MemoryLayout<Int64>.size }

  let base: Base

  init(_ base: Base) {
    self.base = base
  }

  var name: String { base.name + "+copy" }
  var format: CodecFormat { .binary }

  func encode(_ copy: CachedCopy<Base.Value>, into bytes: inout [UInt8], context: ValueContext) throws {
    bytes.append(copy.value == nil ? 0 : 1)
    withUnsafeBytes(of: copy.time.bigEndian) { bytes.append(contentsOf: $0) }
    guard let value = copy.value else { return }
    try base.encode(value, into: &bytes, context: context.forBase { $0.dropFirst(Self.headerSize) })
  }

  func decode(_ bytes: RawSpan, context: ValueContext) throws -> CachedCopy<Base.Value> {
    guard bytes.byteCount >= Self.headerSize else { throw CachedCopyError(message: "the copy is truncated") }
    let (mark, time) = bytes.withUnsafeBytes {
      ($0[0], Int64(bigEndian: $0.loadUnaligned(fromByteOffset: 1, as: Int64.self)))
    }
    switch mark {
    case 0 where bytes.byteCount == Self.headerSize: return CachedCopy(value: nil, time: time)
    case 1:
      let value = try base.decode(bytes.extracting(droppingFirst: Self.headerSize), context: context)
      return CachedCopy(value: value, time: time)
    default: throw CachedCopyError(message: "the value is not a copy of an entry of another store")
    }
  }
}

/// An error that is thrown if a cache holds something other than a copy.
struct CachedCopyError: ValueFreeError, CustomStringConvertible {
  let message: String

  var description: String { message }
}
