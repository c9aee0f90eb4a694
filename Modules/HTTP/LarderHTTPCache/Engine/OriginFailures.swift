#if HTTPCache
import HTTPCachingRules

/// The failures of origins that requests must know, so a stale response is served immediately while an origin fails.
///
/// Failures are remembered for URLs. If requests for two URLs of an origin have failed for some time and the origin has
/// answered no request since, the origin as a whole counts as failing. While a URL or an origin fails, one request at a
/// time probes it. The delay between probes doubles from ``firstDelay`` to ``longestDelay``. A failure that no request has
/// confirmed for ``longestDelay`` after its probe was due no longer counts, because the origin may work again.
///
/// This is plain state without a clock and without I/O. It has at most ``highestCount`` URLs and as many origins.
struct OriginFailures: Sendable {
  /// The delay after the first failure.
  static let firstDelay: Duration = .seconds(1)

  /// The longest delay between two probes.
  static let longestDelay: Duration = .seconds(30)

  /// The time after which a probe without a response no longer holds up the next one.
  static let longestProbe: Duration = .seconds(60)

  /// The time without a response after which failures of two URLs are a failure of their origin.
  static let shortestOutage: Duration = .seconds(1)

  /// The maximum number of URLs, and of origins.
  ///
  /// Beyond it, the one whose last failure is the oldest is forgotten.
  static let highestCount = 1_024

  private struct Failure: Sendable {
    var kind: OriginFailure
    /// The number of failures of probes, and the first failure.
    var count = 0
    var last: Duration
    var nextProbe: Duration
    /// The time when the current probe no longer counts; `nil` if there isn't one.
    var probeEnd: Duration?

    func mayProbe(at now: Duration) -> Bool { probeEnd.map { now >= $0 } ?? (now >= nextProbe) }

    /// A Boolean value that indicates whether the failure says nothing about the origin any more.
    func isOutdated(at now: Duration) -> Bool { now >= max(nextProbe, probeEnd ?? .zero) + OriginFailures.longestDelay }
  }

  /// An origin that has answered no request since a failure.
  private struct SilentOrigin: Sendable {
    let firstURL: Int
    let since: Duration
    /// The failure, once there is enough evidence.
    var failure: Failure?
  }

  private let jitter: @Sendable () -> Double
  /// The failures by the hash values of their URLs.
  ///
  /// The length of a URL has no bound. Hashing is seeded at random in each process.
  private var urls: [Int: Failure] = [:]
  private var origins: [Int: SilentOrigin] = [:]

  /// Creates an empty memory.
  ///
  /// - Parameter jitter: A closure that returns the factor of a delay. Defaults to a random one from 0.75 to 1, so
  ///   several processes don't probe in step.
  init(jitter: @escaping @Sendable () -> Double = { Double.random(in: 0.75...1) }) {
    self.jitter = jitter
  }

  /// A Boolean value that indicates whether nothing has failed.
  var isEmpty: Bool { urls.isEmpty && origins.isEmpty }

  /// The number of URLs and of origins that are remembered.
  var counts: (urls: Int, origins: Int) { (urls.count, origins.count) }

  /// Returns the kind of failure that a request for a URL must expect, or `nil` if none.
  func kind(of url: String, at now: Duration) -> OriginFailure? {
    guard !isEmpty else { return nil }
    if let failure = origins[Self.origin(of: url)]?.failure, !failure.isOutdated(at: now) { return .disconnected }
    guard let failure = urls[url.hashValue], !failure.isOutdated(at: now) else { return nil }
    return failure.kind
  }

  /// Claims the next probe of a failing URL.
  ///
  /// - Returns: A Boolean value that indicates whether the caller must probe, and report the outcome. If not, a probe
  ///   is under way or not yet due.
  mutating func beginProbe(of url: String, at now: Duration) -> Bool {
    change(url) { failure in
      guard failure.mayProbe(at: now) else { return false }
      failure.probeEnd = now + Self.longestProbe
      return true
    } ?? false
  }

  /// Gives a claim back without an outcome.
  mutating func cancelProbe(of url: String) {
    change(url) { $0.probeEnd = nil }
  }

