#if Hummingbird
public import Foundation
import HTTPTypes
public import Hummingbird
import NIOCore

/// The response to a request with an idempotency key, as it is stored for repetitions, without the field `Set-Cookie`.
///
/// ```swift
/// let requests = try IdempotencyKeys(bytes, prefix: "requests/", codec: .json(StoredHTTPResponse.self))
/// ```
public struct StoredHTTPResponse: Codable, Sendable, Hashable {
  /// The status code.
  public var status: Int

  /// The names and values of the header fields, in order.
  public var fields: [Field]

  /// The body.
  public var body: Data

  /// A header field.
  public struct Field: Codable, Sendable, Hashable {
    /// The name.
    public var name: String

    /// The value.
    public var value: String

    /// Creates a field.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - value: The value.
    public init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  /// Creates a response.
  ///
  /// - Parameters:
  ///   - status: The status code.
  ///   - fields: The header fields. Defaults to an empty list.
  ///   - body: The body. Defaults to an empty one.
  public init(status: Int, fields: [Field] = [], body: Data = Data()) {
    self.status = status
    self.fields = fields
    self.body = body
  }
}

extension StoredHTTPResponse {
  /// The response for Hummingbird.
  public var response: Response {
    var headers = HTTPFields()
    for field in fields {
      if let name = HTTPField.Name(field.name) { headers.append(HTTPField(name: name, value: field.value)) }
    }
    return Response(
      status: HTTPResponse.Status(code: status), headers: headers,
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
  }

  /// Collects the response of a handler.
  ///
  /// - Parameters:
  ///   - response: The response.
  ///   - limit: The maximum number of bytes of the body.
  /// - Throws: ``ResponseTooLarge``; the error of the body.
  init(_ response: Response, upTo limit: Int) async throws {
    let collected = CollectedBody(limit: limit)
    try await response.body.write(collected)
    self.init(
      status: response.status.code,
      fields: response.headers.filter { $0.name != .setCookie }.map {
        Field(name: $0.name.canonicalName, value: $0.value)
      },
      body: Data(collected.bytes))
  }
}

/// A writer that collects a body.
private final class CollectedBody: ResponseBodyWriter {
  let limit: Int
  private(set) var bytes: [UInt8] = []

  init(limit: Int) {
    self.limit = limit
  }

  func write(_ buffer: ByteBuffer) async throws {
    guard buffer.readableBytes <= limit - bytes.count else { throw ResponseTooLarge(limit: limit) }
    bytes += buffer.readableBytesView
  }

  func finish(_ trailingHeaders: HTTPFields?) async throws {}
}

/// The error of a response that is too large to be stored.
struct ResponseTooLarge: Error, CustomStringConvertible {
  let limit: Int

  var description: String {
    "the response to a request with an idempotency key has more than \(limit) bytes; raise maximumBodySize of the middleware"
  }
}
#endif
