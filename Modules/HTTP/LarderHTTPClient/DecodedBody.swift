#if HTTPClient
import LarderHTTPCache
import NIOCore
import NIOHTTP1

/// The body of a response, decoded while it is read.
struct DecodedBody: AsyncSequence, Sendable {
  /// The largest number of codings that are decoded, so a small body cannot take much memory and time.
  static let highestCodingCount = 5

  let body: HTTPCacheBody
  let codingCount: Int

  /// Returns the number of codings of a body, or `nil` if it cannot be decoded.
  ///
  /// Each coding must be `gzip` or `deflate`, in letters of any case, or the earlier name `x-gzip`. A part of an encoded body
  /// cannot be decoded.
  ///
  /// - Parameters:
  ///   - status: The status of the response.
  ///   - headers: The fields of the response.
  static func codingCount(status: HTTPResponseStatus, _ headers: HTTPHeaders) -> Int? {
    guard status != .partialContent else { return nil }
    let codings = headers[canonicalForm: "Content-Encoding"].map { $0.lowercased() }.filter { $0 != "identity" }
    guard codings.count <= highestCodingCount, codings.allSatisfy({ ["gzip", "x-gzip", "deflate"].contains($0) }) else {
      return nil
    }
    return codings.count
  }

  struct AsyncIterator: AsyncIteratorProtocol {
    var encoded: HTTPCacheBody.AsyncIterator

    /// The decoders of the codings, of which the first one decodes the coding that was applied last.
    ///
    /// A decoder recognizes its format.
    var decoders: [BodyDecoder] = []
    let codingCount: Int

    @concurrent
    mutating func next() async throws -> ByteBuffer? {
      while decoders.count < codingCount { decoders.append(try BodyDecoder()) }
      return try await next(after: decoders.count)
    }

    /// Returns the next bytes that some number of decoders have decoded.
    private mutating func next(after count: Int) async throws -> ByteBuffer? {
      guard count > 0 else { return try await encoded.next().map { ByteBuffer(bytes: $0) } }
      let decoder = decoders[count - 1]
      while true {
        if let decoded = try decoder.next() { return decoded }
        guard let bytes = try await next(after: count - 1) else {
          try decoder.finish()
          return nil
        }
        decoder.append(bytes)
      }
    }
  }

  func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(encoded: body.makeAsyncIterator(), codingCount: codingCount)
  }
}
#endif
