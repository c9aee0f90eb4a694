import Larder

extension StoreOperation {
  /// `ExpirableStore.touch(_:lifetime:)`.
  static let touch = StoreOperation(rawValue: "touch")
  /// `ExpirableStore.remainingTime(forKey:)`.
  static let remainingTime = StoreOperation(rawValue: "remainingTime")
  /// `FlushableStore.flush()`.
  static let flush = StoreOperation(rawValue: "flush")
}
