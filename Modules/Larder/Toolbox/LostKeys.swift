extension StoreError {
  /// The keys that cannot be read because of damage, or `nil` if this is another error or does not name them.
  public var lostKeys: KeyRange? {
    guard isValueUnreadable else { return nil }
    return (underlying as? any UnreadableKeysError)?.keys ?? key.map { .only($0) }
  }
}

extension KeyRange {
  /// Returns the part of the range before some keys, or `nil` if that would exclude nothing.
  ///
  /// - Parameter lost: The keys, such as ``StoreError/lostKeys``.
  public func part(before lost: KeyRange) -> KeyRange? {
    let part = before(lost.lowerBound)
    return part == self ? nil : part
  }

  /// Returns the part of the range after some keys, or `nil` if that would exclude nothing.
  ///
  /// ```swift
  /// guard let rest = remaining.part(after: lost) else { return }
  /// remaining = rest
  /// ```
  ///
  /// - Parameter lost: The keys, such as ``StoreError/lostKeys``.
  public func part(after lost: KeyRange) -> KeyRange? {
    guard let start = lost.upperBound else { return KeyRange(from: lowerBound, upTo: lowerBound) }
    return start > lowerBound ? KeyRange(from: start, upTo: upperBound) : nil
  }
}
