#if HTTPCache
import Foundation
import HTTPTypes

@testable import HTTPCachingRules

/// The rules and the oracle side by side: each request and each reply is given to both, and every difference is an error.
struct Duel {
  /// A difference between the rules and the oracle.
  struct Difference: Error, CustomStringConvertible {
    var description: String
  }

  private(set) var cache: RulesCache
  private(set) var oracle: Oracle

  /// The number of requests that a stored response answered without the origin.
  private(set) var hits = 0

  init(_ mode: HTTPCacheMode) {
    var rules = HTTPCacheRules(mode: mode)
    rules.name = nil
    cache = RulesCache(rules)
    oracle = Oracle(isShared: mode == .shared)
  }

  /// Sends a request.
  ///
  /// - Parameters:
  ///   - ask: The request.
  ///   - now: The time in seconds since 1970.
  ///   - delay: The seconds from forwarding it to the origin's reply.
  ///   - origin: The origin: it gets the tags that it is asked about, and whether it is asked by date, and returns `nil`
  ///     if it can't be reached.
  mutating func request(
    _ ask: Oracle.Ask, at now: Int, delay: Int = 0, origin: (Set<Int>, Bool) -> Oracle.Reply?
  ) throws {
    let request = Self.request(ask)
    let fate = oracle.fate(ask, now)
    let policy = HTTPCachePolicy(rawValue: ask.policy) ?? .standard
    switch try cache.begin(request, policy: policy, at: Self.date(now)) {
    case .answer(let response) where response.head.status == .gatewayTimeout:
      try expect(fate == .refuse, "refused", fate)
    case .answer(let response):
      hits += 1
      let reuse = Oracle.Fate.reuse(version: try Self.version(response), refreshes: response.refresh != nil)
      try expect(fate == reuse, "\(reuse)", fate)
      let isKnown = response.head.status == .notModified
      try expect(!isKnown || ask.knownVersion != nil, "304 without a condition", fate)
      if let refresh = response.refresh {
        var plain = Oracle.Ask(url: ask.url, method: ask.method, policy: ask.policy, language: ask.language)
        (plain.noStore, plain.hasAuthorization) = (ask.noStore, ask.hasAuthorization)
        (plain.maxStale, plain.staleIfError) = (ask.maxStale, ask.staleIfError)
        (plain.maxAge, plain.minFresh) = (ask.maxAge, ask.minFresh)
        try forward(refresh, plain, at: now, delay: delay, origin: origin)
      }
    case .forward(let exchange):
      guard case .forward = fate else { throw Difference(description: "forwarded, but the oracle says \(fate)") }
      let offered = Self.tags(exchange.forwarded)
      let expected = Self.offer(fate, ask)
      try expect(offered == expected.tags, "offers \(offered)", fate)
      let offersDate = exchange.forwarded.headerFields.contains(.ifModifiedSince)
      try expect(offersDate == expected.date, "offers a date: \(offersDate)", fate)
      try forward(exchange, ask, at: now, delay: delay, origin: origin)
    }
  }

  private mutating func forward(
    _ exchange: Exchange, _ ask: Oracle.Ask, at now: Int, delay: Int, origin: (Set<Int>, Bool) -> Oracle.Reply?
  ) throws {
    let tags = Self.tags(exchange.forwarded)
    let date = exchange.forwarded.headerFields.contains(.ifModifiedSince)
    var own: Set<Int> = []
    if case .validate(let positions) = exchange.purpose {
      own = Set(positions.compactMap { exchange.stored[$0].facts.validator.entityTag.map(Self.version) })
    }
    let later = now + delay
    guard let reply = origin(tags, date) else {
      let end = oracle.unreachable(ask, later)
      let response = try cache.fail(exchange, at: Self.date(later))
      try compare(response, end)
      return
    }
    let end = oracle.answered(ask, offered: own, offersDate: date, by: reply, sent: now, received: later)
    let head = Self.head(reply, to: ask, received: later)
    let hasBody = reply.status != 304 && ask.method != "HEAD"
    let step = try cache.finish(
      exchange, with: head, body: hasBody ? Array("v\(reply.version)".utf8) : [], sent: Self.date(now),
      received: Self.date(later))
    switch step {
    case .forward(let again):
      try expect(end == .error, "forwards again", end)
      try forward(again, ask, at: later, delay: 0) { _, _ in Oracle.Reply(status: 200, version: 1_000 + reply.version) }
    case .answer(let response):
      if end == .origin {
        try expect(response.head.status.code == reply.status, "answers \(response.head.status)", end)
        try expect(response.body.isEmpty != hasBody, "has another body", end)
      } else {
        try compare(response, end)
      }
    }
  }

  private func compare(_ response: RulesCache.Response?, _ end: Oracle.End) throws {
    guard let response else { return try expect(end == .error, "the error", end) }
    switch response.head.status.code {
    case 504 where response.body.isEmpty && response.head.headerFields[Self.versionField] == nil:
      try expect(end == .gatewayTimeout, "504", end)
    case 304: try expect(end == .notModified, "304", end)
    default: try expect(end == .stored(version: try Self.version(response)), "\(response.head)", end)
    }
  }

