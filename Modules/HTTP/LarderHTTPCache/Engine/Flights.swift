#if HTTPCache
/// The fetches that requests for the same URL may wait for, instead of being forwarded themselves.
///
/// The first request that needs the origin leads a flight. Others join it, and decide when the head is there whether the
/// response answers them. As soon as one of them may not use it, the flight ends, and no request waits for this URL
/// during a cool-down, because its responses probably differ from one request to the next.
struct Flights<Fetch: Sendable & AnyObject>: Sendable {
  /// The key of a flight.
  struct Key: Hashable, Sendable {
    let url: String
    let partition: [UInt8]
  }

  /// The role of a request that needs the origin.
  enum Admission: Sendable {
    /// The request leads a new flight with this fetch.
    case lead(Fetch)
    /// The request waits for the fetch of another request.
    case join(Fetch)
    /// The request is forwarded, and no other waits for it.
    case alone
  }

  /// The maximum number of URLs in a cool-down.
  ///
  /// Beyond it, the one that ends first is forgotten.
  static var highestCoolDownCount: Int { 1_024 }

  private let coolDown: Duration
  private var flights: [Key: Fetch] = [:]
  private var coolDowns: [Key: Duration] = [:]

  /// Creates an empty table.
  ///
  /// - Parameter coolDown: The time that no request waits for a URL whose response could not be shared.
  init(coolDown: Duration) {
    self.coolDown = coolDown
  }

  /// The number of flights.
  var count: Int { flights.count }

  /// The number of URLs in a cool-down, including those whose cool-down has passed unnoticed.
  var coolDownCount: Int { coolDowns.count }

  /// Decides what a request that may wait does.
  ///
  /// - Parameters:
  ///   - key: The key of the request.
  ///   - now: The current time.
  ///   - makeFetch: A closure that creates the fetch of a new flight.
  mutating func admit(_ key: Key, at now: Duration, makeFetch: () -> Fetch) -> Admission {
    if let fetch = flights[key] { return .join(fetch) }
    if let end = coolDowns[key] {
      if now < end { return .alone }
      coolDowns[key] = nil
    }
    let fetch = makeFetch()
    flights[key] = fetch
    return .lead(fetch)
  }

  /// Ends a flight, so no further request joins it.
  ///
  /// A later flight for the same key continues.
  mutating func end(_ key: Key, _ fetch: Fetch) {
    if flights[key] === fetch { flights[key] = nil }
  }

  /// Ends a flight whose response could not be shared, and begins the cool-down of its key.
  mutating func refuse(_ key: Key, _ fetch: Fetch, at now: Duration) {
    end(key, fetch)
    if coolDowns[key] == nil, coolDowns.count >= Self.highestCoolDownCount {
      coolDowns = coolDowns.filter { now < $0.value }
      if coolDowns.count >= Self.highestCoolDownCount, let first = coolDowns.min(by: { $0.value < $1.value }) {
        coolDowns[first.key] = nil
      }
    }
    coolDowns[key] = now + coolDown
  }

  /// Ends the flights of the URLs that were invalidated, because their responses may be older than the invalidation.
  mutating func invalidate(where isInvalidated: (String) -> Bool) {
    flights = flights.filter { !isInvalidated($0.key.url) }
  }
}
#endif
