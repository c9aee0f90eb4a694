public import Foundation

/// An item that is no longer delivered.
///
/// ```swift
/// for letter in try await queue.deadLetters(limit: 20, after: 0) {
///   switch letter.value {
///   case .success(let event): print(letter.key, event.name)
///   case .failure(let error): print(letter.key, error)
///   }
/// }
/// ```
public struct DeadLetter<Element: Sendable>: Sendable {
  /// The key of the item.
  ///
  /// A live item may have the same key by now.
  public let key: StoreKey

  /// The item's position in the order of arrival.
  public let sequence: UInt128

  /// The number of times the item was delivered.
  public let attempts: Int

  /// The reason why the item became a dead letter.
  public let reason: DeadLetterReason

  /// The date when the item became a dead letter.
  public let date: Date

  /// The item, or an error if it cannot be read or decoded.
  public let value: Result<Element, StoreError>

  /// Creates a dead letter.
  ///
  /// - Parameters:
  ///   - key: The key of the item.
  ///   - sequence: The item's position in the order of arrival.
  ///   - attempts: The number of times the item was delivered.
  ///   - reason: The reason why the item became a dead letter.
  ///   - date: The date when the item became a dead letter.
  ///   - value: The item, or an error if it cannot be read or decoded.
  public init(
    key: StoreKey, sequence: UInt128, attempts: Int, reason: DeadLetterReason, date: Date,
    value: Result<Element, StoreError>
  ) {
    self.key = key
    self.sequence = sequence
    self.attempts = attempts
    self.reason = reason
    self.date = date
    self.value = value
  }
}

/// The reason why an item became a dead letter.
///
/// Later versions may add reasons.
public struct DeadLetterReason: RawRepresentable, Sendable, Hashable {
  /// The number that the files store.
  public let rawValue: UInt8

  /// Creates a reason from its number.
  ///
  /// - Parameter rawValue: The number that the files store.
  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// The item was delivered as often as the queue allows, and never acknowledged.
  public static let tooManyDeliveries = DeadLetterReason(rawValue: 1)
  /// The payload is damaged, or does not decode as a value of the queue's type.
  public static let undecodable = DeadLetterReason(rawValue: 2)
}

extension DeadLetterReason: CustomStringConvertible {
  /// The name of the reason in lower camel case, as in the output of tools.
  public var description: String {
    switch self {
    case .tooManyDeliveries: "tooManyDeliveries"
    case .undecodable: "undecodable"
    default: "reason\(rawValue)"
    }
  }
}

/// A report that an item became a dead letter; its ``description`` is suitable for a log.
///
/// ```swift
/// let observation = queue.observeDeadLetters { logger.warning("\($0)") }
/// ```
public struct DeadLetterEvent: Sendable, Hashable {
  /// The key of the item.
  public let key: StoreKey

  /// The item's position in the order of arrival.
  public let sequence: UInt128

  /// The number of times the item was delivered.
  public let attempts: Int

  /// The reason why the item became a dead letter.
  public let reason: DeadLetterReason

  /// Creates a report.
  ///
  /// - Parameters:
  ///   - key: The key of the item.
  ///   - sequence: The item's position in the order of arrival.
  ///   - attempts: The number of times the item was delivered.
  ///   - reason: The reason why the item became a dead letter.
  public init(key: StoreKey, sequence: UInt128, attempts: Int, reason: DeadLetterReason) {
    self.key = key
    self.sequence = sequence
    self.attempts = attempts
    self.reason = reason
  }
}

extension DeadLetterEvent: CustomStringConvertible {
  /// A line for a log, with the item's sequence number, the number of deliveries and the reason.
  ///
  /// The key is left out, because it may be private.
  public var description: String {
    "item \(sequence) became a dead letter after \(attempts) deliver\(attempts == 1 ? "y" : "ies") (\(reason))"
  }
}
