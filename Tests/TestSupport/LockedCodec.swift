import Foundation
public import Larder
import Testing

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

/// Expects that a queue which closes while it receives releases an item for which it lacks a key.
///
/// The release is a part of a call that began before the queue closed.
///
/// - Parameter open: A closure that opens the queue, or opens it again, with a codec.
public func expectReleaseWhileClosing<Queue: DurableQueue<[UInt8]>>(
  open: (LockedCodec) async throws -> Queue
) async throws {
  let isDecoding = Locked(false)
  let isClosing = Locked(false)
  var queue = try await open(
    LockedCodec {
      isDecoding.withLock { $0 = true }
      while !isClosing.withLock({ $0 }) { usleep(1000) }
      return false
    })
  try await queue.enqueue([0xFF])
  let receiving = Task(executorPreference: OwnThreads()) { [queue] in try await queue.receive(lease: .seconds(900)) }
  while !isDecoding.withLock({ $0 }) { await Task.yield() }
  let closing = Task { [queue] in try await queue.close() }
  // Closing has begun when new operations are refused.
  while await (try? queue.counts()) != nil { await Task.yield() }
  isClosing.withLock { $0 = true }
  await expectStoreError(.keyUnavailable) { try await receiving.value }
  try await closing.value
  queue = try await open(LockedCodec { true })
  #expect(try await queue.receive(lease: .seconds(900))?.attempt == 1)
  try await queue.close()
}
