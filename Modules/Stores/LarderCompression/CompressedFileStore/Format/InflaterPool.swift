#if Compression
import Synchronization

/// Decompressors, as many as readers needed at once, so that none is made for every read and none waits for another.
final class InflaterPool: Sendable {
  /// One decompressor, for one reader at a time.
  private final class Member: Sendable {
    let inflater: Mutex<Inflater>

    init() throws(ZlibError) {
      inflater = Mutex(try Inflater())
    }
  }

  private let idle = Mutex<[Member]>([])

  private func takeMember() throws(ZlibError) -> Member {
    if let member = idle.withLock({ $0.popLast() }) { return member }
    return try Member()
  }

  /// Decompresses a piece of a declared size.
  ///
  /// - Parameters:
  ///   - input: The compressed data, all of it and nothing behind it.
  ///   - size: The size of the data.
  /// - Throws: ``ZlibError``.
  func inflate(_ input: UnsafeRawBufferPointer, size: Int) throws(ZlibError) -> [UInt8] {
    let member = try takeMember()
    defer { idle.withLock { $0.append(member) } }
    return try member.inflater.withLock { inflater throws(ZlibError) in try inflater.inflate(input, size: size) }
  }
}
#endif
