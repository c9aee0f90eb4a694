#if HTTPClient
internal import LarderHTTPCache
internal import NIOCore
internal import NIOHTTP1

/// The body of a response, decoded while it is read.
struct DecodedBody: AsyncSequence, Sendable {
  let body: HTTPCacheBody

  /// Returns whether a body can be decoded, by the rules of AsyncHTTPClient.
  ///
  /// The coding must be `gzip` or `deflate`, in letters of any case. A coding that is listed twice counts once, because servers
  /// that list it twice have applied it once. A part of an encoded body cannot be decoded.
  ///
  /// - Parameters:
  ///   - status: The status of the response.
  ///   - headers: The fields of the response.
  static func canDecode(status: HTTPResponseStatus, _ headers: HTTPHeaders) -> Bool {
    guard status != .partialContent else { return false }
    let codings = Set(headers[canonicalForm: "Content-Encoding"].map { $0.lowercased() })
    return codings == ["gzip"] || codings == ["deflate"]
  }

  struct AsyncIterator: AsyncIteratorProtocol {
    var encoded: HTTPCacheBody.AsyncIterator
    var inflater: Inflater?

    @concurrent
    mutating func next() async throws -> ByteBuffer? {
      let inflater = try inflater ?? Inflater()
      self.inflater = inflater
      while true {
        if let decoded = try inflater.next() { return decoded }
        guard let bytes = try await encoded.next() else {
          try inflater.finish()
          return nil
        }
        inflater.append(bytes)
      }
    }
  }

  func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(encoded: body.makeAsyncIterator())
  }
}
#endif
