import Larder
#if Compression
import Foundation

/// A pool of reusable streams, at most as many as there are processors.
///
/// A caller never waits for a stream. If all of them are in use, it creates one of its own.
public final class StreamPool<Stream: ~Copyable & Sendable>: Sendable {
  private final class Slot: Sendable {
    /// The stream, or `nil` until it is needed.
    let stream = Locked<Stream?>(nil)
  }

  private let slots: [Slot]
  private let make: @Sendable () throws(ZlibError) -> Stream

  /// Creates a pool.
  ///
  /// - Parameters:
  ///   - count: The maximum number of streams to keep. Defaults to `nil`, for the number of processors.
  ///   - make: A closure that creates a stream.
  public init(
    count: Int? = nil,
    _ make: @escaping @Sendable () throws(ZlibError) -> Stream
  ) {
    slots = (0..<(count ?? ProcessInfo.processInfo.activeProcessorCount)).map { _ in Slot() }
    self.make = make
  }

  /// Calls a closure with exclusive access to a stream.
  ///
  /// - Parameter body: The closure. It must leave the stream in a state that does not affect the next use.
  /// - Throws: Any error of `body`; ``ZlibError`` if a new stream is required and there is not enough memory.
  public func withStream<Result>(_ body: (inout Stream) throws(ZlibError) -> Result) throws(ZlibError) -> Result {
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
