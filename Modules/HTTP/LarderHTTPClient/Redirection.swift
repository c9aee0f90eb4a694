#if HTTPClient
internal import AsyncHTTPClient
internal import NIOHTTP1

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The redirects of a request so far, by the rules of AsyncHTTPClient.
struct Redirection {
  private let redirects: CachedHTTPClient.Redirects
  private var visited: [String]

  init(_ redirects: CachedHTTPClient.Redirects, from url: String) {
    self.redirects = redirects
    visited = [url]
  }

  /// Returns the request to which a response redirects, or `nil` if the response is the final one.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - status: The status of the response.
  ///   - headers: The fields of the response.
  func next(
    after request: HTTPClientRequest, status: HTTPResponseStatus, headers: HTTPHeaders
  ) -> HTTPClientRequest? {
    guard redirects.limit != nil, [301, 302, 303, 307, 308].contains(status.code),
      let location = headers.first(name: "Location"), let url = URL(string: request.url),
      let target = URL(string: location, relativeTo: url)?.absoluteURL,
      let scheme = target.scheme?.lowercased(), scheme == "http" || scheme == "https"
    else { return nil }
    var next = request
    next.url = target.absoluteString
    let becomesGet =
      (status.code == 303 && request.method != .HEAD)
      || ((status.code == 301 || status.code == 302) && request.method == .POST)
    if becomesGet {
      next.method = .GET
      next.body = nil
      for name in ["Content-Length", "Content-Type"] { next.headers.remove(name: name) }
    } else if request.body != nil, !redirects.resendsBodies {
      // It may be a stream, which can be sent once.
      return nil
    }
    if url.host != target.host || url.scheme != target.scheme || url.port != target.port {
      for name in ["Authorization", "Cookie", "Host", "Origin", "Proxy-Authorization"] {
        next.headers.remove(name: name)
      }
    }
    return next
  }

  /// Notes that a redirect is followed.
  ///
  /// - Throws: `HTTPClientError.redirectLimitReached` or `redirectCycleDetected`.
  mutating func follow(to url: String) throws {
    guard visited.count <= redirects.limit ?? 0 else { throw HTTPClientError.redirectLimitReached }
    guard redirects.allowsCycles || !visited.contains(url) else { throw HTTPClientError.redirectCycleDetected }
    visited.append(url)
  }
}
#endif
