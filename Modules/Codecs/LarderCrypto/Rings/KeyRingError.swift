#if Crypto
public import Larder

/// An error of a ``KeyRing`` or its ``KeySource``.
///
/// ```swift
/// do {
///   ring = try await KeyRing.open(in: .passwordFile("recovery.jwe", password: password))
/// } catch KeyRingError.Code.wrongPassword {
///   askForPassword()
/// }
/// ```
public struct KeyRingError: RedactedError, Sendable, StoreErrorConvertible {
  /// A kind of failure.
  public struct Code: RawRepresentable, Sendable, Hashable {
    /// The name.
    public let rawValue: String

    /// Creates a code.
    ///
    /// - Parameter rawValue: The name, in lower camel case.
    public init(rawValue: String) {
      self.rawValue = rawValue
    }

    /// A key or a source cannot be had now: the ring does not have the key, or the source is locked or out of reach.
    public static let unavailable = Code(rawValue: "unavailable")
    /// The source has no ring, and you did not ask to create one.
    public static let notFound = Code(rawValue: "notFound")
    /// The operating system denies access, or the file of a ring is open to other users.
    public static let notPermitted = Code(rawValue: "notPermitted")
    /// The password is wrong.
    public static let wrongPassword = Code(rawValue: "wrongPassword")
    /// The content of the source is damaged or is not a ring.
    public static let corrupted = Code(rawValue: "corrupted")
    /// The content of the source was changed by something else.
    public static let changed = Code(rawValue: "changed")
    /// The source cannot be written.
    public static let readOnly = Code(rawValue: "readOnly")
    /// The key has sealed as many values as its algorithm allows.
    public static let full = Code(rawValue: "full")
    /// An argument is invalid, such as a key identifier that the ring does not have.
    public static let invalidArgument = Code(rawValue: "invalidArgument")
    /// The source is not supported on this system.
    public static let unsupported = Code(rawValue: "unsupported")
    /// Reading or writing failed.
    public static let ioFailed = Code(rawValue: "ioFailed")

    /// Returns whether an error is a ``KeyRingError`` with a code, for `catch KeyRingError.Code.notFound`.
    public static func ~= (code: Code, error: any Error) -> Bool {
      (error as? KeyRingError)?.code == code
    }
  }

  /// The kind of failure.
  public let code: Code

  /// A text for people that says what is wrong, without any key or password.
  public let message: String

  /// The error that caused this one.
  public let underlying: (any Error)?

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - code: The kind of failure.
  ///   - message: A text for people that says what is wrong, without any key or password.
  ///   - underlying: The error that caused this one. Defaults to `nil`.
  public init(_ code: Code, message: String, underlying: (any Error)? = nil) {
    self.code = code
    self.message = message
    self.underlying = underlying
  }

  /// `keyUnavailable` for ``Code/unavailable``, ``Code/notFound`` and ``Code/wrongPassword``; `conflict` for
  /// ``Code/changed``; `notPermitted` for ``Code/readOnly``; and otherwise the code of the same name.
  public var storeErrorCode: StoreError.Code {
    switch code {
    case .unavailable, .wrongPassword, .notFound: .keyUnavailable
    case .changed: .conflict
    case .readOnly: .notPermitted
    default: StoreError.Code(rawValue: code.rawValue)
    }
  }
}

extension KeyRingError: CustomStringConvertible {
  /// The error as one line of text for people, without any key, password or value.
  ///
  /// An underlying error that could contain one is shown as its type.
  public var description: String {
    let cause = underlying.map { $0 is any RedactedError ? "\($0)" : "\(type(of: $0))" }
    return "\(code.rawValue): \(message)" + (cause.map { " (\($0))" } ?? "")
  }
}
#endif
