/// Why an item became a dead letter: an open set.
public struct DeathReason: RawRepresentable, Sendable, Hashable {
  /// The number that stands in the files.
  public let rawValue: UInt8

  /// Makes a reason of its number.
  ///
  /// - Parameter rawValue: The number that stands in the files.
  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// It was delivered ``QueueConfiguration/maximumDeliveries`` times and never acknowledged.
  public static let tooManyDeliveries = DeathReason(rawValue: 1)
  /// Its payload is damaged, or is no value of the queue's type.
  public static let undecodable = DeathReason(rawValue: 2)
}

extension DeathReason: CustomStringConvertible {
  /// The reason in lower camel case, as it stands in the output of tools.
  public var description: String {
    switch self {
    case .tooManyDeliveries: "tooManyDeliveries"
    case .undecodable: "undecodable"
    default: "reason\(rawValue)"
    }
  }
}
