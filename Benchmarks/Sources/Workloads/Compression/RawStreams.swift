import LarderCompression
import RawZlib

/// Streams of zlib as in a C program, for one thread at a time.
final class RawStreams: @unchecked Sendable {
  // Proof for @unchecked: a workload runs its rounds one after another and does not share the streams.
  private let pointer: OpaquePointer

  /// Creates streams for values of a maximum size.
  init(level: Int, dictionary: [UInt8], longest: Int) throws {
    var pointer: OpaquePointer?
    try RawStreams.check(raw_zlib_open(Int32(level), dictionary, dictionary.count, longest, &pointer))
    guard let pointer else { throw ZlibError(code: -4) }
    self.pointer = pointer
  }

  deinit {
    raw_zlib_close(pointer)
  }

  /// Compresses values and discards the results.
  func deflate(_ values: JoinedValues) throws -> UInt64 {
    var sum: UInt64 = 0
    try RawStreams.check(raw_zlib_deflate(pointer, values.bytes, values.sizes, values.sizes.count, &sum))
    return sum
  }

  /// Compresses values.
  func deflated(_ values: JoinedValues) throws -> JoinedValues {
    var output = [UInt8](repeating: 0, count: values.bytes.count + 64 * values.sizes.count)
    var sizes = [Int](repeating: 0, count: values.sizes.count)
    try RawStreams.check(
      raw_zlib_deflate_all(pointer, values.bytes, values.sizes, values.sizes.count, &output, &sizes))
    return JoinedValues(bytes: output, sizes: sizes)
  }

  /// Decompresses values and discards the results.
  func inflate(_ values: JoinedValues, wantsChecksum: Bool) throws -> UInt64 {
    var sum: UInt64 = 0
    try RawStreams.check(
      raw_zlib_inflate(pointer, values.bytes, values.sizes, values.sizes.count, wantsChecksum ? 1 : 0, &sum))
    return sum
  }

  private static func check(_ code: Int32) throws {
    if code != 0 { throw ZlibError(code: code) }
  }
}
