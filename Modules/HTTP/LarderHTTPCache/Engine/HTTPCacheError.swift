#if HTTPCache
import HTTPCachingRules

/// An error of an ``HTTPCache``.
///
/// The text never contains a URL, a field or a byte of a body. A failing store is no error of a request: the origin
/// answers instead.
public struct HTTPCacheError: Error, Sendable, Hashable, CustomStringConvertible {
  /// A kind of failure.
  ///
  /// The set of codes is open.
  public struct Code: RawRepresentable, Sendable, Hashable {
    /// The name.
    public let rawValue: String

    /// Creates a code.
    ///
    /// - Parameter rawValue: The name, in lower camel case.
    public init(rawValue: String) {
      self.rawValue = rawValue
    }

    /// The request or the argument has no URL that a cache can use, or the request has several fields `Host`.
    ///
    /// A proxy answers such a request with 400.
    public static let invalidURL = Code(rawValue: "invalidURL")
    /// A setting is outside its range.
    public static let invalidConfiguration = Code(rawValue: "invalidConfiguration")
    /// The closure that forwards requests returned an interim response (1xx) in place of the final one.
    public static let interimResponse = Code(rawValue: "interimResponse")
    /// The origin sent fewer bytes than its head announced.
    public static let incompleteBody = Code(rawValue: "incompleteBody")
    /// A part of a stored body can no longer be read.
    public static let unreadableBody = Code(rawValue: "unreadableBody")
    /// The reader of a body that is not stored has made other readers wait for too long.
    public static let readerTooSlow = Code(rawValue: "readerTooSlow")
    /// Another task is reading the body.
    public static let bodyInUse = Code(rawValue: "bodyInUse")
    /// The body has more bytes than you accept.
    public static let bodyTooLarge = Code(rawValue: "bodyTooLarge")
  }

  /// The kind of failure.
  public let code: Code

  /// A text for people that says what is wrong and what to do about it.
  public let message: String

  init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  static var incompleteBody: HTTPCacheError {
    HTTPCacheError(.incompleteBody, "the origin sent fewer bytes than it announced; repeat the request")
  }

  static var interimResponse: HTTPCacheError {
    HTTPCacheError(
      .interimResponse,
      "the origin's response has a status code below 200, which no final response has; pass on the final response, and "
        + "remove Upgrade from the request if the origin switches protocols")
  }

  static var unreadableBody: HTTPCacheError {
    HTTPCacheError(.unreadableBody, "a part of the stored body is missing or cannot be read now; repeat the request")
  }

  static var readerTooSlow: HTTPCacheError {
    HTTPCacheError(
      .readerTooSlow,
      "other readers of the same response have waited for this one for longer than stallLimit; repeat the request")
  }

  /// The code and the message.
  public var description: String { "HTTPCacheError.\(code.rawValue): \(message)" }
}

extension HTTPCacheError {
  init(_ problem: RequestURL.Problem) {
    let message =
      switch problem {
      case .incomplete: "the request must have a scheme, an authority and a path"
      case .userInformation:
        "the URL must not contain a user name or a password; put credentials into the field Authorization"
      case .invalid:
        "the URL contains a character that URLs don't have, such as a space or a letter beyond ASCII, which must be encoded, "
          + "or an invalid port, or a fragment in a request"
      }
    self.init(.invalidURL, message)
  }
}
#endif
