import Larder

/// The rules of a queue, in the units of its ``QueueLedger``.
struct QueueRules: Sendable {
  var maximumDeliveries: UInt32?
  /// In microseconds.
  var duplicateWindow: Int64
  /// In microseconds.
  var deadLetterRetention: Int64?
  var capacity: QueueCapacity

  init(_ configuration: QueueConfiguration) {
    maximumDeliveries = configuration.policy.maximumDeliveries.map { UInt32(clamping: $0) }
    duplicateWindow = configuration.policy.duplicateWindow.wholeMicroseconds
    deadLetterRetention = configuration.policy.deadLetterRetention?.wholeMicroseconds
    capacity = configuration.capacity
  }

  /// A Boolean value that indicates whether the queue has a capacity limit.
  var isLimited: Bool { capacity.items != nil || capacity.bytes != nil }

  /// Returns whether an item has reached the maximum number of deliveries.
  func isExhausted(_ item: QueueItem) -> Bool {
    maximumDeliveries.map { item.attempts >= $0 } ?? false
  }
}
