public import Foundation

/// A store whose entries can expire.
///
/// An expired entry is absent in every operation. Decorators forward this capability, so you can use it on any stack
/// that contains an expiring layer.
///
/// ```swift
/// func extendVisit(_ id: StoreKey, in sessions: some ExpirableStore<Session>) async throws -> Bool {
///   try await sessions.touch(id, timeToLive: .after(.seconds(1800)))
/// }
/// ```
public protocol ExpirableStore<Value>: DataStore {
  /// Stores a value under a key, replacing any other, and sets its time to live.
  ///
  /// ```swift
  /// try await sessions.setValue(session, forKey: "7f3a", timeToLive: .after(.seconds(1800)))
  /// ```
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  ///   - timeToLive: The time to live of the entry, or `nil` for the default of the store.
  /// - Throws: ``StoreError`` and `CancellationError`, as ``DataStore/apply(_:)``; `invalidArgument` if the time to
  ///   live is zero or less.
  func setValue(_ value: Value, forKey key: StoreKey, timeToLive: TimeToLive?) async throws

  /// Returns the value of a key without moving a sliding deadline.
  ///
  /// ```swift
  /// let session = try await sessions.peekValue(forKey: "7f3a")  // an administrator looks, and the session is not renewed
  /// ```
  ///
  /// - Parameter key: The key.
  /// - Returns: The value, or `nil` if the key is missing or has expired.
  /// - Throws: ``StoreError``, as ``DataStore/value(forKey:)``.
  func peekValue(forKey key: StoreKey) async throws -> Value?

  /// Updates a key as one step, and sets the time to live of a value that the closure assigns.
  ///
  /// It is the basis of `insertValue(_:forKey:timeToLive:)` and similar methods. For the closure, what has expired is
  /// absent.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - timeToLive: The time to live of an assigned value, or `nil` for the default of the store.
  ///   - body: A closure that receives the value, or `nil` if the key is missing or has expired, and returns whether what
  ///     it assigned to its argument is written. It must not call the store.
  /// - Returns: The result of the decision.
  /// - Throws: As ``DataStore/update(deciding:_:)``; `invalidArgument` if the time to live is zero or less.
  func update<Result: Sendable>(
    deciding key: StoreKey, timeToLive: TimeToLive?,
    _ body: @escaping @Sendable (inout Value?) -> UpdateDecision<Result>
  ) async throws -> Result

  /// Gives an entry a new time to live, starting now, and leaves its value unchanged.
  ///
  /// ```swift
  /// guard try await sessions.touch("7f3a", timeToLive: .after(.seconds(1800))) else { throw SignedOut() }
  /// ```
  ///
  /// - Parameters:
  ///   - key: The key of the entry.
  ///   - timeToLive: The new time to live, or `nil` for the default of the store.
  /// - Returns: A Boolean value that indicates whether there was a live entry.
  /// - Throws: ``StoreError`` and `CancellationError`, as ``DataStore/apply(_:)``; `invalidArgument` if the time to
  ///   live is zero or less.
  @discardableResult
  func touch(_ key: StoreKey, timeToLive: TimeToLive?) async throws -> Bool

  /// Returns the remaining time to live of an entry, without moving a sliding deadline.
  ///
  /// ``timeUntilExpiry(of:)`` returns it as a duration.
  ///
  /// ```swift
  /// if case .after(let duration) = try await sessions.remainingTime(forKey: "7f3a") {
  ///   print("You will be signed out in \(duration.components.seconds) seconds.")
  /// }
  /// ```
  ///
  /// - Parameter key: The key of the entry.
  /// - Returns: ``TimeToLive/after(_:)`` or ``TimeToLive/never``, or `nil` if the key is missing or has expired.
  /// - Throws: ``StoreError``, as ``DataStore/value(forKey:)``.
  func remainingTime(forKey key: StoreKey) async throws -> TimeToLive?

  /// Returns the time until the first of some entries expires, without moving a sliding deadline.
  ///
  /// - Parameter keys: The keys of the entries.
  /// - Returns: The time, or zero if one of the keys is missing or has expired, or `nil` if the entries do not expire.
  /// - Throws: ``StoreError``, as ``DataStore/values(forKeys:)``.
  func timeUntilExpiry(ofAny keys: [StoreKey]) async throws -> Duration?

  /// Removes expired entries, and frees their space.
  ///
  /// An entry that was written again in the meantime is never removed.
  ///
  /// ```swift
  /// while try await sessions.purgeExpired(limit: 1000) == 1000 {}
  /// ```
  ///
  /// - Parameter limit: The maximum number of entries to remove; `Int.max` for all expired entries.
  /// - Returns: The number of removed entries.
  /// - Throws: ``StoreError`` and `CancellationError`, as ``DataStore/apply(_:)``; `invalidArgument` if the limit is
  ///   negative.
  @discardableResult
  func purgeExpired(limit: Int) async throws -> Int
}

extension ExpirableStore {
  /// Gives an entry the default time to live of the store; see ``touch(_:timeToLive:)``.
  ///
  /// - Parameter key: The key of the entry.
  /// - Returns: A Boolean value that indicates whether there was a live entry.
  /// - Throws: As ``touch(_:timeToLive:)``.
  @discardableResult
  public func touch(_ key: StoreKey) async throws -> Bool {
    try await touch(key, timeToLive: nil)
  }

  /// Returns the time until an entry expires, without moving a sliding deadline.
  ///
  /// ```swift
  /// if let rest = try await sessions.timeUntilExpiry(of: id), rest < .seconds(60) { warn(user) }
  /// ```
  ///
  /// - Parameter key: The key of the entry.
  /// - Returns: The time, or zero if the key is missing or has expired, or `nil` if the entry does not expire.
  /// - Throws: ``StoreError``, as ``DataStore/values(forKeys:)``.
  public func timeUntilExpiry(of key: StoreKey) async throws -> Duration? {
    try await timeUntilExpiry(ofAny: [key])
  }

  /// Removes all expired entries; see ``purgeExpired(limit:)``.
  ///
  /// - Returns: The number of removed entries.
  /// - Throws: As ``purgeExpired(limit:)``.
  @discardableResult
  public func purgeExpired() async throws -> Int {
    try await purgeExpired(limit: .max)
  }
}

/// The time after which an entry expires.
///
/// ```swift
/// let choices: [TimeToLive] = [.after(.seconds(60)), .sliding(.seconds(1800)), .never]
/// ```
public enum TimeToLive: Sendable, Hashable {
  /// The entry does not expire.
  case never

  /// The entry expires this long after it was written.
  ///
  /// The duration must be greater than zero. It is rounded up to whole microseconds. A duration of more than about
  /// 290,000 years has the same effect as ``never``.
  case after(Duration)

  /// The entry expires this long after it was last read or written.
  ///
  /// A read moves the deadline only if at least a tenth of the window has passed since the deadline was last moved. An
  /// entry that is no longer read therefore lives for at least nine tenths of the window, and at most for all of it.
  /// The duration is limited as in ``after(_:)``.
  case sliding(Duration)

  /// The entry expires at a date. If the date has passed, the write removes the entry.
  case until(Date)
}
