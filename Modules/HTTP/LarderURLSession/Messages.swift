#if HTTPCache
import Foundation
import HTTPCachingRules
import HTTPTypes
import LarderHTTPCache

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension HTTPRequest {
  /// Creates the request that the cache decides on.
  ///
  /// - Throws: `URLError` if the URL is not one of HTTP, or a field is invalid.
  init(_ request: URLRequest) throws {
    guard let url = request.url?.absoluteURL, let scheme = url.scheme?.lowercased(),
      ["http", "https"].contains(scheme),
      var host = url.host, !host.isEmpty, url.user == nil, let method = Method(request.httpMethod ?? "GET")
    else { throw URLError(.unsupportedURL) }
    if host.contains(":"), !host.hasPrefix("[") { host = "[\(host)]" }
    let path = url.path(percentEncoded: true)
    self.init(
      method: method, scheme: scheme, authority: host + (url.port.map { ":\($0)" } ?? ""),
      path: (path.isEmpty ? "/" : path) + (url.query(percentEncoded: true).map { "?\($0)" } ?? ""))
    for (name, value) in request.allHTTPHeaderFields ?? [:] {
      guard let field = HTTPField.Name(name), HTTPField.isValidValue(value) else { throw URLError(.badURL) }
      if field == .contentLength || field == .transferEncoding { continue }
      headerFields.append(HTTPField(name: field, value: value))
    }
    // The session frames the body itself. The cache needs to know whether there is one.
    if request.httpBody?.isEmpty == false || request.httpBodyStream != nil {
      headerFields[.transferEncoding] = "chunked"
    }
  }
}

extension URLRequest {
  /// Creates the request that is sent: the one of the caller, with the fields that the cache wants.
  init(_ forwarded: HTTPRequest, as request: URLRequest) {
    self = request
    cachePolicy = .reloadIgnoringLocalCacheData
    for name in (request.allHTTPHeaderFields ?? [:]).keys { setValue(nil, forHTTPHeaderField: name) }
    var fields = forwarded.headerFields
    fields[.transferEncoding] = nil
    for field in fields { addValue(field.value, forHTTPHeaderField: field.name.rawName) }
  }

  /// Returns the request to which a response redirects, or `nil` if it needs a body again that can be sent once.
  func following(_ redirect: HTTPRedirect) -> URLRequest? {
    guard let url = URL(string: redirect.url.text + (redirect.fragment.map { "#\($0)" } ?? "")) else { return nil }
    var next = self
    next.url = url
    next.httpMethod = redirect.request.method.rawValue
    if !redirect.keepsBody {
      next.httpBody = nil
      next.httpBodyStream = nil
    } else if httpBodyStream != nil {
      return nil
    }
    for name in (allHTTPHeaderFields ?? [:]).keys {
      let isKept = HTTPField.Name(name).map { redirect.request.headerFields.contains($0) } ?? false
      if !isKept { next.setValue(nil, forHTTPHeaderField: name) }
    }
    return next
  }

  /// The time that the request may wait for that of another caller, or `nil` for that of the cache.
  ///
  /// The timeout is that of the caller. It can be unlimited.
  var waitLimit: Duration? {
    timeoutInterval >= 0 && timeoutInterval <= 86_400 ? .seconds(timeoutInterval) : nil
  }
}

extension HTTPForwardedResponse {
  /// Creates the response that the cache decides on.
  init(_ response: HTTPURLResponse, _ body: TransferBody) {
    var fields = HTTPFields()
    for case (let name as String, let value as String) in response.allHeaderFields {
      guard let name = HTTPField.Name(name) else { continue }
      // Bytes that are not ASCII may have been repaired, and two validators can then become the same one.
      if name == .eTag || name == .lastModified, !value.utf8.allSatisfy({ $0 < 0x80 }) { continue }
      fields.append(HTTPField(name: name, value: value))
    }
    // The session leaves the head as it came. It does not tell if it has decoded the body.
    let isEncoded = !(fields[.contentEncoding] ?? "identity").isIdentity
    if isEncoded { fields[.contentLength] = nil }
    self.init(head: HTTPResponse(status: .init(code: response.statusCode), headerFields: fields), body: body)
    isStorable = !isEncoded
  }
}

extension HTTPURLResponse {
  /// Creates the response that the caller receives, or `nil` if the head is not one.
  convenience init?(_ head: HTTPResponse, url: URL) {
    // A dictionary has each name once, in one spelling.
    var fields: [String: String] = [:]
    for name in Set(head.headerFields.map(\.name)) { fields[name.rawName] = head.headerFields[name] }
    self.init(url: url, statusCode: head.status.code, httpVersion: "HTTP/1.1", headerFields: fields)
  }
}

extension String {
  fileprivate var isIdentity: Bool { lowercased() == "identity" || isEmpty }
}
#endif
