#if HTTPCache
public import HTTPCachingRules
public import HTTPTypes

/// The response of an ``HTTPCache`` to a request.
///
/// ```swift
/// let response = try await cache.response(to: request, forward: forward)
/// let body = try await response.body.bytes(upTo: 1_000_000)
/// ```
public struct HTTPCacheResponse: Sendable {
  /// The head, with `Age` and `Cache-Status` if the cache adds them.
  public var head: HTTPResponse

  /// The body.
  ///
  /// It is empty if a response with this head and to this method has no body.
  public var body: HTTPCacheBody

  /// The way the cache answered.
  public var cacheStatus: CacheStatus

  /// The data that ``HTTPCacheConfiguration/willStore`` has added to the stored response; empty if there isn't one.
  public var userData: [UInt8]
}

/// The body of a response, as a sequence of chunks.
///
/// A body can be iterated once. The chunks have no particular size. If the body comes from the origin, the cache pulls
/// it as you read. A caller that reads slowly never delays another one of a response that is being stored, and otherwise for
/// at most ``HTTPCacheConfiguration/stallLimit``; after that, it fails with `readerTooSlow` if it is more than 2 MiB behind.
///
/// The sequence throws if the origin cut the body short, and if a chunk of a stored body is missing or damaged. It never
/// ends before the whole body was read. When you discard the body before its end, the cache stops reading it, and cancels
/// the request to the origin if it has no other reader.
public struct HTTPCacheBody: AsyncSequence, Sendable {
  /// A chunk of bytes, which is never empty.
  public typealias Element = [UInt8]

  /// The error of the origin, or an ``HTTPCacheError``.
  public typealias Failure = any Error

  /// The reading of the body, or `nil` for an empty one.
  let reading: BodyReading?

  /// Creates the iterator.
  ///
  /// A second iterator continues where the first one is.
  public func makeAsyncIterator() -> Iterator {
    Iterator(reading: reading)
  }

  /// An iterator over the chunks of a body.
  public struct Iterator: AsyncIteratorProtocol {
    let reading: BodyReading?

    /// Returns the next chunk, or `nil` at the end.
    ///
    /// - Throws: ``HTTPCacheError``, the errors of the origin, or `CancellationError` if the task is cancelled.
    public mutating func next() async throws -> [UInt8]? {
      try await reading?.next()
    }

    /// Returns the next chunk, or `nil` at the end.
    ///
    /// - Parameter actor: The actor of the caller.
    /// - Throws: ``HTTPCacheError``, the errors of the origin, or `CancellationError` if the task is cancelled.
    public mutating func next(isolation actor: isolated (any Actor)?) async throws -> [UInt8]? {
      try await reading?.next()
    }
  }

  /// Reads the whole body into memory.
  ///
  /// ```swift
  /// let page = try await response.body.bytes(upTo: 1_000_000)
  /// ```
  ///
  /// - Parameter limit: The maximum number of bytes.
  /// - Returns: The bytes.
  /// - Throws: ``HTTPCacheError`` with `bodyTooLarge` if the body has more bytes; the errors of the sequence.
  public func bytes(upTo limit: Int) async throws -> [UInt8] {
    var bytes: [UInt8] = []
    for try await chunk in self {
      guard bytes.count + chunk.count <= limit else {
        throw HTTPCacheError(
          .bodyTooLarge, "the body has more than \(limit) bytes; raise the limit or read it in chunks")
      }
      if bytes.isEmpty { bytes = chunk } else { bytes += chunk }
    }
    return bytes
  }

  /// Reads the body without keeping it, so the response is stored.
  ///
  /// Only a whole body is stored. Call the method for a response whose body you don't need, such as a redirect that you
  /// follow. It gives up without an error if the body is too large, takes too long or fails, because the response is then only
  /// not stored.
  ///
  /// ```swift
  /// try await response.body.discard(within: .seconds(5))  // stores the response, although nothing reads it
  /// ```
  ///
  /// - Parameters:
  ///   - limit: The number of bytes after which it gives up. Defaults to 65,536.
  ///   - time: The time after which it gives up. Defaults to `nil`.
  /// - Throws: `CancellationError` if the task is cancelled.
  public func discard(upTo limit: Int = 65_536, within time: Duration? = nil) async throws {
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        var count = 0
        // An error ends the reading, as the end of the body does.
        var chunks = makeAsyncIterator()
        while count <= limit, let chunk = try? await chunks.next() { count += chunk.count }
      }
      if let time { group.addTask { try? await Task.sleep(for: time) } }
      await group.next()
      group.cancelAll()
    }
    try Task.checkCancellation()
  }
}
#endif
