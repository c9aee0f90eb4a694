#if HTTPCache
internal import HTTPTypes

/// The URL of a request, which is the key of its responses.
///
/// The scheme and the host are in lower case; the scheme's default port and the fragment are gone. Nothing else is
/// normalized.
struct RequestURL: Sendable, Hashable {
  /// The URL.
  let text: String

  /// A reason why a request has no URL that a cache can use.
  enum Problem: Error, Sendable, Hashable {
    /// The scheme, the authority or the path is missing.
    case incomplete
    /// The authority has a user name or a password.
    case userInformation
    /// The URL has a character that no URL has, or its port is not a number.
    case invalid
  }

  /// Reads the URL of a request.
  init(of request: HTTPRequest) throws(Problem) {
    guard let scheme = request.scheme, let authority = request.authority, let path = request.path else {
      throw .incomplete
    }
    text = scheme + "://" + authority + path
  }
}
#endif
