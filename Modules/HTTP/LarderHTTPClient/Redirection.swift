#if HTTPClient
import AsyncHTTPClient
import HTTPCachingRules
import HTTPTypes
import NIOHTTP1

/// The redirects of a request so far.
struct Redirection {
  private let redirects: CachedHTTPClient.Redirects
  private var visited: [String]

  init(_ redirects: CachedHTTPClient.Redirects, from url: String) {
    self.redirects = redirects
    visited = [url]
  }

  /// Returns the next request, or `nil` if the response is the final one.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - redirect: The redirect that the response is, or `nil` if it is not a redirect.
  func next(after request: HTTPClientRequest, _ redirect: HTTPRedirect?) -> HTTPClientRequest? {
    guard redirects.limit != nil, let redirect else { return nil }
    var next = request
    next.url = redirect.url.text + (redirect.fragment.map { "#\($0)" } ?? "")
    next.method = .init(rawValue: redirect.request.method.rawValue)
    if !redirect.keepsBody {
      next.body = nil
    } else if request.body != nil, !redirects.resendsBodies {
      // It may be a stream, which can be sent once.
      return nil
    }
    var fields = redirect.request.headerFields
    fields[.transferEncoding] = nil
    next.headers = HTTPHeaders(fields)
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
