#if Inspector
import Crypto
import Larder

/// The state of the one session of an inspector: a token that opens it once, and then the secret of its cookie.
///
/// Only digests are kept. Comparing digests takes the same time wherever they differ.
struct SessionState: Sendable {
  /// The number of random bytes of a token and of a cookie.
  private static let secretLength = 32

  private var token: SHA256.Digest?
  private var cookie: SHA256.Digest?

  /// Creates a state in which a token is valid.
  init(token: String) {
    self.token = Self.digest(of: token)
  }

  /// Exchanges the token for the secret of a cookie, once.
  ///
  /// - Parameters:
  ///   - presented: The token of a request.
  ///   - secret: The secret of the cookie.
  /// - Returns: A Boolean value that indicates whether the token is valid. It is not valid again.
  mutating func redeem(_ presented: String, for secret: String) -> Bool {
    guard let token, token == Self.digest(of: presented) else { return false }
    self.token = nil
    cookie = Self.digest(of: secret)
    return true
  }

  /// Returns whether a cookie is that of the session.
  func admits(_ presented: String) -> Bool {
    cookie.map { $0 == Self.digest(of: presented) } ?? false
  }

  /// Returns random text that cannot be guessed.
  static func secret(using generator: inout some RandomNumberGenerator) -> String {
    Hexadecimal.text(of: (0..<secretLength).map { _ in UInt8.random(in: 0...UInt8.max, using: &generator) })
  }

  private static func digest(of text: String) -> SHA256.Digest {
    SHA256.hash(data: Array(text.utf8))
  }
}
#endif
