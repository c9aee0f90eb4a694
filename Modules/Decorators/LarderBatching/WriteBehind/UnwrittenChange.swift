/// A change that a ``WriteBehindStore`` has accepted and not written, as the value of its key in another store.
///
/// With a codec of JSON it is `{"set": value}` or `{"removed": true}`.
///
/// ```swift
/// let rescue = try await JSONFileStore<UnwrittenChange<Position>>(path: folder + "/unwritten.json")
/// try await positions.restoreChanges(from: rescue)
/// ```
public enum UnwrittenChange<Value: Sendable>: Sendable {
  /// The key has a new value.
  case set(Value)
  /// The key was removed.
  case removed
}

extension UnwrittenChange: Equatable where Value: Equatable {}
extension UnwrittenChange: Hashable where Value: Hashable {}

private enum UnwrittenChangeKeys: String, CodingKey { case set, removed }

extension UnwrittenChange: Encodable where Value: Encodable {
  /// Encodes the change.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: UnwrittenChangeKeys.self)
    switch self {
    case .set(let value): try container.encode(value, forKey: .set)
    case .removed: try container.encode(true, forKey: .removed)
    }
  }
}

extension UnwrittenChange: Decodable where Value: Decodable {
  /// Decodes a change.
  ///
  /// - Throws: `DecodingError` if there is neither a value nor a removal.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: UnwrittenChangeKeys.self)
    if container.contains(.removed), try container.decode(Bool.self, forKey: .removed) {
      self = .removed
    } else {
      self = .set(try container.decode(Value.self, forKey: .set))
    }
  }
}
