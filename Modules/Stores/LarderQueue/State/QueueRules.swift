#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The rules of a queue, in the units of its ``QueueLedger``.
struct QueueRules: Sendable {
  var maximumDeliveries: UInt32?
  /// In microseconds.
  var duplicateWindow: Int64
  /// In microseconds.
  var deadLetterRetention: Int64?
  var capacity: QueueCapacity

  init(_ configuration: QueueConfiguration) {
    maximumDeliveries = configuration.maximumDeliveries.map { UInt32(clamping: $0) }
    duplicateWindow = configuration.duplicateWindow.microseconds
    deadLetterRetention = configuration.deadLetterRetention?.microseconds
    capacity = configuration.capacity
  }

  /// Whether the queue has a capacity limit.
  var isLimited: Bool { capacity.items != nil || capacity.bytes != nil }

  /// Returns whether an item has reached the maximum number of deliveries.
  func isExhausted(_ item: QueueItem) -> Bool {
    maximumDeliveries.map { item.attempts >= $0 } ?? false
  }
}

extension Duration {
  /// The duration in microseconds, rounded up and clamped to the range of the type.
  var microseconds: Int64 {
    let (seconds, attoseconds) = components
    let (whole, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000)
    let part = (attoseconds + 999_999_999_999) / 1_000_000_000_000
    let (sum, overflowsToo) = whole.addingReportingOverflow(part)
    return overflows || overflowsToo ? (seconds < 0 ? .min : .max) : sum
  }
}

extension Int64 {
  /// Returns the sum, clamped to the range of the type.
  func addingSaturating(_ other: Int64) -> Int64 {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? (other < 0 ? .min : .max) : sum
  }
}

extension Date {
  /// The time in microseconds since 1970, clamped to the range of the type.
  var microseconds: Int64 {
    let microseconds = timeIntervalSince1970 * 1_000_000
    guard microseconds.magnitude < 9e18 else { return microseconds > 0 ? .max : .min }
    return Int64(microseconds + (microseconds < 0 ? -0.5 : 0.5))
  }

  /// Creates a date from a time in microseconds since 1970.
  init(microseconds: Int64) {
    self.init(timeIntervalSince1970: Double(microseconds) / 1_000_000)
  }
}
