/// The type of the values with which this process has a store open, to detect that another type is opened beside it.
///
/// Two types over the same entries would read each other's values as damage.
package struct TypeClaim: Sendable {
  private var type: Any.Type?
  private var count = 0

  /// Creates a claim without an owner.
  package init() {}

  /// Whether the store is open without a type, or not at all.
  package var isFree: Bool { count == 0 }

  /// Notes that the store is open with values of a type.
  ///
  /// - Returns: Another type with which it is open; nothing is noted then. Otherwise `nil`.
  package mutating func claim(for type: Any.Type) -> Any.Type? {
    if let other = self.type, other != type { return other }
    self.type = type
    count += 1
    return nil
  }

  /// Notes that one of those who claimed the store has closed it.
  package mutating func release() {
    count -= 1
    if count == 0 { type = nil }
  }

  /// Returns whether a type stands for values of any type in encoded form, so that it may be beside any other type.
  package static func isUntyped(_ type: Any.Type) -> Bool {
    type == JSONText.self || type == [UInt8].self
  }
}
