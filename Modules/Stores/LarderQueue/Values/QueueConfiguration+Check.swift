import Larder

extension QueueConfiguration {
  /// Refuses rules that make no sense.
  func check(store: String) throws {
    func refuse(_ message: String) -> StoreError {
      StoreError(.invalidArgument, during: .open, store: store, message: message)
    }
    if let maximumDeliveries, maximumDeliveries < 1 {
      throw refuse("`maximumDeliveries` must be at least 1, not \(maximumDeliveries)")
    }
    guard duplicateWindow >= .zero else {
      throw refuse("`duplicateWindow` must not be negative, but is \(duplicateWindow)")
    }
    guard retryPolicy.base >= .zero, retryPolicy.ceiling >= .zero, (0...1).contains(retryPolicy.jitter) else {
      throw refuse("the times of a retry policy must not be negative, and its jitter must be between 0 and 1")
    }
    if let deadLetterLifetime, deadLetterLifetime < .zero {
      throw refuse("`deadLetterLifetime` must not be negative, but is \(deadLetterLifetime)")
    }
    if let items = capacity.items, items < 1 { throw refuse("a capacity must be at least 1 item, not \(items)") }
    if let bytes = capacity.bytes, bytes < 1 { throw refuse("a capacity must be at least 1 byte, not \(bytes)") }
    guard (4096...1 << 30).contains(segmentSize) else {
      throw refuse("`segmentSize` must be between 4,096 bytes and 1 GiB, not \(segmentSize)")
    }
  }
}
