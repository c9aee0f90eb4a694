#if HTTPClient
/// An error in the encoding of a body that a ``CachedHTTPClient`` decodes.
///
/// The text never contains a byte of the body.
public struct HTTPBodyDecodingError: Error, Sendable, Hashable, CustomStringConvertible {
  private let message: String

  /// The body does not have the coding that `Content-Encoding` names.
  public static let damaged = HTTPBodyDecodingError(
    message: "the body is not in the coding that Content-Encoding names; repeat the request without Accept-Encoding")

  /// The body ended before its encoded form did.
  public static let incomplete = HTTPBodyDecodingError(
    message: "the encoded body ended too early; repeat the request")

  /// There is not enough memory to decode the body.
  public static let outOfMemory = HTTPBodyDecodingError(
    message: "there is not enough memory to decode the body; repeat the request later")

  /// A text for people that says what is wrong.
  public var description: String { "HTTPBodyDecodingError: \(message)" }
}
#endif
