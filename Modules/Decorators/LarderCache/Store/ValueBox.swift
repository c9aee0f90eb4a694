/// A value of a ``CachedStore`` that knows its type.
@usableFromInline
final class ValueBox<Value: Sendable>: CachedValue {
  @usableFromInline let value: Value

  init(_ value: Value) {
    self.value = value
  }
}
