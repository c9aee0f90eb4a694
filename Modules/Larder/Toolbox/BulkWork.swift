/// Runs the encoding and decoding of many or large values off the caller's actor, which may be the main actor.
///
/// A few small values are encoded and decoded on the caller's actor, because switching to another thread takes longer,
/// and so that the writes of an actor keep their order.
///
/// ```swift
/// let values = try await BulkWork.run(atMost: stored.count) { allowance in
///   try stored.map { key, bytes in
///     try allowance.take(bytes.count)
///     return try bytes.withUnsafeBytes { try coder.value(of: $0, forKey: key, during: .values) }
///   }
/// }
/// ```
public enum BulkWork {
  /// The maximum number of entries that are encoded or decoded on the caller's actor.
  public static let entryLimit = 64

  /// The maximum number of stored bytes that are encoded or decoded on the caller's actor.
  public static let byteLimit = 64 << 10

  /// The number of stored bytes that may still be encoded or decoded.
  public struct Allowance: ~Copyable {
    private var byteCount: Int

    /// The allowance for work off the caller's actor, where values may have any size.
    public static var unlimited: Allowance { Allowance(byteCount: .max) }

    fileprivate init(byteCount: Int) {
      self.byteCount = byteCount
    }

    /// Encodes a value if the preceding values did not exceed the allowance.
    ///
    /// - Parameter body: A closure that returns the encoded bytes.
    /// - Returns: The result of `body`.
    /// - Throws: The error that `body` throws; an error that ``BulkWork/run(atMost:_:)`` catches.
    @inline(__always)
    public mutating func encode<Bytes: Collection>(_ body: () throws -> Bytes) throws -> Bytes {
      if byteCount < 0 { throw AllowanceExceeded() }
      let bytes = try body()
      byteCount -= bytes.count
      return bytes
    }

    /// Consumes the allowance for a value that is decoded next.
    ///
    /// - Parameter count: The number of bytes of the value.
    /// - Throws: An error that ``BulkWork/run(atMost:_:)`` catches.
    @inline(__always)
    public mutating func take(_ count: Int) throws {
      byteCount -= count
      if byteCount < 0 { throw AllowanceExceeded() }
    }
  }

  private struct AllowanceExceeded: Error {}

  /// Runs a closure that encodes or decodes entries, off the caller's actor if there are more than ``entryLimit`` of
  /// them or if they have more than ``byteLimit`` bytes.
  ///
  /// - Parameters:
  ///   - count: The maximum number of entries.
  ///   - body: The closure. If the entries turn out to be too large, it runs a second time, from the beginning.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws.
  public static func run<Result: Sendable>(
    atMost count: Int, _ body: @Sendable (inout Allowance) throws -> Result
  ) async throws -> Result {
    if count <= entryLimit {
      var allowance = Allowance(byteCount: byteLimit)
      do {
        return try body(&allowance)
      } catch is AllowanceExceeded {
        // Repeat the whole work, because entries that are read in two parts would be of two moments.
      }
    }
    return try await runElsewhere(body)
  }

  /// Encodes each value of a batch by itself, as ``run(atMost:_:)`` does.
  ///
  /// A store whose changes are sorted and written together uses ``ValueCoder/encoded(_:for:during:)``.
  ///
  /// - Parameters:
  ///   - batch: The batch.
  ///   - encode: A closure that returns the bytes of a value.
  /// - Returns: The changes, in the order of the batch.
  /// - Throws: The error that `encode` throws.
  public static func encode<Value: Sendable, Bytes: Collection & Sendable>(
    _ batch: ChangeBatch<Value>, _ encode: @Sendable (_ value: Value, _ key: StoreKey) throws -> Bytes
  ) async throws -> [BatchChange<Bytes>] {
    try await run(atMost: batch.count) { allowance in
      try batch.changes.map { change in
        try change.mapValue { key, value in try allowance.encode { try encode(value, key) } }
      }
    }
  }

  /// Decodes the values of keys, as ``run(atMost:_:)`` does.
  ///
  /// - Parameters:
  ///   - stored: The bytes of each key, or `nil` for a missing one.
  ///   - keys: The keys.
  ///   - decode: A closure that returns the value of the bytes of a key.
  /// - Returns: A value for each key, or `nil` for a missing one.
  /// - Throws: The error that `decode` throws.
  public static func decode<Value: Sendable>(
    _ stored: [[UInt8]?], forKeys keys: [StoreKey],
    _ decode: @Sendable (_ bytes: [UInt8], _ key: StoreKey) throws -> Value
  ) async throws -> [Value?] {
    try await run(atMost: keys.count) { allowance in
      try zip(keys, stored).map { key, bytes in
        guard let bytes else { return nil }
        try allowance.take(bytes.count)
        return try decode(bytes, key)
      }
    }
  }

  @concurrent
  private static func runElsewhere<Result: Sendable>(
    _ body: @Sendable (inout Allowance) throws -> Result
  ) async throws -> Result {
    var allowance = Allowance.unlimited
    return try body(&allowance)
  }
}
