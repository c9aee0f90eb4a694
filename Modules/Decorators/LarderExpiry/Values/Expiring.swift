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

  /// The deadline that counts: the stored one, or the one that a pending renewal of the key puts in its place.
  func deadline(with renewal: Renewal?) -> Deadline? {
    deadline.map { renewal?.deadline(inPlaceOf: $0) ?? $0 }
  }

  /// Whether the entry is there.
  func isLive(at now: WallTime, with renewal: Renewal? = nil) -> Bool {
    deadline(with: renewal).map { !$0.isPast(at: now) } ?? true
  }
}

extension Expiring: Sendable where Value: Sendable {}
extension Expiring: Equatable where Value: Equatable {}
extension Expiring: Hashable where Value: Hashable {}

private enum ExpiringCodingKeys: String, CodingKey {
  case expires, window, value
}

extension Expiring: Encodable where Value: Encodable {
  /// Writes the deadline as `expires`, in microseconds since 1970, the window of one that slides as `window`, in
  /// microseconds, and the value as `value`.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: ExpiringCodingKeys.self)
    try container.encodeIfPresent(deadline?.time.microseconds, forKey: .expires)
    try container.encodeIfPresent(deadline?.windowMicroseconds, forKey: .window)
    try container.encode(value, forKey: .value)
  }
}

extension Expiring: Decodable where Value: Decodable {
  /// Reads what ``encode(to:)`` writes.
  ///
  /// - Throws: ``ExpiringFormatError`` where there is a window without a deadline, or one that is not more than zero; what
  ///   the decoder throws.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: ExpiringCodingKeys.self)
    let deadline = try Deadline(
      expires: container.decodeIfPresent(Int64.self, forKey: .expires),
      window: container.decodeIfPresent(Int64.self, forKey: .window))
    self.init(try container.decode(Value.self, forKey: .value), deadline: deadline)
  }
}
