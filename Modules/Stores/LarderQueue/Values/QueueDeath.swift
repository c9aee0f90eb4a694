public import Larder

/// Says that an item became a dead letter; its ``description`` is a line for a log.
///
/// ```swift
/// let queue = try await QueueStore<Event>(path: "outbox", onDeath: { logger.warning("\($0)") })
/// ```
public struct QueueDeath: Sendable, Hashable {
  /// The key of the item.
  public let key: StoreKey

  /// The item's place in the order of arrival.
  public let sequence: UInt64

  /// How often it was delivered.
  public let attempts: Int

  /// Why it became a dead letter.
  public let reason: DeathReason
}

extension QueueDeath: CustomStringConvertible {
  /// A line for a log: the item's sequence number, the deliveries and the reason.
  ///
  /// The key is left out, since it is the caller's.
  public var description: String {
    "item \(sequence) became a dead letter after \(attempts) deliver\(attempts == 1 ? "y" : "ies") (\(reason))"
  }
}
