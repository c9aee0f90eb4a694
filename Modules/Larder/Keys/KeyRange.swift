/// A set of neighbouring keys, from a first one on and up to another that no longer belongs to it.
///
/// ```swift
/// try await store.keys(in: "a"..<"b", limit: 10)      // half-open
/// try await store.count(in: "2026-01-01"..."2026-01-31")  // closed
/// store.entries(in: .prefix("user:"))
/// ```
///
/// Since a key is directly followed by itself and a NUL byte, every closed or open bound has a half-open equal. So a
/// range has one form, and a store handles only that.
///
/// A range whose lower bound is not below its upper bound is empty; that is no error. A bound is a place between keys,
/// not a key: it may be empty or longer than ``StoreKey/maximumLength``.
public struct KeyRange: Sendable, Hashable {
  /// The first key that may belong to the range; the empty key where the range has no lower bound.
  public let lowerBound: StoreKey

  /// The first key after the range, or `nil` where the range has no upper bound.
  public let upperBound: StoreKey?

  /// Makes a half-open range.
  ///
  /// - Parameters:
  ///   - lowerBound: The first key that may belong to the range; the empty key for none.
  ///   - upperBound: The first key after the range; `nil` for none.
  public init(from lowerBound: StoreKey, upTo upperBound: StoreKey?) {
    self.lowerBound = lowerBound
    self.upperBound = upperBound
  }

  /// Every key.
  public static let all = KeyRange(from: "", upTo: nil)

  /// The keys that begin with the bytes of another.
  ///
  /// - Parameter prefix: The bytes; an empty prefix gives ``all``.
  public static func prefix(_ prefix: StoreKey) -> KeyRange {
    // The first key after all that begin with the prefix: its last byte that can grow, grown, and nothing behind it.
    var bytes = prefix.bytes
    while let last = bytes.popLast() {
      if last < UInt8.max {
        return KeyRange(from: prefix, upTo: StoreKey(bytes: bytes + [last + 1]))
      }
    }
    return KeyRange(from: prefix, upTo: nil)
  }

  /// One key alone.
  ///
  /// - Parameter key: The key.
  public static func only(_ key: StoreKey) -> KeyRange {
    KeyRange(from: key, upTo: key.successor)
  }

  /// Whether no key at all can belong to the range.
  public var isEmpty: Bool {
    upperBound.map { $0 <= lowerBound } ?? false
  }

  /// Whether a key belongs to the range.
  ///
  /// - Parameter key: The key.
  public func contains(_ key: StoreKey) -> Bool {
    key >= lowerBound && upperBound.map { key < $0 } ?? true
  }

  /// The part of the range behind a key, the key itself left out.
  ///
  /// - Parameter key: The key; it need not belong to the range.
  public func after(_ key: StoreKey) -> KeyRange {
    KeyRange(from: max(lowerBound, key.successor), upTo: upperBound)
  }

  /// The part of the range before a key, the key itself left out.
  ///
  /// - Parameter key: The key; it need not belong to the range.
  public func before(_ key: StoreKey) -> KeyRange {
    KeyRange(from: lowerBound, upTo: upperBound.map { min($0, key) } ?? key)
  }
}

extension StoreKey {
  /// The keys from one on and up to, but without, another.
  ///
  /// Unlike Swift's own ranges it does not stop the program where the bounds are in the wrong order: it is empty.
  public static func ..< (lowerBound: StoreKey, upperBound: StoreKey) -> KeyRange {
    KeyRange(from: lowerBound, upTo: upperBound)
  }

  /// The keys from one on and up to another, both included.
  ///
  /// Unlike Swift's own ranges it does not stop the program where the bounds are in the wrong order: it is empty.
  public static func ... (lowerBound: StoreKey, upperBound: StoreKey) -> KeyRange {
    KeyRange(from: lowerBound, upTo: upperBound.successor)
  }

  /// The keys from one on.
  public static postfix func ... (lowerBound: StoreKey) -> KeyRange {
    KeyRange(from: lowerBound, upTo: nil)
  }

  /// The keys up to, but without, one.
  public static prefix func ..< (upperBound: StoreKey) -> KeyRange {
    KeyRange(from: "", upTo: upperBound)
  }

  /// The keys up to one, itself included.
  public static prefix func ... (upperBound: StoreKey) -> KeyRange {
    KeyRange(from: "", upTo: upperBound.successor)
  }
}

extension KeyRange: CustomStringConvertible {
  /// The range for people to read, like `"a"..<"b"`.
  public var description: String {
    switch (lowerBound.isEmpty, upperBound) {
    case (true, nil): "all keys"
    case (true, let upper?): "..<\(upper)"
    case (false, nil): "\(lowerBound)..."
    case (false, let upper?): "\(lowerBound)..<\(upper)"
    }
  }
}
