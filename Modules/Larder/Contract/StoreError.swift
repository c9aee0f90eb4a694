/// What a store throws: what went wrong, where, and whether anything was changed.
///
/// Catch broadly, or by code:
///
/// ```swift
/// do {
///   try await store.setValue(user, forKey: "user:1")
/// } catch StoreError.Code.full {
///   …
/// }
/// ```
///
/// ``description`` shows neither a key nor a value, since both hold names and addresses. ``detailedDescription`` shows
/// the key, and the text of the ``underlying`` error, in which a codec may have put a value.
public struct StoreError: Error {
  /// Whether a failed write may have taken effect.
  public enum Outcome: Sendable, Hashable {
    /// Nothing was changed.
    case nothingChanged
    /// The change may or may not have taken effect, as a whole: read to find out.
    case unknown
  }

  /// What went wrong.
  public let code: Code

  /// What was asked for.
  public let operation: StoreOperation

  /// The name of the store, or an empty string where no store was involved.
  public let store: String

  /// The key concerned, where there is one.
  public let key: StoreKey?

  /// What went wrong and, where it helps, what to do about it, for people to read.
  ///
  /// It never holds a key or a value.
  public let message: String

  /// The error that led to this one, where there is one.
  public let underlying: (any Error)?

  /// Whether doing the same again later can help.
  public let isRetryable: Bool

  /// Whether anything may have been changed.
  public let outcome: Outcome

  /// Makes an error.
  ///
  /// - Parameters:
  ///   - code: What went wrong.
  ///   - operation: What was asked for.
  ///   - store: The name of the store; empty where no store is involved.
  ///   - key: The key concerned; `nil` where there is none.
  ///   - message: What went wrong, for people to read, without any key or value.
  ///   - underlying: The error that led to this one; `nil` where there is none.
  ///   - isRetryable: Whether doing the same again later can help; `false` unless said.
  ///   - outcome: Whether anything may have been changed; `nothingChanged` unless said.
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

extension StoreError: CustomStringConvertible {
  /// The error for people to read, in one line, without any key or value.
  public var description: String {
    text(
      key: key.map { _ in "<redacted>" },
      underlying: underlying.map { $0 is any ValueFreeError ? "\($0)" : "\(type(of: $0))" })
  }

  /// The error for people to read, in one line, with the key and the underlying error in full.
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
