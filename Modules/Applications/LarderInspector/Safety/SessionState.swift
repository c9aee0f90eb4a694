#if Inspector
import Crypto
import Larder

/// The state of the sessions of an inspector: a token that opens one session once, perhaps a password that opens others, and
/// the secrets of their cookies.
///
/// Only digests are kept. Comparing digests takes the same time wherever they differ.
struct SessionState: Sendable {
  /// The number of random bytes of a token and of a cookie.
  private static let secretLength = 32

  /// The number of sessions, above which the oldest one ends.
  static let maximumSessionCount = 16

  /// The time after an attempt in which no password is compared.
  ///
  /// It makes guessing slow. An attacker who tries all the time also keeps others from logging in, but ends no session.
  static let pause = Duration.seconds(1)

  private var token: SHA256.Digest?
  private let password: SHA256.Digest?
  private var cookies: [SHA256.Digest] = []
  private var nextAttempt: Duration?

  /// Creates a state in which a token is valid, and a password if there is one.
  init(token: String, password: String? = nil) {
    self.token = Self.digest(of: token)
    self.password = password.map(Self.digest)
  }

  /// The result of an attempt to log in.
  enum Attempt: Sendable, Hashable {
    case admitted
    case refused
    /// The password was not compared, because the last attempt was too short a time ago.
    case tooSoon
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
    admit(secret)
    return true
  }

  /// Exchanges the password for the secret of a cookie.
  ///
  /// - Parameters:
  ///   - presented: The password of a request.
  ///   - now: The current time, from any start.
  ///   - secret: The secret of the cookie.
  mutating func logIn(_ presented: String, at now: Duration, for secret: String) -> Attempt {
    guard let password else { return .refused }
    if let nextAttempt, now < nextAttempt { return .tooSoon }
    nextAttempt = now + Self.pause
    guard password == Self.digest(of: presented) else { return .refused }
    admit(secret)
    return .admitted
  }

  /// Returns whether a cookie is that of a session.
  func admits(_ presented: String) -> Bool {
    let digest = Self.digest(of: presented)
    return cookies.contains { $0 == digest }
  }

  /// Returns random text that cannot be guessed.
  static func secret(using generator: inout some RandomNumberGenerator) -> String {
    Hexadecimal.text(of: (0..<secretLength).map { _ in UInt8.random(in: 0...UInt8.max, using: &generator) })
  }

  private mutating func admit(_ secret: String) {
    cookies.append(Self.digest(of: secret))
    if cookies.count > Self.maximumSessionCount { cookies.removeFirst() }
  }

  private static func digest(of text: String) -> SHA256.Digest {
    SHA256.hash(data: Array(text.utf8))
  }
}
#endif
