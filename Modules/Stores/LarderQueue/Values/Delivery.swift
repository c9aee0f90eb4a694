public import Larder

/// An item that was received, with what is needed to acknowledge it.
public struct Delivery<Element: Sendable>: Sendable {
  /// The key of the item.
  public let key: StoreKey

  /// The item.
  public let value: Element

  /// The receipt that acknowledges, releases or extends this delivery.
  public let receipt: DeliveryReceipt

  /// How often the item has been delivered, this time included.
  public var attempt: Int { Int(receipt.attempt) }

  init(key: StoreKey, value: Element, receipt: DeliveryReceipt) {
    self.key = key
    self.value = value
    self.receipt = receipt
  }
}
