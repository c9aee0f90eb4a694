/// The forms of `update` for everyday use, built on the requirement of the protocol.
extension DataStore {
  /// Reads the values of several keys, passes them to a closure that can change them, and writes back the assigned ones, as
  /// one step.
  ///
  /// No other writer of the store comes between the reading and the writing, neither in this process nor, if the store
  /// can be shared, in another one.
  ///
  /// - Parameters:
  ///   - keys: The keys to read and write. They must be distinct.
  ///   - body: A closure that receives a slot for each key, in the order of `keys`: the value, or `nil` if the key is
  ///     missing. It assigns the slots to change, with `nil` to remove a key. It runs once, unless the store repeats a
  ///     commit that is known to have had no effect. In that case it runs again on the current values, and only its last
  ///     run counts. It must not call the store.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws, unchanged, with nothing changed in the store. ``StoreError`` as
  ///   ``apply(_:)``, `corrupted` or `undecodable` if a stored value cannot be decoded, and `invalidArgument` if a key
  ///   occurs twice.
  @discardableResult
  public func update<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @escaping @Sendable (inout UpdateSlots<Value>) throws -> Result
  ) async throws -> Result {
    try await update(deciding: keys) { slots in UpdateDecision(catching: { .commit(try body(&slots)) }) }.get()
  }

  /// Updates several keys as one step, with a closure that throws or decides whether to commit; see
  /// ``update(_:_:)-([StoreKey],_)``.
  ///
  /// - Parameters:
  ///   - keys: The keys to read and write. They must be distinct.
  ///   - body: A closure as that of ``update(_:_:)-([StoreKey],_)`` that returns whether the slots that it assigned are
  ///     written.
  /// - Returns: The result of the decision.
  /// - Throws: As ``update(_:_:)-([StoreKey],_)``.
  @_disfavoredOverload @discardableResult
  public func update<Result: Sendable>(
    deciding keys: [StoreKey],
    _ body: @escaping @Sendable (inout UpdateSlots<Value>) throws -> UpdateDecision<Result>
  ) async throws -> Result {
    // This method is disfavored, so that the body that does not throw is passed to the requirement.
    try await update(deciding: keys) { slots in UpdateDecision(catching: { try body(&slots) }) }.get()
  }

  /// Reads the value of a key, passes it to a closure that can change it, and writes it back, as one step.
  ///
  /// ```swift
  /// let visits = try await store.update("visits") { count in
  ///   count = (count ?? 0) + 1
  ///   return count
  /// }
  /// ```
  ///
  /// The value counts as assigned, also if the closure only reads it. To decide that nothing is written, use
  /// ``update(deciding:_:)``.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - body: A closure that receives the value, or `nil` if the key is missing. It assigns a new value to its argument,
  ///     or `nil` to remove the key. It must not call the store.
  /// - Returns: The result of `body`.
  /// - Throws: As ``update(_:_:)-([StoreKey],_)`` of several keys.
  @discardableResult
  public func update<Result: Sendable>(
    _ key: StoreKey,
    _ body: @escaping @Sendable (inout Value?) throws -> Result
  ) async throws -> Result {
    try await update(deciding: [key]) { slots in
      UpdateDecision(catching: { .commit(try body(&slots[0])) })
    }.get()
  }

  /// Updates a key as one step, with a closure that decides whether to commit.
  ///
  /// ```swift
  /// let isTaken = try await seats.update(deciding: "seat/7A") { owner in
  ///   guard owner == nil else { return .discard(true) }
  ///   owner = name
  ///   return .commit(false)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - body: A closure that receives the value, or `nil` if the key is missing, and returns whether what it assigned to
  ///     its argument is written. It must not call the store.
  /// - Returns: The result of the decision.
  /// - Throws: As ``update(_:_:)-([StoreKey],_)`` of several keys.
  @discardableResult
  public func update<Result: Sendable>(
    deciding key: StoreKey,
    _ body: @escaping @Sendable (inout Value?) throws -> UpdateDecision<Result>
  ) async throws -> Result {
    try await update(deciding: [key]) { slots in UpdateDecision(catching: { try body(&slots[0]) }) }.get()
  }
}
