/// A value of a ``CachedStore``, of whatever type.
protocol CachedValue: AnyObject, Sendable {}
