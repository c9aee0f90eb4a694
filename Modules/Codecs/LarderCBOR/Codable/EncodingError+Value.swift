extension EncodingError {
  /// The same error with the value that could not be encoded, if it names none.
  func naming(_ value: Any) -> EncodingError {
    guard case .invalidValue(is Void, let context) = self else { return self }
    return .invalidValue(value, context)
  }
}
