/// What the cache of a ``CachedStore`` knows of a key.
struct CachedCopy<Value: Sendable>: Sendable {
  /// The value, or `nil` where the base does not have the key.
  let value: Value?

  /// What it costs.
  let cost: Int

  /// When it was made, by the clock of the store; zero where nobody asks.
  let time: Duration

  /// Tells it from every other copy of the key that is in the cache at another time, also from an equal one.
  var stamp: UInt64 = 0
}
