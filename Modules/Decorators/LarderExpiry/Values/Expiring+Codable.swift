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
