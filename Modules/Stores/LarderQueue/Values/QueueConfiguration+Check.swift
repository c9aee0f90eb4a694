import Larder

extension QueueConfiguration {
  /// Refuses rules that make no sense.
  func check(store: String) throws {
    func refuse(_ message: String) -> StoreError {
      StoreError(.invalidArgument, during: .open, store: store, message: message)
    }
    if let maximumDeliveries, maximumDeliveries < 1 { throw refuse("an item is delivered at least once") }
    guard duplicateWindow >= .zero else { throw refuse("a window of \(duplicateWindow) makes no sense") }
    guard retryPolicy.base >= .zero, retryPolicy.ceiling >= .zero, (0...1).contains(retryPolicy.jitter) else {
      throw refuse("a retry policy of negative times, or a random part that is not between 0 and 1, makes no sense")
    }
    if let deadLetterLifetime, deadLetterLifetime < .zero {
      throw refuse("a lifetime of \(deadLetterLifetime) makes no sense")
    }
    if let items = capacity.items, items < 1 { throw refuse("a queue holds at least one item") }
    if let bytes = capacity.bytes, bytes < 1 { throw refuse("a queue holds at least one byte") }
    guard (4096...1 << 30).contains(segmentSize) else {
      throw refuse("a segment has between 4,096 bytes and 1 GiB, not \(segmentSize)")
    }
  }
}
