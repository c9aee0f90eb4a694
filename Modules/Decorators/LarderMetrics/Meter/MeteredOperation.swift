#if Metrics
internal import Larder

/// The operations that a ``MeteredStore`` measures, in the order of a report.
enum MeteredOperation: Int, CaseIterable {
  case value, values, entries, keys, count, apply, update, synchronize, close
  case touch, remainingTime, purgeExpired, flush

  /// The operation's name in the contract.
  var operation: StoreOperation {
    switch self {
    case .value: .value
    case .values: .values
    case .entries: .entries
    case .keys: .keys
    case .count: .count
    case .apply: .apply
    case .update: .update
    case .synchronize: .synchronize
    case .close: .close
    case .touch: .touch
    case .remainingTime: .remainingTime
    case .purgeExpired: .purgeExpired
    case .flush: .flush
    }
  }
}
#endif
