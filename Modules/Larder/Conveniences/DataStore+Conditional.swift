/// Writes of a key that depend on its value, each in one step.
///
/// No other writer comes between the comparison and the write, neither in this process nor, if the store can be shared, in
/// another one.
extension DataStore {
  /// Stores a value under a key that is missing.
  ///
  /// ```swift
  /// let isFirst = try await nonces.insertValue(now, forKey: nonce)
  /// ```
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  /// - Returns: Whether the value was stored; `false` if the key has a value.
  /// - Throws: As ``update(_:_:)-([StoreKey],_)``.
  @discardableResult
  public func insertValue(_ value: Value, forKey key: StoreKey) async throws -> Bool {
    try await update(deciding: [key]) { slots in slots[0].insert(value) }
  }

  /// Replaces the value of a key if it is the expected one.
  ///
  /// ```swift
  /// let isSwapped = try await flags.replaceValue("green", forKey: "live", expecting: "blue")
  /// ```
  ///
  /// - Parameters:
  ///   - value: The new value, or `nil` to remove the key.
  ///   - key: The key.
  ///   - expected: The value that the key must have, or `nil` if it must be missing.
  /// - Returns: Whether the value was replaced.
  /// - Throws: As ``update(_:_:)-([StoreKey],_)``.
  @discardableResult
  public func replaceValue(
    _ value: Value?, forKey key: StoreKey, expecting expected: Value?
  ) async throws -> Bool where Value: Equatable {
    try await update(deciding: [key]) { slots in slots[0].replace(with: value, expecting: expected) }
  }

  /// Removes a key and returns its value, such as a token that can be redeemed once.
  ///
  /// Of several callers at the same time, one gets the value.
  ///
  /// ```swift
  /// guard let invitation = try await invitations.takeValue(forKey: token) else { throw AlreadyUsed() }
  /// ```
  ///
  /// - Parameter key: The key.
  /// - Returns: The value, or `nil` if the key is missing.
  /// - Throws: As ``update(_:_:)-([StoreKey],_)``.
  public func takeValue(forKey key: StoreKey) async throws -> Value? {
    try await update(deciding: [key]) { slots in
      guard let value = slots[0] else { return .discard(nil) }
      slots[0] = nil
      return .commit(value)
    }
  }

  /// Returns the value of a key, or stores one if the key is missing.
  ///
  /// If the key has a value, the method only reads.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - value: The value to store. It is computed only if the key is missing, and then perhaps several times.
  /// - Returns: The value that the key has now.
  /// - Throws: The error that the computation throws, with nothing stored; as ``update(_:_:)-([StoreKey],_)``.
  public func value(
    forKey key: StoreKey, orInsert value: @autoclosure @escaping @Sendable () throws -> Value
  ) async throws -> Value {
    if let stored = try await self.value(forKey: key) { return stored }
    return try await update(deciding: [key]) { slots in
      UpdateDecision(catching: { try slots[0].insertIfMissing(value) })
    }.get()
  }
}

/// Writes of a key that depend on its value and set its time to live, each in one step.
///
/// An entry that has expired is absent. The forms without a time to live apply the default of the store.
extension ExpirableStore {
  /// Stores a value under a key that is missing or has expired, and sets its time to live.
  ///
  /// ```swift
  /// let isFirst = try await requests.insertValue(body, forKey: id, timeToLive: .after(.seconds(3600)))
  /// ```
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  ///   - timeToLive: The time to live of the entry, or `nil` for the default of the store.
  /// - Returns: Whether the value was stored; `false` if the key has a live value.
  /// - Throws: As ``update(deciding:timeToLive:_:)``.
  @discardableResult
  public func insertValue(_ value: Value, forKey key: StoreKey, timeToLive: TimeToLive?) async throws -> Bool {
    try await update(deciding: key, timeToLive: timeToLive) { $0.insert(value) }
  }

  /// Replaces the value of a key if it is the expected one, and sets its time to live.
  ///
  /// - Parameters:
  ///   - value: The new value, or `nil` to remove the key.
  ///   - key: The key.
  ///   - expected: The value that the key must have, or `nil` if it must be missing or expired.
  ///   - timeToLive: The time to live of the entry, or `nil` for the default of the store.
  /// - Returns: Whether the value was replaced.
  /// - Throws: As ``update(deciding:timeToLive:_:)``.
  @discardableResult
  public func replaceValue(
    _ value: Value?, forKey key: StoreKey, expecting expected: Value?, timeToLive: TimeToLive?
  ) async throws -> Bool where Value: Equatable {
    try await update(deciding: key, timeToLive: timeToLive) { $0.replace(with: value, expecting: expected) }
  }

  /// Returns the live value of a key, or stores one and sets its time to live.
  ///
  /// A value that is live keeps its deadline, also a sliding one.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - value: The value to store. It is computed only if the key is missing, and then perhaps several times.
  ///   - timeToLive: The time to live of a new entry, or `nil` for the default of the store.
  /// - Returns: The value that the key has now.
  /// - Throws: The error that the computation throws, with nothing stored; as ``update(deciding:timeToLive:_:)``.
  public func value(
    forKey key: StoreKey, orInsert value: @autoclosure @escaping @Sendable () throws -> Value, timeToLive: TimeToLive?
  ) async throws -> Value {
    if let stored = try await peekValue(forKey: key) { return stored }
    return try await update(deciding: key, timeToLive: timeToLive) { stored in
      UpdateDecision(catching: { try stored.insertIfMissing(value) })
    }.get()
  }
}

// The decisions, which do not depend on whether entries expire.
extension Optional where Wrapped: Sendable {
  fileprivate mutating func insert(_ value: Wrapped) -> UpdateDecision<Bool> {
    guard self == nil else { return .discard(false) }
    self = value
    return .commit(true)
  }

  fileprivate mutating func replace(
    with value: Wrapped?, expecting expected: Wrapped?
  ) -> UpdateDecision<Bool> where Wrapped: Equatable {
    guard self == expected else { return .discard(false) }
    self = value
    return .commit(true)
  }

  fileprivate mutating func insertIfMissing(_ value: () throws -> Wrapped) rethrows -> UpdateDecision<Wrapped> {
    if let self { return .discard(self) }
    let value = try value()
    self = value
    return .commit(value)
  }
}
