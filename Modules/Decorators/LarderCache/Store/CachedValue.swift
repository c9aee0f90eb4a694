/// A value of a ``CachedStore``, of whatever type.
@usableFromInline
protocol CachedValue: AnyObject, Sendable {}
