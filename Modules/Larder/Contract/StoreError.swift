/// An error of a store, with its cause and whether anything was changed.
///
/// You can catch any `StoreError`, or only those with a certain code:
///
/// ```swift
/// do {
///   try await store.setValue(user, forKey: "user:1")
/// } catch StoreError.Code.full {
///   showStorageIsFull()
/// }
/// ```
///
/// A layer that passes on an error of its base completes it or gives it the layer's own name and keys, by assigning them:
///
/// ```swift
/// do {
///   try await base.removeValue(forKey: storedKey(for: key))
/// } catch var error as StoreError {
///   error.key = error.key.flatMap { myKey(for: $0) }
///   throw error
/// }
/// ```
///
/// ``description`` contains neither a key nor a value, because these may hold personal data. ``detailedDescription``
/// contains the key, and the text of the ``underlying`` error, in which a codec may have put a value.
public struct StoreError: Error {
  /// The effect of a failed write, as far as it is known.
  ///
  /// ```swift
  /// do {
  ///   try await orders.setValue(order, forKey: "order:17")
  /// } catch let error as StoreError where error.outcome == .unknown {
  ///   let stored = try await orders.value(forKey: "order:17")  // the write may have taken effect
  ///   print(stored == order)
  /// }
  /// ```
  public enum Outcome: Sendable, Hashable {
    /// Nothing was changed.
    case nothingChanged
    /// The change may or may not have taken effect, as a whole. Read the entries to find out.
    case unknown
  }

  /// The kind of failure.
  public let code: Code

  /// The operation that failed.
  public var operation: StoreOperation

  /// The name of the store, or an empty string if no store was involved.
  public var store: String

  /// The key concerned, if any.
  public var key: StoreKey?

  /// A text for people that says what is wrong and, where possible, what to do about it.
  ///
  /// The text never contains a key or a value.
  public let message: String

  /// The error that caused this one, if any.
  public var underlying: (any Error)?

  /// A Boolean value that indicates whether a later retry can succeed.
  public var isRetryable: Bool

  /// The outcome, which says whether the operation may have changed anything.
  public var outcome: Outcome

  /// A Boolean value that indicates whether a stored value cannot be read although the store itself works, so other
  /// entries may be readable.
  ///
  /// The code is then ``Code/corrupted``, ``Code/undecodable``, or one that a codec chose with ``StoreErrorConvertible``.
  public var isValueUnreadable: Bool {
    code == .corrupted || code == .undecodable || underlying is any StoreErrorConvertible
  }

  /// Creates an error.
  ///
  /// ```swift
  /// throw StoreError(
  ///   .unsupported, during: .backup, store: information.name,
  ///   message: "this store has no file; copy its entries to another store")
  /// ```
  ///
  /// - Parameters:
  ///   - code: The kind of failure.
  ///   - operation: The operation that failed.
  ///   - store: The name of the store. Defaults to an empty string, for no store.
  ///   - key: The key concerned. Defaults to `nil`.
  ///   - message: A text for people that says what is wrong, without any key or value.
  ///   - underlying: The error that caused this one. Defaults to `nil`.
  ///   - isRetryable: A Boolean value that indicates whether a later retry can succeed. Defaults to `false`.
  ///   - outcome: The outcome. It says whether the operation may have changed anything. Defaults to
  ///     `nothingChanged`.
  public init(
    _ code: Code,
    during operation: StoreOperation,
    store: String = "",
    key: StoreKey? = nil,
    message: String,
    underlying: (any Error)? = nil,
    isRetryable: Bool = false,
    outcome: Outcome = .nothingChanged
  ) {
    self.code = code
    self.operation = operation
    self.store = store
    self.key = key
    self.message = message
    self.underlying = underlying
    self.isRetryable = isRetryable
    self.outcome = outcome
  }
}

extension StoreError {
  /// A kind of failure.
  ///
  /// The set of codes is open, so code that handles some of them still compiles when others are added.
  ///
  /// ```swift
  /// extension StoreError.Code {
  ///   /// The account of the request has too many orders.
  ///   static let quotaExceeded = StoreError.Code(rawValue: "quotaExceeded")
  /// }
  /// ```
  public struct Code: RawRepresentable, Sendable, Hashable {
    /// The name.
    public let rawValue: String

    /// Creates a code.
    ///
    /// - Parameter rawValue: The name, in lower camel case.
    public init(rawValue: String) {
      self.rawValue = rawValue
    }

