#if HTTPCache
public import HTTPTypes

/// The response of the origin to a forwarded request.
///
/// ```swift
/// let response = try await cache.response(to: request) { forwarded in
///   let (head, body) = try await client.send(forwarded)
///   return HTTPForwardedResponse(head: head, body: body)
/// }
/// ```
///
/// The head must be a final one: an interim response (1xx) is an error, ``HTTPCacheError/Code/interimResponse``. The cache
/// pulls the body chunk by chunk while it is read, and keeps less than 2 MiB and two chunks of it in memory. An error that
/// the body throws means that it was cut short. The bytes of the body must be those that the head describes: if your client
/// decodes `Content-Encoding`, remove that field and `Content-Length` from the head.
public struct HTTPForwardedResponse: Sendable {
  /// The head.
  public var head: HTTPResponse

  /// A Boolean value that indicates whether the response may be stored.
  ///
  /// Defaults to `true`. Set it to `false` if your client has changed the response in a way that the head does not
  /// describe. `Cache-Status` then has the detail `not-stored-client`.
  public var isStorable = true

  /// A closure that takes the next chunk of a body, and returns when there is room for another one.
  ///
  /// It throws if the body is not needed any more. An empty chunk is ignored.
  public typealias Write = @Sendable (_ chunk: [UInt8]) async throws -> Void

  /// Passes the chunks of the body to a closure, until the body ends or the closure throws.
  let forEachChunk: @Sendable (_ write: @escaping Write) async throws -> Void

  /// Creates a response with a body that arrives in chunks.
  ///
  /// - Parameters:
  ///   - head: The head of the response to the request itself, also if it is a redirect: it is stored under the URL of the
  ///     request.
  ///   - body: The chunks of the body, such as arrays of bytes or buffers of swift-nio. It is iterated once at most.
  public init<Body: AsyncSequence & Sendable>(head: HTTPResponse, body: Body) where Body.Element: Sequence<UInt8> {
    self.head = head
    forEachChunk = { write in
      for try await chunk in body { try await write(Array(chunk)) }
    }
  }

  /// Creates a response with a body that a closure writes.
  ///
  /// ```swift
  /// let response = HTTPForwardedResponse(head: HTTPResponse(status: .ok)) { write in
  ///   for number in 1...3 { try await write(Array("\(number)\n".utf8)) }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - head: The head.
  ///   - writeBody: A closure that passes the chunks to `write`, one after another, and returns after the last one. It runs
  ///     once at most. An error that it throws means that the body was cut short.
  public init(
    head: HTTPResponse, writingBody writeBody: @escaping @Sendable (_ write: @escaping Write) async throws -> Void
  ) {
    self.head = head
    forEachChunk = writeBody
  }

  /// Creates a response with a body in memory.
  ///
  /// ```swift
  /// let response = HTTPForwardedResponse(head: HTTPResponse(status: .ok), body: Array("hello".utf8))
  /// ```
  ///
  /// - Parameters:
  ///   - head: The head.
  ///   - body: The body. Defaults to an empty one.
  public init(head: HTTPResponse, body: [UInt8] = []) {
    self.head = head
    forEachChunk = { write in
      if !body.isEmpty { try await write(body) }
    }
  }
}
#endif
