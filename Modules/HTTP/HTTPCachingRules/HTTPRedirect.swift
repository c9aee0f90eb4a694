#if HTTPCache
public import HTTPTypes

/// The request to which a response redirects (RFC 9110, section 15.4).
///
/// A cache stores a redirect under the URL of its request, so a client which follows redirects must do so above the
/// cache:
///
/// ```swift
/// while let redirect = HTTPRedirect(from: request, by: response) {
///   request = redirect.request
///   response = try await send(request)
/// }
/// ```
///
/// A limit of the number of redirects is up to you.
public struct HTTPRedirect: Sendable, Hashable {
  /// The request to send next.
  ///
  /// `GET` replaces the method after 303, unless it is `HEAD`, and `POST` after 301 and 302. The fields about the body are then
  /// removed. If the origin is another one, ``originFields`` are removed.
  public let request: HTTPRequest

  /// The URL of the request.
  public let url: RequestURL

  /// The part of `Location` after `#`, or `nil` if it doesn't have one.
  ///
  /// It is not sent. A client that shows the URL appends it.
  public let fragment: String?

  /// A Boolean value that indicates whether the body of the first request is sent again.
  public let keepsBody: Bool

  /// The fields that are for one origin: credentials, `Host` and `Origin`.
  public static let originFields: Set<HTTPField.Name> = names([
    "Authorization", "Cookie", "Host", "Origin", "Proxy-Authorization",
  ])

  private static let bodyFields = names([
    "Content-Encoding", "Content-Language", "Content-Length", "Content-Location", "Content-Type", "Digest",
    "Last-Modified", "Transfer-Encoding",
  ])

  private static func names(_ names: [String]) -> Set<HTTPField.Name> { Set(names.compactMap { HTTPField.Name($0) }) }

  /// Reads a redirect.
  ///
  /// It is `nil` if the response is the final one: if it has another status than 301, 302, 303, 307 and 308, or no
  /// `Location`, or one whose scheme is neither `http` nor `https`, or which has a user name or a password. Characters that no
  /// URL has, such as a space or a letter beyond ASCII in the path, are encoded.
  ///
  /// - Parameters:
  ///   - request: The request, with a scheme, an authority and a path.
  ///   - response: The head of the response.
  public init?(from request: HTTPRequest, by response: HTTPResponse) {
    let (status, method) = (response.status.code, request.method)
    guard [301, 302, 303, 307, 308].contains(status), let location = response.headerFields[fields: .location].first,
      let base = try? RequestURL(of: request)
    else { return nil }
    let reference = Self.encoded(location.bytes)
    let hash = reference.firstIndex(of: UInt8(ascii: "#"))
    // A host is not encoded.
    guard let url = base.resolving(reference), url.scheme == "http" || url.scheme == "https",
      !url.authority.contains("%")
    else { return nil }
    self.url = url
    fragment = hash.map { String(decoding: reference[($0 + 1)...], as: UTF8.self) }
    keepsBody = !((status == 303 && method != .head) || ([301, 302].contains(status) && method == .post))
    var next = request
    (next.scheme, next.authority, next.path) = (url.scheme, url.authority, url.target)
    if !keepsBody {
      next.method = .get
      for name in Self.bodyFields { next.headerFields[fields: name] = [] }
    }
    if url.origin != base.origin {
      for name in Self.originFields { next.headerFields[fields: name] = [] }
    }
    self.request = next
  }

  /// Returns a reference with the characters encoded that no URL has.
  private static func encoded(_ reference: [UInt8]) -> [UInt8] {
    let digits = Array("0123456789ABCDEF".utf8)
    return reference.reduce(into: []) { encoded, byte in
      if byte > 0x20, byte < 0x7F, !#""<>\^`{|}"#.utf8.contains(byte) {
        encoded.append(byte)
      } else {
        encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
  }
}
#endif
