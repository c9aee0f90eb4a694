#if HTTPClient
import AsyncHTTPClient
import Foundation
import HTTPTypes
import NIOHTTP1

/// The target of a request, as AsyncHTTPClient sends it.
///
/// The client encodes the characters that no URL has: `|` becomes `%7C`, and `%zz` becomes `%25zz`. The key of a stored
/// response is what was sent, so this type reads a URL as the client does.
struct ForwardedTarget: Sendable {
  /// The method.
  let method: HTTPRequest.Method

  /// The scheme in lower case: `http` or `https`.
  let scheme: String

  /// The host, and the port if the URL has one.
  let authority: String

  /// The path and the query.
  let path: String

  /// Reads the target of a request.
  ///
  /// It is `nil` if the URL or the method is invalid, or the URL has a scheme that a cache does not serve, such as that of
  /// a socket in the file system.
  init?(_ request: HTTPClientRequest) {
    guard let method = HTTPRequest.Method(request.method.rawValue), let url = URL(string: request.url),
      let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https",
      var host = url.host, !host.isEmpty
    else { return nil }
    self.method = method
    self.scheme = scheme
    if host.contains(":"), !host.hasPrefix("[") { host = "[\(host)]" }
    authority = host + (url.port.map { ":\($0)" } ?? "")
    // The client asks for the decoded path too. It is empty if its bytes are not UTF-8.
    let path = url.path.isEmpty ? "/" : url.path(percentEncoded: true)
    self.path = path + (url.query.map { "?\($0)" } ?? "")
  }
}
#endif
