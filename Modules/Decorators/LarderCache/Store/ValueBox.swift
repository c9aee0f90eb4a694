/// A value of a ``CachedStore`` that knows its type.
final class ValueBox<Value: Sendable>: CachedValue {
  let value: Value

  init(_ value: Value) {
    self.value = value
  }
}
