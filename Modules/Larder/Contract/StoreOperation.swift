/// What was asked of a store: names an operation in errors, metrics and logs.
///
/// It is open: a store with operations of its own gives them names of its own.
public struct StoreOperation: RawRepresentable, Sendable, Hashable {
  /// The name.
  public let rawValue: String

  /// Makes an operation of a name.
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
  /// ``DataStore/update(_:_:)``.
  public static let update = StoreOperation(rawValue: "update")
  /// ``DataStore/synchronize()``.
  public static let synchronize = StoreOperation(rawValue: "synchronize")
  /// ``DataStore/close()``.
  public static let close = StoreOperation(rawValue: "close")
  /// ``StoreMaintenance/statistics()``.
  public static let statistics = StoreOperation(rawValue: "statistics")
  /// ``StoreMaintenance/verify()``.
  public static let verify = StoreOperation(rawValue: "verify")
  /// ``StoreMaintenance/compact()``.
  public static let compact = StoreOperation(rawValue: "compact")
  /// ``StoreMaintenance/backup(to:compacting:)``.
  public static let backup = StoreOperation(rawValue: "backup")
  /// ``ExpirableStore/touch(_:lifetime:)``.
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
  /// Reading the components of a key.
  public static let decodeKey = StoreOperation(rawValue: "decodeKey")
  /// Reading a page of a range.
  public static let page = StoreOperation(rawValue: "page")
}

extension StoreOperation: CustomStringConvertible {
  /// The name.
  public var description: String { rawValue }
}
