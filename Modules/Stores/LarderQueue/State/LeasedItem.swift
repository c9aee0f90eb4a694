/// An item that was leased and is to be read.
struct LeasedItem: Sendable {
  var item: QueueItem
  var receipt: DeliveryReceipt
}
