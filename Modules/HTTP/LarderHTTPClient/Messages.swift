#if HTTPClient
import AsyncHTTPClient
import HTTPTypes
import LarderHTTPCache
import NIOCore
import NIOHTTP1

extension HTTPForwardedResponse {
  /// Creates the response that the cache decides on.
  ///
  /// - Parameter response: A response of a client that neither follows redirects nor decodes bodies.
  init(_ response: HTTPClientResponse) {
    let status = HTTPResponse.Status(
      code: Int(response.status.code), reasonPhrase: response.status.reasonPhrase)
    self.init(
      head: HTTPResponse(status: status, headerFields: HTTPFields(of: response)),
      body: response.body.map { $0.readableBytesView })
    // The client removes chunks and none of these transfer codings, which it does not ask for (RFC 9112, section 7.2). A
    // name that is no coding has encoded nothing.
    let codings = response.headers[canonicalForm: "Transfer-Encoding"].joined(separator: ",").lowercased()
    isStorable = !["gzip", "deflate", "compress"].contains(where: codings.contains)
  }
}

extension HTTPFields {
  /// Creates the fields of a request.
  ///
  /// The client frames the body itself. The cache needs to know whether there is one.
  ///
  /// - Throws: The errors of the client for invalid fields.
  init(of request: HTTPClientRequest) throws {
    self.init()
    reserveCapacity(request.headers.count + 1)
    for (name, value) in request.headers {
      guard let field = HTTPField.Name(name) else { throw HTTPClientError.invalidHeaderFieldNames([name]) }
      guard HTTPField.isValidValue(value) else { throw HTTPClientError.invalidHeaderFieldValues([value]) }
      if field == .contentLength || field == .transferEncoding { continue }
      append(HTTPField(name: field, value: value))
    }
    if request.body != nil { append(HTTPField(name: .transferEncoding, value: "chunked")) }
  }

  /// Creates the fields of a response.
  ///
  /// The client repairs values that are not UTF-8. Two different validators can then become the same one, so such a
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
}

extension HTTPHeaders {
  init(_ fields: HTTPFields) {
    self.init()
    reserveCapacity(fields.count)
    for field in fields { add(name: field.name.rawName, value: field.value) }
  }
}
#endif
