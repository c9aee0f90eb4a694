public import Foundation

/// A received item with the receipt that acknowledges it.
///
/// ```swift
/// func process(_ delivery: QueueDelivery<Payment>) async throws {
///   try await bytes.transaction { tx in
///     try await tx.acknowledge(delivery.receipt, in: payments)
///     try await tx.update("revenue", in: totals) { $0 = ($0 ?? 0) + delivery.value.amount }
///     return .commit(())
///   }
/// }
/// ```
public struct QueueDelivery<Element: Sendable>: Sendable {
  /// The key of the item.
  public let key: StoreKey

  /// The item.
  public let value: Element

  /// The receipt that acknowledges, releases or extends this delivery.
  public let receipt: DeliveryReceipt

  /// The number of times the item has been delivered, including this delivery.
  public var attempt: Int { Int(receipt.attempt) }

  /// The date when the item was enqueued.
  public let enqueueDate: Date

  /// The priority of the item.
  public let priority: Int

  /// The group of the item, or `nil`.
  public let group: StoreKey?

  /// A Boolean value that indicates whether the item may crash its consumer, because leases of it ended without
  /// acknowledgement or release.
  ///
  /// Process such an item alone, so a crash does not count as a delivery of other items.
  public let isSuspect: Bool

  /// Creates a delivery.
  ///
  /// - Parameters:
  ///   - key: The key of the item.
  ///   - value: The item.
  ///   - receipt: The receipt.
  ///   - enqueueDate: The date when the item was enqueued.
  ///   - priority: The priority of the item. Defaults to 0.
  ///   - group: The group of the item. Defaults to `nil`.
  ///   - isSuspect: A Boolean value that indicates whether the item may crash its consumer. Defaults to `false`.
  public init(
    key: StoreKey, value: Element, receipt: DeliveryReceipt, enqueueDate: Date, priority: Int = 0,
    group: StoreKey? = nil, isSuspect: Bool = false
  ) {
    self.key = key
    self.value = value
    self.receipt = receipt
    self.enqueueDate = enqueueDate
    self.priority = priority
    self.group = group
    self.isSuspect = isSuspect
  }
}

/// A receipt with which a consumer acknowledges, releases or extends one delivery of an item.
///
/// Each delivery has its own receipt, so a consumer whose lease has ended cannot end the lease of another consumer. To
/// pass a receipt to another process, send its ``description`` and recreate the receipt with ``init(_:)``.
public struct DeliveryReceipt: Sendable, Hashable {
  /// The item's position in the order of arrival.
  public let sequence: UInt128

  /// The number of times the item has been delivered, including this delivery.
  public let attempt: UInt32

  /// A random number for each call that receives items.
  ///
  /// It distinguishes the receipts of two leases if power loss erased the first lease.
  public let epoch: UInt64

  /// Creates a receipt.
  ///
  /// - Parameters:
  ///   - sequence: The item's position in the order of arrival.
  ///   - attempt: The number of times the item has been delivered, including this delivery.
  ///   - epoch: A random number for each call that receives items.
  public init(sequence: UInt128, attempt: UInt32, epoch: UInt64) {
    self.sequence = sequence
    self.attempt = attempt
    self.epoch = epoch
  }
}

extension DeliveryReceipt: LosslessStringConvertible {
  /// Creates a receipt from its text.
  ///
  /// ```swift
  /// guard let receipt = DeliveryReceipt("17-1-9a3f") else { throw InvalidArgument() }
  /// try await queue.acknowledge(receipt)
  /// ```
  ///
  /// - Parameter text: A ``description``. The result is `nil` for any other text.
  public init?(_ text: String) {
    let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard parts.count == 3, parts.allSatisfy({ $0.allSatisfy(DeliveryReceipt.isDigit) }),
      let sequence = UInt128(Substring(parts[0]), radix: 16), let attempt = UInt32(Substring(parts[1]), radix: 16),
      let epoch = UInt64(Substring(parts[2]), radix: 16)
    else { return nil }
    self.init(sequence: sequence, attempt: attempt, epoch: epoch)
  }

  // The initializers of integers also accept a sign.
  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
  }

  /// The receipt as text without spaces: three hexadecimal numbers.
  public var description: String {
    [String(sequence, radix: 16), String(attempt, radix: 16), String(epoch, radix: 16)].joined(separator: "-")
  }
}
