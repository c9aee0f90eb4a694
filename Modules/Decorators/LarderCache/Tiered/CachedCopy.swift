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
/// A copy begins with a byte, 1 for a value and 0 for a missing key, the time in 8 bytes, big-endian, and the name of the
/// codec of the value, followed by a NUL byte. Then come the bytes of the value. By the name, the next version of a program,
/// which may use another codec, does not take the bytes for those of another value.
struct CachedCopyCodec<Base: Codec>: Codec {
  private static var timeSize: Int { MemoryLayout<Int64>.size }

  let base: Base

  /// The name of the codec of the values, with a NUL byte.
  private let mark: [UInt8]

  private var headerSize: Int { 1 + Self.timeSize + mark.count }

  init(_ base: Base) {
    self.base = base
    mark = Array((base.newestName ?? base.name).utf8) + [0]
  }

  var name: String { base.name + "+copy" }
  var format: CodecFormat { .binary }
  var encryptsValues: Bool { base.encryptsValues }

  func encode(_ copy: CachedCopy<Base.Value>, into bytes: inout [UInt8], context: ValueContext) throws {
    bytes.append(copy.value == nil ? 0 : 1)
    bytes += copy.time.bigEndianBytes
    bytes.append(contentsOf: mark)
    guard let value = copy.value else { return }
    let headerSize = headerSize
    var context = context.forBase { $0.dropFirst(headerSize) }
    // A copy in an older format would lack what the value in the base has.
    context.usesNewestFormat = true
    try base.encode(value, into: &bytes, context: context)
  }

  func decode(_ bytes: RawSpan, context: ValueContext) throws -> CachedCopy<Base.Value> {
    guard bytes.byteCount >= headerSize else { throw ValueFormatError("the copy is truncated") }
    let (kind, time, hasMark) = bytes.withUnsafeBytes {
      (
        $0[0], Int64(bigEndian: $0.loadUnaligned(fromByteOffset: 1, as: Int64.self)),
        $0[(1 + Self.timeSize)...].starts(with: mark)
      )
    }
    guard hasMark else { throw ValueFormatError("another codec wrote the copy") }
    switch kind {
    case 0 where bytes.byteCount == headerSize: return CachedCopy(value: nil, time: time)
    case 1:
      let value = try base.decode(bytes.extracting(droppingFirst: headerSize), context: context)
      return CachedCopy(value: value, time: time)
    default: throw ValueFormatError("the value is not a copy of an entry of another store")
    }
  }
}
