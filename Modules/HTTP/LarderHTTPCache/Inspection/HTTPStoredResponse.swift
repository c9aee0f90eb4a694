#if HTTPCache
public import Foundation
public import HTTPCachingRules
public import HTTPTypes
public import Larder

/// A response in the store of an HTTP cache, as an ``HTTPCacheInspector`` found it.
public struct HTTPStoredResponse: Sendable {
  /// The use that a cache can make of a stored response without the origin.
  public enum Freshness: String, Sendable, Hashable, CaseIterable {
    /// The response is younger than its freshness lifetime, and is reused.
    case fresh
    /// The response is older than its freshness lifetime.
    case stale
    /// The response has `no-cache`, and is validated at any age.
    case validated
  }

  /// The key of the record in the store.
  public let key: StoreKey

  /// The whole URL that was forwarded.
  public let url: String

  /// The partition that the response belongs to, or an empty array if the cache has no partitions.
  public let partition: [UInt8]

  /// The status code.
  ///
  /// A stored part of a representation has 200.
  public let status: Int

  /// The fields of the head that are stored, in the order they came.
  public let fields: HTTPFields

  /// The sets of request fields, of which a request must match one to get this response.
  ///
  /// A set without fields matches every request.
  public let selectingFields: [[SelectingFields.Field]]

  /// The length in bytes of the whole representation, or `nil` if it is not known.
  public let length: Int64?

  /// The number of bytes of the representation that are stored.
  public let storedLength: Int64

  /// A Boolean value that indicates whether every byte of the representation is stored.
  public let isComplete: Bool

  /// The number of bytes of the keys and values that the response takes up in the store.
  public let footprint: Int

  /// The time when the response was received, or the last one that freshened it.
  public let received: Date

  /// The time when the response got its place in the order of use, which a use renews at most every ten minutes.
  public let used: Date

  /// The age in seconds at the time of the inspection (RFC 9111, section 4.2.3).
  public let age: Double

  /// The freshness lifetime in seconds (RFC 9111, section 4.2.1), negative if `Expires` is before `Date`.
  public let lifetime: Double

  /// The use that a cache can make of the response at the time of the inspection.
  public let freshness: Freshness

  /// The time when the response becomes or became stale.
  public let freshUntil: Date

  /// The data that ``HTTPCacheConfiguration/willStore`` added.
  public let userData: [UInt8]

  init(_ entry: StoredEntry, layout: StorageLayout, rules: HTTPCacheRules, now: Date) {
    let response = entry.response
    let state = rules.freshness(of: response, at: now)
    key = entry.key
    (url, partition, status) = (response.url, response.partition, response.status)
    (fields, userData) = (response.fields, response.userData)
    selectingFields = response.selecting.sets
    storedLength = response.ranges.reduce(0) { $0 + Int64($1.count) }
    (length, isComplete) = (response.length, response.isComplete)
    footprint =
      key.count + entry.bytes.count + layout.useKey(of: key, at: entry.place).count
      + entry.use.bytes(layout: layout).count
      + entry.bodies.reduce(0) { $0 + layout.footprint(ofBody: $1.length) }
    (received, used) = (response.responseTime, Date(microsecondsSince1970: entry.used))
    (age, lifetime) = (state.age, state.lifetime)
    freshness = state.requiresValidation ? .validated : state.isFresh ? .fresh : .stale
    freshUntil = now.addingTimeInterval(state.lifetime - state.age)
  }
}
#endif
