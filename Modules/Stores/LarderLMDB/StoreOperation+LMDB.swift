#if LMDB
public import Larder

extension StoreOperation {
  /// ``LMDBEnvironment/storeNames()``.
  public static let storeNames = StoreOperation(rawValue: "storeNames")
  /// ``LMDBEnvironment/read(_:)``.
  public static let read = StoreOperation(rawValue: "read")
  /// ``LMDBEnvironment/write(_:)``.
  public static let write = StoreOperation(rawValue: "write")
}
#endif
