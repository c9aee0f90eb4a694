/// A half-open range of keys, from a lower bound up to, but not including, an upper bound.
///
/// ```swift
/// try await store.keys(in: "a"..<"b", limit: 10)      // half-open
/// try await store.count(in: "2026-01-01"..."2026-01-31")  // closed
/// store.entries(in: .prefix("user:"))
/// ```
///
/// The direct successor of a key is the key followed by a NUL byte. Therefore every range with other bounds has a
/// half-open equivalent, and a store needs to handle only that form.
///
/// A range whose lower bound is not less than its upper bound is empty. This is not an error. A bound need not be a
/// valid key. It may be empty or longer than ``StoreKey/maximumLength``.
public struct KeyRange: Sendable, Hashable {
  /// The first key that may belong to the range, or the empty key if the range has no lower bound.
  public let lowerBound: StoreKey

  /// The first key after the range, or `nil` if the range has no upper bound.
  public let upperBound: StoreKey?

  /// Creates a half-open range.
  ///
  /// - Parameters:
  ///   - lowerBound: The first key that may belong to the range, or the empty key for no lower bound.
  ///   - upperBound: The first key after the range, or `nil` for no upper bound.
  public init(from lowerBound: StoreKey, upTo upperBound: StoreKey?) {
    self.lowerBound = lowerBound
    self.upperBound = upperBound
  }

  /// The range of all keys.
  public static let all = KeyRange(from: "", upTo: nil)

  /// Returns the range of keys that begin with a prefix.
  ///
  /// ```swift
  /// for try await entry in store.entries(in: .prefix("user:")) {
  ///   print(entry.key, entry.value.visits)
  /// }
  /// ```
  ///
  /// - Parameter prefix: The prefix. An empty prefix gives ``all``.
  public static func prefix(_ prefix: StoreKey) -> KeyRange {
    // The upper bound is the prefix up to its last byte that is less than 0xFF, with that byte incremented.
    var bytes = prefix.bytes
    while let last = bytes.popLast() {
      if last < UInt8.max {
        return KeyRange(from: prefix, upTo: StoreKey(bytes: bytes + [last + 1]))
      }
    }
    return KeyRange(from: prefix, upTo: nil)
  }

  /// Returns the range of a single key.
  ///
  /// ```swift
  /// for await _ in notes.changes(in: .only("7")) { show("note 7 has changed") }
  /// ```
  ///
  /// - Parameter key: The key.
  public static func only(_ key: StoreKey) -> KeyRange {
    KeyRange(from: key, upTo: key.successor)
  }

  /// The only key that can belong to the range, or `nil` if there are others; see ``only(_:)``.
  ///
  /// A cache can handle a change of such a range without a look at each of its entries.
  public var onlyKey: StoreKey? { upperBound == lowerBound.successor ? lowerBound : nil }

  /// A Boolean value that indicates whether no key can belong to the range.
  public var isEmpty: Bool {
    upperBound.map { $0 <= lowerBound } ?? false
  }

  /// Returns whether a key belongs to the range.
  ///
  /// ```swift
  /// let isUser = KeyRange.prefix("user:").contains(key)
  /// ```
  ///
  /// - Parameter key: The key.
  public func contains(_ key: StoreKey) -> Bool {
    key >= lowerBound && upperBound.map { key < $0 } ?? true
  }

  /// Returns the part of the range after a key, without the key itself.
  ///
  /// ```swift
  /// let rest = KeyRange.prefix("user:").after("user:ada")  // without "user:ada" itself
  /// ```
  ///
  /// - Parameter key: The key. It need not belong to the range.
  public func after(_ key: StoreKey) -> KeyRange {
    KeyRange(from: max(lowerBound, key.successor), upTo: upperBound)
  }

  /// Returns the part of the range before a key, without the key itself.
  ///
  /// ```swift
  /// let older = KeyRange.prefix("2026-").before("2026-03-01")
  /// ```
  ///
  /// - Parameter key: The key. It need not belong to the range.
  public func before(_ key: StoreKey) -> KeyRange {
    KeyRange(from: lowerBound, upTo: upperBound.map { min($0, key) } ?? key)
  }

  /// Returns whether a key can belong to both this range and another one.
  ///
  /// - Parameter other: The other range.
  public func overlaps(_ other: KeyRange) -> Bool {
    !intersection(other).isEmpty
  }

  /// Returns the range of the keys that belong to both this range and another one.
  ///
  /// ```swift
  /// let visible = KeyRange.prefix("user:").intersection("user:a"..<"user:n")
  /// ```
  ///
  /// - Parameter other: The other range.
  public func intersection(_ other: KeyRange) -> KeyRange {
    let end = [upperBound, other.upperBound].compactMap(\.self).min()
    return KeyRange(from: max(lowerBound, other.lowerBound), upTo: end)
  }

  /// Returns the smallest range that contains this range and another one.
  ///
  /// - Parameter other: The other range.
  public func covering(_ other: KeyRange) -> KeyRange {
    var end: StoreKey?
    if let upperBound, let otherBound = other.upperBound { end = max(upperBound, otherBound) }
    return KeyRange(from: min(lowerBound, other.lowerBound), upTo: end)
  }
}

extension StoreKey {
  /// Returns the range from a key up to, but not including, another key.
  ///
  /// If the bounds are in the wrong order, the range is empty. Swift's own ranges would stop the program instead.
  ///
  /// ```swift
  /// let january: KeyRange = "2026-01-01"..<"2026-02-01"
  /// ```
  public static func ..< (lowerBound: StoreKey, upperBound: StoreKey) -> KeyRange {
    KeyRange(from: lowerBound, upTo: upperBound)
  }

  /// Returns the range from a key up to and including another key.
  ///
  /// If the bounds are in the wrong order, the range is empty. Swift's own ranges would stop the program instead.
  public static func ... (lowerBound: StoreKey, upperBound: StoreKey) -> KeyRange {
    KeyRange(from: lowerBound, upTo: upperBound.successor)
  }

  /// Returns the range of keys from a key on.
  public static postfix func ... (lowerBound: StoreKey) -> KeyRange {
    KeyRange(from: lowerBound, upTo: nil)
  }

  /// Returns the range of keys up to, but not including, a key.
  public static prefix func ..< (upperBound: StoreKey) -> KeyRange {
    KeyRange(from: "", upTo: upperBound)
  }

  /// Returns the range of keys up to and including a key.
  public static prefix func ... (upperBound: StoreKey) -> KeyRange {
    KeyRange(from: "", upTo: upperBound.successor)
  }
}

extension KeyRange: CustomStringConvertible {
  /// The range as text for people, such as `"a"..<"b"`.
  public var description: String {
    switch (lowerBound.isEmpty, upperBound) {
    case (true, nil): "all keys"
    case (true, let upper?): "..<\(upper)"
    case (false, nil): "\(lowerBound)..."
    case (false, let upper?): "\(lowerBound)..<\(upper)"
    }
  }
}