    /// A key is empty or too long, or is not made of components if components are required.
    public static let invalidKey = Code(rawValue: "invalidKey")
    /// An argument other than a key is invalid, such as a negative limit.
    public static let invalidArgument = Code(rawValue: "invalidArgument")
    /// A value has more bytes than the store accepts.
    public static let valueTooLarge = Code(rawValue: "valueTooLarge")
    /// A value cannot be encoded.
    public static let encodingFailed = Code(rawValue: "encodingFailed")
    /// The stored bytes are damaged.
    public static let corrupted = Code(rawValue: "corrupted")
    /// The stored bytes are sound, but belong to another type than that of the store, or need something that the codec does
    /// not have.
    public static let undecodable = Code(rawValue: "undecodable")
    /// The key that encrypts a value is not available now.
    ///
    /// The value is intact, and can be read again with the key.
    public static let keyUnavailable = Code(rawValue: "keyUnavailable")
    /// The files of an open store, or the data that the operation depends on, were changed by something else.
    public static let conflict = Code(rawValue: "conflict")
    /// The store is closed.
    public static let closed = Code(rawValue: "closed")
    /// Another process, or another object in this process, has the store open.
    public static let locked = Code(rawValue: "locked")
    /// The disk, the quota or the store is full.
    public static let full = Code(rawValue: "full")
    /// Reading or writing failed.
    public static let ioFailed = Code(rawValue: "ioFailed")
    /// The operating system denies access, or a write was attempted on a store that was opened for reading only.
    public static let notPermitted = Code(rawValue: "notPermitted")
    /// The store does not exist, and you did not ask to create it.
    public static let notFound = Code(rawValue: "notFound")
    /// The operation is not supported by this store, or for this file.
    public static let unsupported = Code(rawValue: "unsupported")
    /// A file does not have the format of this kind of store, and is left as it is.
    public static let unrecognizedFormat = Code(rawValue: "unrecognizedFormat")
    /// The store was written with a newer version of the format, or with another codec.
    public static let versionMismatch = Code(rawValue: "versionMismatch")
    /// The operation exceeded its timeout.
    public static let timedOut = Code(rawValue: "timedOut")

    /// Returns whether an error is a ``StoreError`` with a code, for `catch StoreError.Code.full`.
    public static func ~= (code: Code, error: any Error) -> Bool {
      (error as? StoreError)?.code == code
    }
  }
}

extension StoreError.Code: CustomStringConvertible {
  /// The name.
  public var description: String { rawValue }
}

extension StoreError: CustomStringConvertible {
  /// The error as one line of text for people, without any key or value.
  public var description: String {
    text(
      key: key.map { _ in "<redacted>" },
      underlying: underlying.map { $0 is any RedactedError ? "\($0)" : "\(type(of: $0))" })
  }

  /// The error as one line of text for people, with the key and the full underlying error.
  public var detailedDescription: String {
    text(key: key?.description, underlying: underlying.map { ($0 as? StoreError)?.detailedDescription ?? "\($0)" })
  }

  private func text(key: String?, underlying: String?) -> String {
    var text = "\(code): "
    if !store.isEmpty { text += "\(store): " }
    text += "\(operation): \(message)"
    if let key { text += " (key \(key))" }
    if let underlying, !message.contains(underlying) { text += " (\(underlying))" }
    if outcome == .unknown { text += " (whether the change took effect is unknown)" }
    return text
  }
}

/// An error whose text never contains a key or a value, so ``StoreError/description`` may include it.
///
/// For any other underlying error, the description includes only its type.
public protocol RedactedError: Error {}

extension StoreError: RedactedError {}
extension JSONSyntaxError: RedactedError {}
extension CancellationError: RedactedError {}

/// An error that names the keys of a store that cannot be read because of damage.
///
/// A scan throws it as the ``StoreError/underlying`` error of `corrupted`, so you can continue to read behind the
/// damage:
///
/// ```swift
/// do {
///   for try await entry in store.entries(in: remaining) { show(entry) }
/// } catch let error as StoreError {
///   let lost = (error.underlying as? any UnreadableKeysError)?.keys
///   guard let next = lost?.upperBound else { throw error }
///   remaining = next...
/// }
/// ```
public protocol UnreadableKeysError: RedactedError {
  /// A single key, or a range where it is unknown which keys exist.
  ///
  /// Unless there is other damage, you can read the entries before ``KeyRange/lowerBound`` and from
  /// ``KeyRange/upperBound`` on.
  var keys: KeyRange { get }
}