  /// Records that there was no response for so long that a stale response is served.
  ///
  /// - Returns: A Boolean value that indicates whether the request becomes the probe. It must report its outcome.
  mutating func noteLate(_ url: String, at now: Duration) -> Bool {
    let isKnown = kind(of: url, at: now) != nil
    noteFailure(.disconnected, of: url, wasProbe: false, at: now)
    if isKnown { return beginProbe(of: url, at: now) }
    change(url) { $0.probeEnd = now + Self.longestProbe }
    return true
  }

  /// Records that a request has failed.
  ///
  /// - Parameters:
  ///   - kind: The kind of failure.
  ///   - url: The URL.
  ///   - wasProbe: A Boolean value that indicates whether the request was a probe. Other requests don't change the time
  ///     of the next probe.
  ///   - now: The current time.
  mutating func noteFailure(_ kind: OriginFailure, of url: String, wasProbe: Bool, at now: Duration) {
    let (key, originKey) = (url.hashValue, Self.origin(of: url))
    if wasProbe { urls[key]?.probeEnd = nil }
    switch kind {
    case .errorResponse: origins[originKey] = nil
    case .disconnected:
      var origin = origins[originKey] ?? SilentOrigin(firstURL: key, since: now)
      // A silence in which nothing was asked is no evidence.
      if origin.failure?.isOutdated(at: now) ?? (now >= origin.since + Self.longestDelay) {
        origin = SilentOrigin(firstURL: key, since: now)
      }
      let wasFailing = origin.failure != nil
      if wasFailing || (origin.firstURL != key && now - origin.since >= Self.shortestOutage) {
        origin.failure = next(origin.failure, kind, wasProbe, now)
      }
      Self.insert(origin, originKey, into: &origins) { $0.failure?.last ?? $0.since }
      // The origin is remembered in place of each of its URLs.
      if wasFailing { return }
    }
    Self.insert(next(urls[key], kind, wasProbe, now), key, into: &urls, \.last)
  }

  /// Records that an origin has answered a request, with whatever response.
  mutating func noteResponse(from url: String) {
    guard !origins.isEmpty else { return }
    origins[Self.origin(of: url)] = nil
  }

  /// Records that an origin has answered a request for a URL as a whole, and without an error.
  mutating func noteSuccess(of url: String) {
    noteResponse(from: url)
    if !urls.isEmpty { urls[url.hashValue] = nil }
  }

  /// Returns a failure after one more.
  private func next(_ failure: Failure?, _ kind: OriginFailure, _ wasProbe: Bool, _ now: Duration) -> Failure {
    var next = failure ?? Failure(kind: kind, last: now, nextProbe: now)
    (next.kind, next.last) = (kind, now)
    if wasProbe { next.probeEnd = nil }
    guard wasProbe || failure == nil else { return next }
    next.count += 1
    let delay = min(Self.longestDelay, Self.firstDelay * (1 << min(next.count - 1, 10)))
    next.nextProbe = now + delay * jitter()
    return next
  }

  /// Changes the failure that decides on a URL, if there is one.
  @discardableResult
  private mutating func change<Result>(_ url: String, _ body: (inout Failure) -> Result) -> Result? {
    let (key, originKey) = (url.hashValue, Self.origin(of: url))
    if var failure = origins[originKey]?.failure {
      defer { origins[originKey]?.failure = failure }
      return body(&failure)
    }
    guard var failure = urls[key] else { return nil }
    defer { urls[key] = failure }
    return body(&failure)
  }

  /// Sets a value, in place of the oldest one if there are too many.
  private static func insert<Value>(
    _ value: Value, _ key: Int, into values: inout [Int: Value], _ time: (Value) -> Duration
  ) {
    if values[key] == nil, values.count >= highestCount,
      let oldest = values.min(by: { time($0.value) < time($1.value) })
    {
      values[oldest.key] = nil
    }
    values[key] = value
  }

  /// Returns the hash value of the scheme and the authority of a URL, as `RequestURL` writes it.
  private static func origin(of url: String) -> Int {
    let bytes = url.utf8
    let slashes = bytes.indices.lazy.filter { bytes[$0] == UInt8(ascii: "/") }.prefix(3)
    return Substring(bytes[..<(slashes.dropFirst(2).first ?? bytes.endIndex)]).hashValue
  }
}
#endif
