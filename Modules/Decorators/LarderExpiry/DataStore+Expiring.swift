public import Larder

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension DataStore {
  /// Lets the entries of the store expire; see ``ExpiringStore``.
  ///
  /// - Parameters:
  ///   - expiration: When an entry expires where its write does not say; never unless given.
  ///   - purgesOnWrite: Whether writes remove some of what has expired; `true` unless said.
  ///   - now: Tells the time; that of the system unless given. It must not call the store.
  public func expiring<Kept: Sendable>(
    _ expiration: Expiration = .never, purgesOnWrite: Bool = true, now: @escaping @Sendable () -> Date = { Date.now }
  ) -> ExpiringStore<Self, Kept> where Value == Expiring<Kept> {
    ExpiringStore(self, expiration: expiration, purgesOnWrite: purgesOnWrite, now: now)
  }

  /// Lets the entries of the store expire, and removes first what has expired; see ``ExpiringStore``.
  ///
  /// - Parameters:
  ///   - expiration: When an entry expires where its write does not say; never unless given.
  ///   - purgesOnWrite: Whether writes remove some of what has expired; `true` unless said.
  ///   - limit: The most entries to remove first; `Int.max` for all that have expired.
  ///   - now: Tells the time; that of the system unless given. It must not call the store.
  /// - Throws: As ``ExpiringStore/purgeExpired(limit:)``. This store stays open.
  public func expiring<Kept: Sendable>(
    _ expiration: Expiration = .never, purgesOnWrite: Bool = true, purgingUpTo limit: Int,
    now: @escaping @Sendable () -> Date = { Date.now }
  ) async throws -> ExpiringStore<Self, Kept> where Value == Expiring<Kept> {
    try await ExpiringStore(
      self, expiration: expiration, purgesOnWrite: purgesOnWrite, purgingUpTo: limit, now: now)
  }
}
