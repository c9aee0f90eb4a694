#if HTTPCache
/// An error of a ``CachedURLSession`` itself.
///
/// The text never contains a URL, a field or a byte of a body. A request can also fail with the `URLError` of the session.
public struct CachedURLSessionError: Error, Sendable, Hashable, CustomStringConvertible {
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

    /// The session was invalidated.
    public static let invalidated = Code(rawValue: "invalidated")
    /// The response is not one of HTTP.
    public static let notHTTP = Code(rawValue: "notHTTP")
    /// A body arrived faster than it was read, on a system whose `URLSession` cannot pause.
    public static let unreadBodyTooLarge = Code(rawValue: "unreadBodyTooLarge")
  }

  /// The kind of failure.
  public let code: Code

  /// A text for people that says what is wrong and what to do about it.
  public let message: String

  static let invalidated = CachedURLSessionError(
    code: .invalidated, message: "the session was invalidated; create another one")

  static let notHTTP = CachedURLSessionError(
    code: .notHTTP, message: "the server's response is not one of HTTP; check the URL")

  static func unreadBodyTooLarge(_ limit: Int) -> CachedURLSessionError {
    CachedURLSessionError(
      code: .unreadBodyTooLarge,
      message: """
        more than \(limit) bytes of a body wait for their reader, and URLSession cannot pause on this system; read faster, or \
        raise unreadLimit
        """)
  }

  /// The code and the message.
  public var description: String { "CachedURLSessionError.\(code.rawValue): \(message)" }
}
#endif
