#if HTTPCache
internal import HTTPTypes

/// The choice of the URLs that a response invalidates (RFC 9111, section 4.4).
enum InvalidatedURLs {
  /// The registered methods that are safe.
  ///
  /// Any other method may change what it is applied to.
  private static let safeMethods: Set = ["GET", "HEAD", "OPTIONS", "PROPFIND", "QUERY", "REPORT", "SEARCH", "TRACE"]

  /// Returns the URLs that a response to a request invalidates: the one of the request, and those in `Location` and
  /// `Content-Location` that have the same origin.
  static func urls(_ response: HTTPResponse, to request: HTTPRequest, at url: String) -> [String] {
    guard !safeMethods.contains(request.method.rawValue), (200..<400).contains(response.status.code) else { return [] }
    var urls = [url]
    guard let base = try? RequestURL(url) else { return urls }
    for name in [HTTPField.Name.location, .contentLocation] {
      guard let field = response.headerFields[fields: name].first, let target = base.resolving(field.bytes),
        target.origin == base.origin, !urls.contains(target.text)
      else { continue }
      urls.append(target.text)
    }
    return urls
  }
}
#endif
