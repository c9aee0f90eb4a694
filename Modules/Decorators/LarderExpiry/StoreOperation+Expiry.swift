public import Larder

extension StoreOperation {
  /// `ExpirableStore.touch(_:lifetime:)`.
  public static let touch = StoreOperation(rawValue: "touch")
  /// `ExpirableStore.remainingTime(forKey:)`.
  public static let remainingTime = StoreOperation(rawValue: "remainingTime")
  /// `ExpirableStore.purgeExpired(limit:)`.
  public static let purgeExpired = StoreOperation(rawValue: "purgeExpired")
}
