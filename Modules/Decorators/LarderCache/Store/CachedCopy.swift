/// What the cache of a ``CachedStore`` knows of a key.
///
/// It does not tell the type of the value, and neither does anything else beside the store itself: so all of it is
/// compiled once, for the types that it has, whatever the store is of.
struct CachedCopy: Sendable {
  /// The value, or `nil` where the base does not have the key.
  let value: (any CachedValue)?

  /// What it costs.
  let cost: Int

  /// When it was made, by the clock of the store; zero where nobody asks.
  let time: Duration

  /// Tells it from every other copy of the key that is in the cache at another time, also from an equal one.
  var stamp: UInt64 = 0
}

/// A value of a ``CachedStore``, of whatever type.
@usableFromInline
protocol CachedValue: AnyObject, Sendable {}

/// A value of a ``CachedStore`` that knows its type.
@usableFromInline
final class ValueBox<Value: Sendable>: CachedValue {
  @usableFromInline let value: Value

  init(_ value: Value) {
    self.value = value
  }
}
