/// The name of an operation on a store, for errors, metrics and logs.
///
/// The set of operations is open. A store with further operations gives them names of its own.
///
/// ```swift
/// extension StoreOperation {
///   /// Exporting all entries as a file of comma-separated values.
///   static let export = StoreOperation(rawValue: "export")
/// }
/// ```
public struct StoreOperation: RawRepresentable, Sendable, Hashable {
  /// The name.
  public let rawValue: String

  /// Creates an operation.
  ///
  /// - Parameter rawValue: The name, in lower camel case.
  public init(rawValue: String) {
    self.rawValue = rawValue
  }

  /// Opening a store.
  public static let open = StoreOperation(rawValue: "open")
  /// ``DataStore/value(forKey:)``.
  public static let value = StoreOperation(rawValue: "value")
  /// ``DataStore/values(forKeys:)``.
  public static let values = StoreOperation(rawValue: "values")
  /// ``DataStore/entries(in:limit:order:)``.
  public static let entries = StoreOperation(rawValue: "entries")
  /// ``DataStore/keys(in:limit:order:)``.
  public static let keys = StoreOperation(rawValue: "keys")
  /// ``DataStore/count(in:)``.
  public static let count = StoreOperation(rawValue: "count")
  /// ``DataStore/apply(_:)``.
  public static let apply = StoreOperation(rawValue: "apply")
  /// ``DataStore/update(deciding:_:)``.
  public static let update = StoreOperation(rawValue: "update")
  /// ``DataStore/synchronize()``.
  public static let synchronize = StoreOperation(rawValue: "synchronize")
  /// ``DataStore/close()``.
  public static let close = StoreOperation(rawValue: "close")
  /// ``MaintainableStore/storeStatistics()``.
  public static let statistics = StoreOperation(rawValue: "statistics")
  /// ``MaintainableStore/verify()``.
  public static let verify = StoreOperation(rawValue: "verify")
  /// ``MaintainableStore/compact()``.
  public static let compact = StoreOperation(rawValue: "compact")
  /// ``MaintainableStore/backup(to:compacting:)``.
  public static let backup = StoreOperation(rawValue: "backup")
  /// The operation ``MaintainableStore/restore(to:)``.
  public static let restore = StoreOperation(rawValue: "restore")
  /// ``ExpirableStore/touch(_:timeToLive:)``.
  public static let touch = StoreOperation(rawValue: "touch")
  /// ``ExpirableStore/remainingTime(forKey:)``.
  public static let remainingTime = StoreOperation(rawValue: "remainingTime")
  /// ``ExpirableStore/purgeExpired(limit:)``.
  public static let purgeExpired = StoreOperation(rawValue: "purgeExpired")
  /// ``InvalidatableStore/invalidate(_:)``.
  public static let invalidate = StoreOperation(rawValue: "invalidate")
  /// ``InvalidatableStore/invalidateAll()``.
  public static let invalidateAll = StoreOperation(rawValue: "invalidateAll")
  /// ``FlushableStore/flush()``.
  public static let flush = StoreOperation(rawValue: "flush")
  /// ``ObservableStore/observe(_:_:)``.
  public static let observe = StoreOperation(rawValue: "observe")
  /// ``StoreKey/components()``.
  public static let decodeKey = StoreOperation(rawValue: "decodeKey")
  /// Reading a page; see ``DataStore/pages(of:size:order:)``.
  public static let page = StoreOperation(rawValue: "page")
  /// Reading several stores from one state of the file that holds them.
  public static let read = StoreOperation(rawValue: "read")
  /// Writing several stores of a file in one transaction.
  public static let write = StoreOperation(rawValue: "write")
  /// Listing the stores of a file.
  public static let storeNames = StoreOperation(rawValue: "storeNames")
}

extension StoreOperation: CustomStringConvertible {
  /// The name.
  public var description: String { rawValue }
}
