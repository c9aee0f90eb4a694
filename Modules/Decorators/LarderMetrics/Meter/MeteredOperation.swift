#if Metrics
internal import Larder

/// The operations that a ``MeteredStore`` measures, in the order of a report.
@usableFromInline
enum MeteredOperation: Int, CaseIterable {
  case value, values, entries, keys, count, apply, update, synchronize, close
  case touch, remainingTime, purgeExpired, invalidate, invalidateAll, flush
  case statistics, verify, compact, backup

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
    case .invalidate: .invalidate
    case .invalidateAll: .invalidateAll
    case .flush: .flush
    case .statistics: .statistics
    case .verify: .verify
    case .compact: .compact
    case .backup: .backup
    }
  }

  /// Whether it reads or writes values whose bytes can be counted.
  var hasBytes: Bool {
    switch self {
    case .value, .values, .entries, .apply, .update: true
    default: false
    }
  }
}
#endif
