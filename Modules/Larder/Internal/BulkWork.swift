/// Encoding and decoding: where that is much, it is not done on the caller's actor, which may be the main actor.
///
/// A few small values are encoded and decoded where the caller is, since to go to another thread takes longer, and so that
/// the writes of an actor keep their order.
package enum BulkWork {
  /// The most entries that are encoded or decoded on the caller's actor.
  package static let entryLimit = 64

  /// The most stored bytes that are encoded or decoded on the caller's actor.
  package static let byteLimit = 64 << 10

  /// How many stored bytes may still be encoded or decoded.
  package struct Allowance: ~Copyable {
    private var byteCount: Int

    /// Off the caller's actor values may be of any size.
    package static var unlimited: Allowance { Allowance(byteCount: .max) }

    fileprivate init(byteCount: Int) {
      self.byteCount = byteCount
    }

    /// Encodes a value, unless those before it were too large together.
    ///
    /// - Parameter body: Encodes it.
    /// - Returns: What `body` returned.
    /// - Throws: What `body` throws; an error that ``BulkWork/run(atMost:_:)`` catches.
    @inline(__always)
    package mutating func encode<Bytes: Collection>(_ body: () throws -> Bytes) throws -> Bytes {
      if byteCount < 0 { throw TooMuch() }
      let bytes = try body()
      byteCount -= bytes.count
      return bytes
    }

    /// Takes the bytes of a value that is decoded next.
    ///
    /// - Parameter count: How many they are.
    /// - Throws: An error that ``BulkWork/run(atMost:_:)`` catches.
    @inline(__always)
    package mutating func take(_ count: Int) throws {
      byteCount -= count
      if byteCount < 0 { throw TooMuch() }
    }
  }

  private struct TooMuch: Error {}

  /// Encodes or decodes entries, off the caller's actor where they are more than ``entryLimit`` or larger than
  /// ``byteLimit``.
  ///
  /// - Parameters:
  ///   - count: The most entries that there are.
  ///   - body: Does it; a second time, from the beginning, where they turn out to be large.
  /// - Returns: What `body` returned.
  /// - Throws: What `body` throws.
  package static func run<Result: Sendable>(
    atMost count: Int, _ body: @Sendable (inout Allowance) throws -> Result
  ) async throws -> Result {
    if count <= entryLimit {
      var allowance = Allowance(byteCount: byteLimit)
      do {
        return try body(&allowance)
      } catch is TooMuch {
        // All of it again: a part of what is read would be of another moment.
      }
    }
    return try await runElsewhere(body)
  }

  @concurrent
  private static func runElsewhere<Result: Sendable>(
    _ body: @Sendable (inout Allowance) throws -> Result
  ) async throws -> Result {
    var allowance = Allowance.unlimited
    return try body(&allowance)
  }
}
