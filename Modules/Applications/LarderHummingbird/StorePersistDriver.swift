#if Hummingbird
public import Foundation
public import Hummingbird
public import Larder
import LarderExpiry
import ServiceLifecycle

/// A persist driver of Hummingbird over any store of bytes.
///
/// ```swift
/// let bytes = try await SQLiteStore(path: "shop.sqlite", codec: .raw)
/// let persist = try StorePersistDriver(bytes, prefix: "persist/")
///
/// try await persist.set(key: "session/7", value: session, expires: .seconds(3600))
/// let found = try await persist.get(key: "session/7", as: Session.self)
/// ```
///
/// Each call is one commit or one read of the store, and keeps the promises of the store. Several programs can share a driver's
/// entries if they can share the store.
///
/// ## Deadlines
///
/// An entry is absent from its deadline on, in every call, also if it was not purged yet. `create` therefore succeeds for a key
/// whose entry has expired. `set` without `expires` keeps the deadline of a live entry, but not that of an expired one. An
/// `expires` of zero or less makes the entry absent.
///
/// Deadlines are wall-clock times, because they outlive the process.
///
/// ## Values
///
/// Values are stored as JSON with their deadlines. JSON has no types, so `invalidConversion` is thrown if the JSON does not
/// decode as the requested type. Two types with the same members can read each other's values.
///
/// ## Life of the store
///
/// The driver never closes the store, because other parts of a program use it too. The code that opened the store closes it, after
/// the server has ended; see `StoreService` of LarderService. As a service, the driver purges expired entries until the
/// graceful shutdown.
public final class StorePersistDriver: PersistDriver {
  /// The prefix of the keys of all entries in the store.
  public let prefix: StoreKey

  /// The time between two purges of expired entries while the driver runs as a service.
  public let purgeInterval: Duration

  private let entries: ExpiringStore<TypedView<AnyDataStore<[UInt8]>, Expiring<[UInt8]>>, [UInt8]>
  private let clock: any Clock<Duration>
  private let now: @Sendable () -> Date
  private let onPurgeFailure: @Sendable (any Error) -> Void

  /// Creates a driver, without reading anything.
  ///
  /// - Parameters:
  ///   - base: The store of bytes.
  ///   - prefix: The prefix of the keys of all entries. No other entry may have a key that begins with it.
  ///   - purgeInterval: The time between two purges. Defaults to ten minutes.
  ///   - clock: The clock that measures the interval. Defaults to a `ContinuousClock`.
  ///   - now: A closure that returns the wall-clock time. Defaults to the system time.
  ///   - onPurgeFailure: A closure that receives the error of a failed purge, which is repeated after the interval. Defaults to
  ///     one that does nothing. An entry that was not purged is absent nevertheless.
  /// - Throws: `StoreError` with `invalidArgument` if the interval is not greater than zero, or if the prefix leaves no room
  ///   for a key.
  public init(
    _ base: some DataStore<[UInt8]>, prefix: StoreKey, purgeInterval: Duration = .seconds(600),
    clock: any Clock<Duration> = ContinuousClock(), now: @escaping @Sendable () -> Date = { Date.now },
    onPurgeFailure: @escaping @Sendable (any Error) -> Void = { _ in }
  ) throws {
    let view = AnyDataStore(base).typed(Expiring<[UInt8]>.self, prefix: prefix, codec: .raw.expiring())
    guard purgeInterval > .zero else {
      throw StoreError(
        .invalidArgument, during: .open, store: view.information.name,
        message: "the purge interval of a persist driver must be greater than zero, not \(purgeInterval)")
    }
    guard view.information.maximumKeyLength > 0 else {
      throw StoreError(
        .invalidArgument, during: .open, store: view.information.name,
        message: "the prefix of a persist driver has \(prefix.count) bytes, which leaves none for keys")
    }
    self.prefix = prefix
    self.purgeInterval = purgeInterval
    self.clock = clock
    self.onPurgeFailure = onPurgeFailure
    self.now = now
    // Each call is to be one commit, so the purges run on a schedule only.
    entries = view.expiring(.never, purgesOnWrite: false, now: now)
  }

  // MARK: Entries

  /// Stores a value under a key that does not have one.
  ///
  /// - Parameters:
  ///   - key: The key, of 1 byte up to the limit of the store without the prefix.
  ///   - value: The value.
  ///   - expires: The time to live, or `nil` if the entry does not expire.
  /// - Throws: `PersistError.duplicate` if there is a live entry, which stays as it is; `StoreError` with `invalidKey`;
  ///   `encodingFailed`; the errors of the store. `CancellationError`.
  public func create<Object: Codable & Sendable>(key: String, value: Object, expires: Duration?) async throws {
    let storeKey = try storeKey(key, for: .update)
    let bytes = try coder(Object.self).bytes(of: value, forKey: storeKey, during: .update)
    let isNew = try await entries.update(deciding: storeKey, timeToLive: TimeToLive(expires)) { slot in
      guard slot == nil else { return .discard(false) }
      slot = bytes
      return .commit(true)
    }
    guard isNew else { throw PersistError.duplicate }
  }

