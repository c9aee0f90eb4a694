#if HTTPClient
internal import AsyncHTTPClient
internal import HTTPTypes
internal import LarderHTTPCache
internal import NIOCore
internal import NIOHTTP1

/// A response of AsyncHTTPClient in the form in which a cache may store it.
///
/// The client's configuration cannot be read, and may say that the client decodes bodies. It then leaves `Content-Encoding`
/// and `Content-Length` as they came.
enum OriginResponse {
  /// The first bytes of a body in gzip (RFC 1952): two that identify the format, and the only method.
  private static let gzipStart: [UInt8] = [0x1F, 0x8B, 0x08]

  /// Returns a response for the cache.
  ///
  /// - Parameters:
  ///   - response: The response of the client.
  ///   - request: The request that was forwarded.
  ///   - isComplete: Whether the response has the body that the origin sent.
  static func forwarded(
    _ response: HTTPClientResponse, to request: HTTPRequest, isComplete: Bool
  ) async throws -> HTTPForwardedResponse {
    var head = HTTPResponse(
      status: .init(code: Int(response.status.code), reasonPhrase: response.status.reasonPhrase),
      headerFields: HTTPFields(of: response))
    let body = OriginBody(response.body)
    let isStorable: Bool
    switch head.headerFields[.contentEncoding] {
    case _ where request.method == .head || [204, 304].contains(head.status.code):
      head.headerFields.weakenTag(confirming: request)
      isStorable = true
    case "gzip" where head.status != .partialContent:
      let start = try await body.peek(Self.gzipStart.count)
      let isEncoded = start == Self.gzipStart || (start.isEmpty && head.headerFields[.contentLength] == "0")
      if !isEncoded { head.headerFields.describeDecodedBody() }
      isStorable = true
    case "gzip", "deflate":
      // The bytes do not show whether the client has decoded them.
      head.headerFields[.contentLength] = nil
      isStorable = false
    default: isStorable = true
    }
    var forwarded = HTTPForwardedResponse(head: head, body: body)
    forwarded.isStorable = isStorable && isComplete
    return forwarded
  }
}

extension HTTPFields {
  /// Creates the fields of a response.
  ///
  /// The client repairs values that are not UTF-8. Two different validators can then become the same one, so that such a
  /// value is not a validator.
  fileprivate init(of response: HTTPClientResponse) {
    self.init()
    reserveCapacity(response.headers.count)
    for (name, value) in response.headers {
      guard let name = HTTPField.Name(name) else { continue }
      if name == .eTag || name == .lastModified, value.unicodeScalars.contains("\u{FFFD}") { continue }
      append(HTTPField(name: name, value: value))
    }
  }

  /// Changes the head of an encoded body so that it describes the decoded one (RFC 9110, section 7.7).
  fileprivate mutating func describeDecodedBody() {
    self[.contentEncoding] = nil
    self[.contentLength] = nil
    if let tag = self[.eTag], !tag.hasPrefix("W/") { self[.eTag] = "W/\(tag)" }
  }

  /// Weakens the tag of a 304 if the request asked for the weak one, which a decoded body has.
  fileprivate mutating func weakenTag(confirming request: HTTPRequest) {
    guard let tag = self[.eTag], tag.hasPrefix("\""), let asked = request.headerFields[.ifNoneMatch],
      asked.contains("W/\(tag)")
    else { return }
    self[.eTag] = "W/\(tag)"
  }
}

/// The body of a response of AsyncHTTPClient, whose first bytes can be read before the others.
///
/// A lock cannot guard the iterator, because the iterator suspends. Its users take turns instead: ``peek(_:)`` is called by
/// the task that creates the body, before it passes the body to `HTTPForwardedResponse`, which iterates it in one task at
/// most. Passing it orders the accesses. This is why the class is `Sendable`.
private final class OriginBody: AsyncSequence, @unchecked Sendable {
  private var iterator: HTTPClientResponse.Body.AsyncIterator
  private var start: [ByteBuffer] = []

  init(_ body: HTTPClientResponse.Body) {
    iterator = body.makeAsyncIterator()
  }

  /// Returns the first bytes of the body, without taking them; fewer if the body is shorter.
  func peek(_ count: Int) async throws -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count, let buffer = try await iterator.next() {
      bytes += buffer.readableBytesView.prefix(count - bytes.count)
      start.append(buffer)
    }
    start.reverse()
    return bytes
  }

  struct AsyncIterator: AsyncIteratorProtocol {
    let body: OriginBody

    @concurrent
    func next() async throws -> ByteBufferView? {
      if let buffer = body.start.popLast() { return buffer.readableBytesView }
      return try await body.iterator.next()?.readableBytesView
    }
  }

  func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(body: self)
  }
}
#endif