  private func expect(_ isTrue: Bool, _ rules: String, _ oracle: some Any) throws {
    if !isTrue { throw Difference(description: "the rules: \(rules); the oracle: \(oracle)") }
  }

  private static func offer(_ fate: Oracle.Fate, _ ask: Oracle.Ask) -> (tags: Set<Int>, date: Bool) {
    guard case .forward(let tags, let date) = fate else { return ([], false) }
    return (tags.union(ask.knownVersion.map { [$0] } ?? []), date)
  }
}

/// The writing of requests and replies as fields.
extension Duel {
  static let versionField = HTTPField.Name.named("Version")
  static let languageField = HTTPField.Name.named("Language")

  static func date(_ seconds: Int) -> Date { Date(timeIntervalSince1970: Double(seconds)) }

  /// Returns a date as the C library writes it.
  static func text(_ seconds: Int) -> String {
    var time = time_t(seconds)
    var parts = tm()
    gmtime_r(&time, &parts)
    var buffer = [CChar](repeating: 0, count: 40)
    let count = strftime(&buffer, buffer.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
    return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  static func version(_ response: RulesCache.Response) throws -> Int {
    let text = response.head.headerFields[versionField] ?? ""
    guard let version = Int(text) else {
      throw Difference(description: "an answer without a version: \(response.head)")
    }
    if !response.body.isEmpty, response.body != Array("v\(version)".utf8) {
      throw Difference(description: "the body of another version")
    }
    return version
  }

  static func version(_ tag: EntityTag) -> Int { Int(String(decoding: tag.opaque, as: UTF8.self)) ?? -1 }

  static func tags(_ request: HTTPRequest) -> Set<Int> {
    var list = EntityTagList()
    for field in request.headerFields[fields: .ifNoneMatch] { list.add(field.bytes) }
    return Set(list.tags.map(version))
  }

  static func request(_ ask: Oracle.Ask) -> HTTPRequest {
    var fields = HTTPFields()
    var directives: [String] = []
    if ask.noCache { directives.append("no-cache") }
    if ask.noStore { directives.append("no-store") }
    if ask.onlyIfCached { directives.append("only-if-cached") }
    if let seconds = ask.maxAge { directives.append("max-age=\(seconds)") }
    if let seconds = ask.minFresh { directives.append("min-fresh=\(seconds)") }
    if let seconds = ask.maxStale { directives.append(seconds == Int.max ? "max-stale" : "max-stale=\(seconds)") }
    if let seconds = ask.staleIfError { directives.append("stale-if-error=\(seconds)") }
    if !directives.isEmpty { fields[.cacheControl] = directives.joined(separator: ", ") }
    if ask.pragma { fields[HTTPField.Name.named("Pragma")] = "no-cache" }
    if ask.hasAuthorization { fields[.authorization] = "Basic eA==" }
    if ask.language > 0 { fields[languageField] = "l\(ask.language)" }
    if let version = ask.knownVersion { fields[.ifNoneMatch] = "\"\(version)\"" }
    return HTTPRequest(
      method: .named(ask.method), scheme: "https", authority: "example.com", path: "/\(ask.url)", headerFields: fields)
  }

  static func head(_ reply: Oracle.Reply, to ask: Oracle.Ask, received: Int) -> HTTPResponse {
    var fields = HTTPFields()
    let date = received - reply.dateBeforeReceipt
    fields[.date] = text(date)
    if reply.age > 0 { fields[.age] = "\(reply.age)" }
    if let seconds = reply.expiresAfterDate { fields[.expires] = text(date + seconds) }
    var directives: [String] = []
    for (isThere, name) in [
      (reply.noCache, "no-cache"), (reply.noStore, "no-store"), (reply.isPrivate, "private"),
      (reply.isPublic, "public"), (reply.mustRevalidate, "must-revalidate"),
      (reply.proxyRevalidate, "proxy-revalidate"), (reply.mustUnderstand, "must-understand"),
      (reply.isImmutable, "immutable"),
    ] where isThere { directives.append(name) }
    for (seconds, name) in [
      (reply.maxAge, "max-age"), (reply.sharedMaxAge, "s-maxage"),
      (reply.staleWhileRevalidate, "stale-while-revalidate"), (reply.staleIfError, "stale-if-error"),
    ] { if let seconds { directives.append("\(name)=\(seconds)") } }
    if !directives.isEmpty { fields[.cacheControl] = directives.joined(separator: ", ") }
    switch reply.tag {
    case .none: break
    case .strong: fields[.eTag] = "\"\(reply.version)\""
    case .weak: fields[.eTag] = "W/\"\(reply.version)\""
    }
    if reply.hasModified { fields[.lastModified] = text(Oracle.modification(of: reply.version)) }
    if reply.varies { fields[.vary] = "Language" }
    if reply.hasCookie { fields[.setCookie] = "a=b" }
    if let url = reply.invalidates { fields[.location] = "/\(url)" }
    if reply.status != 304 && ask.method != "HEAD" { fields[versionField] = "\(reply.version)" }
    return HTTPResponse(status: .init(code: reply.status), headerFields: fields)
  }
}
#endif
