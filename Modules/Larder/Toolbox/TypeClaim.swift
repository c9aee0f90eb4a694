/// The type of the values with which this process has a store open, to detect that another type is opened beside it.
///
/// Two types over the same entries would read each other's values as damage.
///
/// ```swift
/// let claim = Locked(TypeClaim())
/// try claim.withLock { try $0.claim(for: User.self, store: "users") }
/// ```
public struct TypeClaim: Sendable {
  private var type: Any.Type?
  private var count = 0

  /// Creates a claim without an owner.
  public init() {}

  /// A Boolean value that indicates whether the store is open without a type, or not at all.
  public var isFree: Bool { count == 0 }

  /// Notes that the store is open with values of a type.
  ///
  /// - Parameters:
  ///   - type: The type.
  ///   - store: The name of the store in errors.
  /// - Throws: ``StoreError`` with `invalidArgument` if it is open with another type.
  public mutating func claim(for type: Any.Type, store: String) throws(StoreError) {
    if let other = self.type, other != type {
      throw StoreError(
        .invalidArgument, during: .open, store: store,
        message: "this process has the store open with values of the type \(other), so they cannot be of the type "
          + "\(type); give each type a store with a name of its own")
    }
    self.type = type
    count += 1
  }

  /// Notes that one of the claimants has closed the store.
  public mutating func release() {
    count -= 1
    if count == 0 { type = nil }
  }

  /// Returns whether a type holds encoded values of any type.
  ///
  /// A store may be open with such a type and another one at the same time.
  public static func isUntyped(_ type: Any.Type) -> Bool {
    type == JSONText.self || type == [UInt8].self
  }
}
