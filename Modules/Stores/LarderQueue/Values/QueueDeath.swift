public import Larder

/// Says that an item became a dead letter.
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
