import Larder

extension StoreOperation {
  /// What `InvalidatableStore` adds.
  static let invalidate = StoreOperation(rawValue: "invalidate")

  /// `ExpirableStore.touch(_:lifetime:)`.
  static let touch = StoreOperation(rawValue: "touch")

  /// `ExpirableStore.purgeExpired(limit:)`.
  static let purgeExpired = StoreOperation(rawValue: "purgeExpired")
}
