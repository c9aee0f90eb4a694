/// Work that takes the longer the more is read: where that is much, it is not done on the caller's actor, which may be the
/// main actor.
///
/// A few small values are decoded where the caller is, since to go to another thread takes longer.
package enum BulkWork {
  /// The most entries that are decoded on the caller's actor.
  package static let entryLimit = 64

  /// The most stored bytes that are decoded on the caller's actor.
  package static let byteLimit = 64 << 10

  /// How many stored bytes may still be decoded.
  package struct Allowance: ~Copyable {
    private var byteCount: Int

    /// What is decoded off the caller's actor may be of any size.
    package static var unlimited: Allowance { Allowance(byteCount: .max) }

    fileprivate init(byteCount: Int) {
      self.byteCount = byteCount
    }

    /// Takes the bytes of a value that is decoded next.
    ///
    /// - Parameter count: How many they are.
    /// - Throws: An error that ``BulkWork/read(atMost:_:)`` catches.
    @inline(__always)
    package mutating func take(_ count: Int) throws {
      byteCount -= count
      if byteCount < 0 { throw TooMuch() }
    }
  }

  private struct TooMuch: Error {}

  /// Reads entries, off the caller's actor where they are more than ``entryLimit`` or larger than ``byteLimit``.
  ///
  /// - Parameters:
  ///   - count: The most entries that `body` reads.
  ///   - body: Reads them; a second time, from the beginning, where they turn out to be large.
  /// - Returns: What `body` returned.
  /// - Throws: What `body` throws.
  package static func read<Result: Sendable>(
    atMost count: Int, _ body: @Sendable (inout Allowance) throws -> Result
  ) async throws -> Result {
    if count <= entryLimit {
      var allowance = Allowance(byteCount: byteLimit)
      do {
        return try body(&allowance)
      } catch is TooMuch {
        // Everything is read again: a part of it would be of another moment.
      }
    }
    return try await readElsewhere(body)
  }

  @concurrent
  private static func readElsewhere<Result: Sendable>(
    _ body: @Sendable (inout Allowance) throws -> Result
  ) async throws -> Result {
    var allowance = Allowance.unlimited
    return try body(&allowance)
  }
}
