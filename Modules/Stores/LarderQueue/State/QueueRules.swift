/// The rules of a queue in the units of its ``QueueLedger``.
struct QueueRules: Sendable {
  var maximumDeliveries: UInt32?
  /// In microseconds.
  var duplicateWindow: Int64
  /// In microseconds.
  var deadLetterLifetime: Int64?
  var capacity: QueueCapacity

  init(_ configuration: QueueConfiguration) {
    maximumDeliveries = configuration.maximumDeliveries.map { UInt32(clamping: $0) }
    duplicateWindow = configuration.duplicateWindow.microseconds
    deadLetterLifetime = configuration.deadLetterLifetime?.microseconds
    capacity = configuration.capacity
  }

  /// Whether there is anything to a capacity.
  var isLimited: Bool { capacity.items != nil || capacity.bytes != nil }

  /// Whether an item has been delivered as often as it may be.
  func isExhausted(_ item: QueueItem) -> Bool {
    maximumDeliveries.map { item.attempts >= $0 } ?? false
  }
}

extension Duration {
  /// The microseconds, a part of one counted as a whole one, or as many as can be counted.
  var microseconds: Int64 {
    let (seconds, attoseconds) = components
    let (whole, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000)
    let part = (attoseconds + 999_999_999_999) / 1_000_000_000_000
    let (sum, overflowsToo) = whole.addingReportingOverflow(part)
    return overflows || overflowsToo ? (seconds < 0 ? .min : .max) : sum
  }
}

extension Int64 {
  /// The sum, or the greatest number where the sum is greater.
  func addingSaturating(_ other: Int64) -> Int64 {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? (other < 0 ? .min : .max) : sum
  }
}
