/// The receipt by which a consumer acknowledges, releases or extends one delivery of an item.
///
/// Each delivery has its own, so a consumer whose lease has ended cannot end the lease of another. As text, by
/// ``description``, it can be handed to another process and made a receipt again by ``init(_:)``.
public struct DeliveryReceipt: Sendable, Hashable {
  /// The item's place in the order of arrival.
  public let sequence: UInt64

  /// How often the item has been delivered, this time included.
  public let attempt: UInt32

  /// A number drawn at random for each receiving.
  ///
  /// With it, even where power loss has taken a lease, its receipt fits no other.
  public let epoch: UInt64

  init(sequence: UInt64, attempt: UInt32, epoch: UInt64) {
    self.sequence = sequence
    self.attempt = attempt
    self.epoch = epoch
  }
}

extension DeliveryReceipt: LosslessStringConvertible {
  /// Makes a receipt of its text.
  ///
  /// - Parameter text: A ``description``; anything else gives `nil`.
  public init?(_ text: String) {
    let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard parts.count == 3, parts.allSatisfy({ $0.allSatisfy(DeliveryReceipt.isDigit) }),
      let sequence = UInt64(Substring(parts[0]), radix: 16), let attempt = UInt32(Substring(parts[1]), radix: 16),
      let epoch = UInt64(Substring(parts[2]), radix: 16)
    else { return nil }
    self.init(sequence: sequence, attempt: attempt, epoch: epoch)
  }

  // The initializers of integers take a sign too.
  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
  }

  /// The receipt as text, without spaces: three numbers in hexadecimal.
  public var description: String {
    [String(sequence, radix: 16), String(attempt, radix: 16), String(epoch, radix: 16)].joined(separator: "-")
  }
}
