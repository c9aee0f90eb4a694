extension CommandFailure {
  /// The failure of what only a store does whose values expire.
  ///
  /// - Parameters:
  ///   - store: The store.
  ///   - advice: What to do instead, as a sentence.
  static func plainValues(in store: String, advice: String) -> CommandFailure {
    CommandFailure(.usage, "\(store) holds values that do not expire, since it was made without --ttl", advice: advice)
  }
}
