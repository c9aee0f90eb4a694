public import Larder

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An item that is not delivered any more.
public struct DeadLetter<Element: Sendable>: Sendable {
  /// The key that the item has, or had before another took it.
  public let key: StoreKey

  /// The item's place in the order of arrival.
  public let sequence: UInt64

  /// How often it was delivered.
  public let attempts: Int

  /// Why it became a dead letter.
  public let reason: DeathReason

  /// When it became one.
  public let date: Date

  /// The item, or the error with which it cannot be read or decoded.
  public let value: Result<Element, StoreError>
}
