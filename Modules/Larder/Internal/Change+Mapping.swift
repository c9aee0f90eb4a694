extension Change {
  /// The same change with another value.
  ///
  /// - Parameter transform: Makes the other value; gets the key too.
  /// - Throws: What `transform` throws.
  package func mapValue<NewValue, Failure: Error>(
    _ transform: (_ key: StoreKey, _ value: Value) throws(Failure) -> NewValue
  ) throws(Failure) -> Change<NewValue> {
    switch self {
    case .set(let key, let value): .set(key, try transform(key, value))
    case .remove(let key): .remove(key)
    case .removeAll(let range): .removeAll(range)
    }
  }
}