  /// Stores a value under a key, replacing any other.
  ///
  /// - Parameters:
  ///   - key: The key, of 1 byte up to the limit of the store without the prefix.
  ///   - value: The value.
  ///   - expires: The time to live, or `nil` to keep the deadline of a live entry. Without a live entry, the new one does not
  ///     expire.
  /// - Throws: `StoreError` with `invalidKey`; `encodingFailed`; the errors of the store. `CancellationError`.
  public func set<Object: Codable & Sendable>(key: String, value: Object, expires: Duration?) async throws {
    let storeKey = try storeKey(key, for: .apply)
    let bytes = try coder(Object.self).bytes(of: value, forKey: storeKey, during: .apply)
    if let expires {
      try await entries.setValue(bytes, forKey: storeKey, timeToLive: TimeToLive(expires))
    } else {
      try await entries.setValueKeepingDeadline(bytes, forKey: storeKey)
    }
  }

  /// Returns the value of a key.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - type: The type of the value.
  /// - Returns: The value, or `nil` if the key is missing or has expired.
  /// - Throws: `PersistError.invalidConversion` if the value is of another type; `StoreError` with `invalidKey`; `corrupted` if
  ///   the stored bytes are damaged; the errors of the store.
  public func get<Object: Codable & Sendable>(key: String, as type: Object.Type) async throws -> Object? {
    try await getWithTTL(key: key, as: type)?.object
  }

  /// Returns the value of a key and its remaining time to live, by one read.
  ///
  /// ```swift
  /// if let (session, ttl) = try await persist.getWithTTL(key: "session/7", as: Session.self) {
  ///   print(session.user, ttl ?? .zero)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - type: The type of the value.
  /// - Returns: The value and the time to live, which is `nil` if the entry does not expire, or `nil` if the key is missing or
  ///   has expired.
  /// - Throws: As ``get(key:as:)``.
  public func getWithTTL<Object: Codable & Sendable>(
    key: String, as type: Object.Type
  ) async throws -> (object: Object, ttl: Duration?)? {
    let storeKey = try storeKey(key, for: .value)
    // As in an expiring store, the clock is read before the entry.
    let now = now().microsecondsSince1970
    guard let found = try await entries.base.value(forKey: storeKey) else { return nil }
    let rest = found.deadline.map { $0.date.microsecondsSince1970.addingSaturating(-now) }
    if let rest, rest <= 0 { return nil }
    return (try object(of: found.value, forKey: storeKey), rest.map { .microseconds($0) })
  }

  /// Removes the entry of a key, if there is one.
  ///
  /// - Parameter key: The key.
  /// - Throws: `StoreError` with `invalidKey`; the errors of the store. `CancellationError`.
  public func remove(key: String) async throws {
    try await entries.removeValue(forKey: storeKey(key, for: .apply))
  }

  // MARK: Service

  /// Removes all expired entries.
  ///
  /// - Returns: The number of removed entries.
  /// - Throws: The errors of the store. `CancellationError`.
  @discardableResult
  public func purgeExpired() async throws -> Int {
    try await entries.purgeExpired()
  }

  /// Purges expired entries after each interval, until the graceful shutdown or the cancellation of the task.
  ///
  /// It leaves the store open.
  public func run() async throws {
    await cancelWhenGracefulShutdown { [self] in
      while !Task.isCancelled {
        do {
          try await clock.sleep(for: purgeInterval)
          try await purgeExpired()
        } catch is CancellationError {
          return
        } catch {
          onPurgeFailure(error)
        }
      }
    }
  }

  /// Does nothing, because the store belongs to the code that opened it.
  public func shutdown() async throws {}

  // MARK: Coding

  /// Returns the key in the view.
  ///
  /// - Throws: `StoreError` with `invalidKey`.
  private func storeKey(_ key: String, for operation: StoreOperation) throws -> StoreKey {
    let information = entries.base.information
    guard (1...information.maximumKeyLength).contains(key.utf8.count) else {
      throw StoreError(
        .invalidKey, during: operation, store: information.name,
        message: "the key of a persisted value must have 1 to \(information.maximumKeyLength) bytes in UTF-8, not "
          + "\(key.utf8.count); hash keys that can be longer")
    }
    return StoreKey(key)
  }

  private func coder<Object: Codable & Sendable>(_ type: Object.Type) -> ValueCoder<Object> {
    ValueCoder(codec: .json(type), store: entries.information.name)
  }

  private func object<Object: Codable & Sendable>(of bytes: [UInt8], forKey key: StoreKey) throws -> Object {
    do {
      return try coder(Object.self).value(of: bytes, forKey: key, during: .value)
    } catch StoreError.Code.undecodable {
      throw PersistError.invalidConversion
    } catch StoreError.Code.corrupted where isJSON(bytes) {
      // A type that refuses a string, such as `UUID`, says that it is corrupted.
      throw PersistError.invalidConversion
    }
  }

  private func isJSON(_ bytes: [UInt8]) -> Bool {
    var scanner = JSONScanner(bytes[...])
    do {
      _ = try scanner.value()
      try scanner.expectEnd()
      return true
    } catch {
      return false
    }
  }
}

extension StorePersistDriver: CustomStringConvertible {
  /// The description of the store, in brackets.
  public var description: String { "StorePersistDriver[\(entries.base.base)]" }
}

extension TimeToLive {
  /// Creates the time to live that an `expires` of Hummingbird means.
  fileprivate init(_ expires: Duration?) {
    self = expires.map { $0 > .zero ? .after($0) : .until(.distantPast) } ?? .never
  }
}
#endif
