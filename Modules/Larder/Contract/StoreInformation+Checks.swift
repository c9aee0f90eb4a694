/// The checks of arguments that every store makes before it touches anything.
extension StoreInformation {
  /// Refuses a key that has no byte or more than ``maximumKeyLength``.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - operation: What was asked for.
  /// - Throws: ``StoreError`` with ``StoreError/Code/invalidKey``.
  public func check(_ key: StoreKey, for operation: StoreOperation) throws {
    let count = key.count
    guard count == 0 || count > maximumKeyLength else { return }
    let message =
      count == 0
      ? "a key has at least one byte" : "a key has at most \(maximumKeyLength) bytes, this one has \(count)"
    throw StoreError(.invalidKey, during: operation, store: name, key: key, message: message)
  }

  /// Refuses keys of which any is invalid.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - operation: What was asked for.
  /// - Throws: ``StoreError`` with ``StoreError/Code/invalidKey`` for the first such key.
  public func check(_ keys: [StoreKey], for operation: StoreOperation) throws {
    for key in keys {
      try check(key, for: operation)
    }
  }

  /// Refuses every write if the store may only read.
  ///
  /// - Parameter operation: The operation that would write.
  /// - Throws: ``StoreError`` with ``StoreError/Code/notPermitted``.
  @inlinable
  public func checkWritable(for operation: StoreOperation) throws {
    if access != .readWrite { throw readOnlyError(for: operation) }
  }

  @usableFromInline
  func readOnlyError(for operation: StoreOperation) -> StoreError {
    StoreError(
      .notPermitted, during: operation, store: name,
      message: "the store was opened for reading only; open it with the access readWrite to change it")
  }

  /// Refuses a batch if the store may only read, or if any key of the batch is invalid.
  ///
  /// - Parameter changes: The batch.
  /// - Throws: ``StoreError`` with ``StoreError/Code/notPermitted``, or ``StoreError/Code/invalidKey`` for the first
  ///   invalid key.
  @inlinable
  public func check(_ changes: ChangeBatch<some Any>) throws {
    try checkWritable(for: .apply)
    // No key path: in generic code that is not specialized it is made anew each time, for several microseconds.
    for change in changes.changes {
      if let key = change.key { try check(key, for: .apply) }
    }
  }

  /// Refuses a negative limit.
  ///
  /// - Parameters:
  ///   - limit: The most entries to return.
  ///   - operation: What was asked for.
  /// - Throws: ``StoreError`` with ``StoreError/Code/invalidArgument``.
  public func check(limit: Int, for operation: StoreOperation) throws {
    guard limit < 0 else { return }
    throw StoreError(.invalidArgument, during: operation, store: name, message: "the limit \(limit) is negative")
  }

  /// Refuses an update if the store may only read, or if any key is invalid or given twice.
  ///
  /// - Parameter keys: The keys.
  /// - Throws: ``StoreError`` with ``StoreError/Code/notPermitted``, ``StoreError/Code/invalidKey`` or
  ///   ``StoreError/Code/invalidArgument``.
  public func check(updateOf keys: [StoreKey]) throws {
    try checkWritable(for: .update)
    try check(keys, for: .update)
    guard keys.count > 1 else { return }
    var seen: Set<StoreKey> = []
    for key in keys where !seen.insert(key).inserted {
      throw StoreError(.invalidArgument, during: .update, store: name, key: key, message: "a key stands twice")
    }
  }

  /// Refuses what the body of an update left behind where it changed the number of slots.
  ///
  /// - Parameters:
  ///   - slotCount: How many slots it left.
  ///   - keys: The keys of the update.
  /// - Throws: ``StoreError`` with ``StoreError/Code/invalidArgument``.
  public func check(slotCount: Int, forUpdateOf keys: [StoreKey]) throws {
    guard slotCount != keys.count else { return }
    throw StoreError(
      .invalidArgument, during: .update, store: name,
      message: "the body of the update left \(slotCount) slots for \(keys.count) keys")
  }

  /// The error of an operation on a store that was closed.
  ///
  /// - Parameter operation: What was asked for.
  public func closedError(for operation: StoreOperation) -> StoreError {
    StoreError(.closed, during: operation, store: name, message: "the store was closed")
  }
}
