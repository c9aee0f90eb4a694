/// A value and its deadline, as the store below an ``ExpiringStore`` keeps them: together, so that one never changes
/// without the other.
///
/// Any codec stores it: ``ExpiringCodec`` puts the deadline before the bytes of the value. It is also `Codable` where the
/// value is.
public struct Expiring<Value> {
  /// The value.
  public var value: Value

  /// When it expires; `nil` where it does not.
  public var deadline: Deadline?

  /// Gives a value a deadline.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - deadline: When it expires; `nil`, the default, where it does not.
  public init(_ value: Value, deadline: Deadline? = nil) {
    self.value = value
    self.deadline = deadline
  }

  /// Whether the entry is there.
  func isLive(at now: WallTime) -> Bool {
    guard let deadline else { return true }
    return !deadline.isPast(at: now)
  }
}

extension Expiring: Sendable where Value: Sendable {}
extension Expiring: Equatable where Value: Equatable {}
extension Expiring: Hashable where Value: Hashable {}
