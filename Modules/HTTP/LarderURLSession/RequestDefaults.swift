#if HTTPCache
import Foundation
import HTTPCachingRules
import HTTPTypes

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The fields that a `URLSession` adds to requests, and that responses may depend on.
///
/// They are added above the cache, because it decides by the fields of a request which stored response answers it.
struct RequestDefaults: Sendable {
  private let fields: [String: String]
  private let cookies: HTTPCookieStorage?

  /// Creates the defaults of a configuration.
  init(_ configuration: URLSessionConfiguration) {
    var fields: [String: String] = [:]
    for case (let name as String, let value as String) in configuration.httpAdditionalHeaders ?? [:] {
      fields[name] = value
    }
    self.fields = fields
    cookies = configuration.httpShouldSetCookies ? configuration.httpCookieStorage : nil
  }

  /// Returns the configuration of a session that sends requests as they are.
  ///
  /// The configuration is a copy. Stored passwords would be used without the cache knowing the user.
  static func forwarding(_ configuration: URLSessionConfiguration) -> URLSessionConfiguration {
    // `copy` returns the class of its object.
    let copy = configuration.copy() as? URLSessionConfiguration ?? .default
    copy.urlCache = nil
    copy.requestCachePolicy = .reloadIgnoringLocalCacheData
    copy.httpAdditionalHeaders = nil
    copy.httpShouldSetCookies = false
    copy.urlCredentialStorage = nil
    return copy
  }

  /// Returns a request with all fields that the session would add.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - isRedirected: A Boolean value that indicates whether it is one to another origin than the caller's. It gets no
  ///     credentials.
  func added(to request: URLRequest, isRedirected: Bool) -> URLRequest {
    var request = request
    for (name, value) in fields where request.value(forHTTPHeaderField: name) == nil {
      if isRedirected, HTTPField.Name(name).map({ HTTPRedirect.originFields.contains($0) }) ?? true { continue }
      request.setValue(value, forHTTPHeaderField: name)
    }
    if request.httpShouldHandleCookies, request.value(forHTTPHeaderField: "Cookie") == nil, let url = request.url,
      let stored = cookies?.cookies(for: url), !stored.isEmpty
    {
      request.setValue(HTTPCookie.requestHeaderFields(with: stored)["Cookie"], forHTTPHeaderField: "Cookie")
    }
    if request.value(forHTTPHeaderField: "Accept-Language") == nil {
      let languages = Locale.preferredLanguages.prefix(6)
      if !languages.isEmpty {
        request.setValue(languages.joined(separator: ", "), forHTTPHeaderField: "Accept-Language")
      }
    }
    if request.value(forHTTPHeaderField: "Accept-Encoding") == nil {
      request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
    }
    return request
  }
}
#endif
