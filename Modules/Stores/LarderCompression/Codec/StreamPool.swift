#if Compression
import Foundation
import Synchronization

/// Streams that are made once and used again, as many at a time as there are processors.
///
/// Nobody waits for a stream: who finds all of them in use makes one for himself.
final class StreamPool<Stream: ~Copyable & Sendable>: Sendable {
  private final class Slot: Sendable {
    /// The stream; `nil` until it is needed.
    let stream = Mutex<Stream?>(nil)
  }

  private let slots: [Slot]
  private let make: @Sendable () throws(ZlibError) -> Stream

  /// Makes a pool.
  ///
  /// - Parameters:
  ///   - count: How many streams are kept at most; the number of processors unless given.
  ///   - make: Makes a stream.
  init(
    count: Int = ProcessInfo.processInfo.activeProcessorCount,
    _ make: @escaping @Sendable () throws(ZlibError) -> Stream
  ) {
    slots = (0..<count).map { _ in Slot() }
    self.make = make
  }

  /// Lends a stream.
  ///
  /// - Parameter body: Uses the stream, which keeps no trace of what it was used for before.
  /// - Throws: What `body` throws; ``ZlibError`` where a stream has to be made and there is no memory.
  func withStream<Result>(_ body: (inout Stream) throws(ZlibError) -> Result) throws(ZlibError) -> Result {
    for slot in slots {
      let result = try slot.stream.withLockIfAvailable { kept throws(ZlibError) -> Result in
        var stream = if let kept = kept.take() { kept } else { try make() }
        do throws(ZlibError) {
          let result = try body(&stream)
          kept = consume stream
          return result
        } catch {
          kept = consume stream
          throw error
        }
      }
      if let result { return result }
    }
    var stream = try make()
    return try body(&stream)
  }
}
#endif
