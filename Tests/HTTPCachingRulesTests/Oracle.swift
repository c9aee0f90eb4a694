#if HTTPCache
import Foundation

/// A second statement of the rules of RFC 9111, for comparison.
///
/// It is written from the text of the RFC, shares no code with the module, and knows no fields: it works on requests and
/// replies whose meaning is given. Times are whole seconds. It is slow and long-winded on purpose.
struct Oracle {
  /// A request.
  struct Ask {
    var url = 0
    var method = "GET"
    var policy = "standard"
    var noCache = false
    var noStore = false
    var onlyIfCached = false
    var pragma = false
    var maxAge: Int?
    var minFresh: Int?
    var maxStale: Int?  // Int.max if it has no value
    var staleIfError: Int?
    var hasAuthorization = false
    var language = 0  // the field that Vary names; 0 if it is missing
    var knownVersion: Int?  // the client's If-None-Match
  }

  /// A response of the origin.
  struct Reply {
    enum Tag { case none, strong, weak }
    var status = 200
    var version = 1
    var tag = Tag.none
    var hasModified = false
    var maxAge: Int?
    var sharedMaxAge: Int?
    var expiresAfterDate: Int?
    var noCache = false
    var noStore = false
    var isPrivate = false
    var isPublic = false
    var mustRevalidate = false
    var proxyRevalidate = false
    var mustUnderstand = false
    var isImmutable = false
    var staleWhileRevalidate: Int?
    var staleIfError: Int?
    var age = 0
    var dateBeforeReceipt = 0
    var varies = false
    var hasCookie = false
    var invalidates: Int?  // the URL in Location
  }

  /// A stored response.
  struct Record {
    var url: Int
    var reply: Reply
    var requestTime: Int
    var responseTime: Int
    var languages: [Int]

    var date: Int { responseTime - reply.dateBeforeReceipt }
  }

  /// The fate of a request.
  enum Fate: Equatable {
    case reuse(version: Int, refreshes: Bool)
    case forward(offeredTags: Set<Int>, offersDate: Bool)
    case refuse
  }

  /// The client's view of the end of a request that was forwarded.
  enum End: Equatable {
    case origin
    case stored(version: Int)
    case notModified
    case gatewayTimeout
    case error
  }

  /// The time of the last modification of a version.
  static func modification(of version: Int) -> Int { 1_000_000_000 + version * 1_000 }

  var isShared: Bool
  var records: [Record] = []

  init(isShared: Bool) {
    self.isShared = isShared
  }

  // MARK: Section 4.2

  func lifetime(_ record: Record) -> Double {
    if isShared, let seconds = record.reply.sharedMaxAge { return Double(seconds) }
    if let seconds = record.reply.maxAge { return Double(seconds) }
    if let seconds = record.reply.expiresAfterDate { return Double(seconds) }
    // Heuristic, 4.2.2: only with a status that allows it, or "public".
    guard allowsHeuristics(record.reply), record.reply.hasModified else { return 0 }
    let since = Double(record.date - Oracle.modification(of: record.reply.version))
    return since <= 0 ? 0 : min(since / 10, 86_400)
  }

  func allowsHeuristics(_ reply: Reply) -> Bool {
    [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501].contains(reply.status) || reply.isPublic
      || (!isShared && reply.isPrivate)
  }

  func age(_ record: Record, _ now: Int) -> Double {
    let apparentAge = max(0, record.responseTime - record.date)
    let responseDelay = record.responseTime - record.requestTime
    let correctedAgeValue = record.reply.age + responseDelay
    let correctedInitialAge = max(apparentAge, correctedAgeValue)
    let residentTime = now - record.responseTime
    return Double(correctedInitialAge + residentTime)
  }

  func isFresh(_ record: Record, _ now: Int) -> Bool { lifetime(record) > age(record, now) }

  func staleness(_ record: Record, _ now: Int) -> Double { max(0, age(record, now) - lifetime(record)) }

  /// 4.2.4: "must not generate a stale response if it is prohibited by an explicit in-protocol directive".
  func prohibitsStale(_ reply: Reply) -> Bool {
    if reply.noCache || reply.mustRevalidate { return true }
    return isShared && (reply.proxyRevalidate || reply.sharedMaxAge != nil)
  }

  // MARK: Section 4

  /// 4.1: the records that the request selects, the most recent one first.
  func selected(_ ask: Ask) -> [Int] {
    records.indices
      .filter { records[$0].url == ask.url }
      .filter { !records[$0].reply.varies || records[$0].languages.contains(ask.language) }
      .sorted { (records[$0].date, records[$0].responseTime) > (records[$1].date, records[$1].responseTime) }
  }

  /// A Boolean value that indicates whether two records are equally recent, so either may be used.
  ///
  /// One 304 that updates both makes them so.
  func isUndecided(_ ask: Ask) -> Bool {
    let recent = selected(ask).prefix(2).map { records[$0] }
    return recent.count == 2 && recent[0].date == recent[1].date && recent[0].responseTime == recent[1].responseTime
  }

  /// 5.2.1: whether the request's own limits allow the age.
  func withinLimits(_ ask: Ask, _ record: Record, _ now: Int) -> Bool {
    if let limit = ask.maxAge {
      let isExempt = record.reply.isImmutable && isFresh(record, now)  // RFC 8246
      if !isExempt && (limit == 0 || age(record, now) > Double(limit)) { return false }
    }
    if let rest = ask.minFresh, lifetime(record) - age(record, now) < Double(rest) { return false }
    return true
  }

  /// 5.2.1.1: with max-age, "unless the max-stale request directive is also present, the client does not wish to receive
  /// a stale response".
  func wishesStale(_ ask: Ask) -> Bool { ask.maxAge == nil || ask.maxStale != nil }

  /// A Boolean value that indicates whether the request insists on the origin.
  func insists(_ ask: Ask) -> Bool { ask.noCache || (ask.pragma && !hasDirectives(ask)) }

  private func hasDirectives(_ ask: Ask) -> Bool {
    ask.noCache || ask.noStore || ask.onlyIfCached || ask.maxAge != nil || ask.minFresh != nil || ask.maxStale != nil
      || ask.staleIfError != nil
  }

  func fate(_ ask: Ask, _ now: Int) -> Fate {
    let mayForward = ask.policy != "cacheOnly" && !ask.onlyIfCached
    let plain = Fate.forward(offeredTags: [], offersDate: false)
    guard ask.method == "GET" || ask.method == "HEAD", ask.policy != "reload", ask.policy != "reloadEndToEnd" else {
      return mayForward ? plain : .refuse
    }
    guard let first = selected(ask).first else {
      guard mayForward else { return .refuse }
      // 4.1: tags of responses for other values. The client's own condition is left alone.
      guard ask.knownVersion == nil else { return plain }
      let others = records.filter { $0.url == ask.url && $0.reply.tag == .strong }
      return .forward(offeredTags: Set(others.map(\.reply.version)), offersDate: false)
    }
    let record = records[first]
    let anyAge = ask.policy == "preferCache" || ask.policy == "cacheOnly"
    var reuses = false
    var refreshes = false
    if !record.reply.noCache && !insists(ask) && ask.policy != "revalidate"
      && (anyAge || withinLimits(ask, record, now))
    {
      if isFresh(record, now) {
        reuses = true
      } else if !prohibitsStale(record.reply) {
        let late = staleness(record, now)
        if anyAge {
          reuses = true
        } else if let window = record.reply.staleWhileRevalidate, late <= Double(window), wishesStale(ask) {
          reuses = true
          refreshes = !ask.onlyIfCached
        } else if let limit = ask.maxStale, limit == Int.max || late <= Double(limit) {
          reuses = true
        }
      }
    }
    if reuses { return .reuse(version: record.reply.version, refreshes: refreshes) }
    guard mayForward else { return .refuse }
    // 4.3.1: the tags of all that could be reused, and the date of the most recent one.
    let tags = selected(ask).map { records[$0].reply }.filter { $0.tag != .none }.map(\.version)
    if tags.isEmpty, ask.knownVersion != nil || !record.reply.hasModified { return plain }
    return .forward(offeredTags: Set(tags), offersDate: record.reply.hasModified)
  }

  // MARK: Section 3

  func mayStore(_ reply: Reply, for ask: Ask?, received: Record) -> Bool {
    if reply.status < 200 || [304, 407, 412, 416, 417].contains(reply.status) { return false }
    if reply.mustUnderstand {
      guard reply.status != 599, reply.status != 299, reply.status != 499 else { return false }
    } else if reply.noStore {
      return false
    }
    if ask?.noStore == true { return false }
    if isShared && reply.isPrivate { return false }
    if isShared && ask?.hasAuthorization == true {
      guard reply.isPublic || reply.mustRevalidate || reply.sharedMaxAge != nil else { return false }
    }
    let isExplicit =
      reply.maxAge != nil || reply.expiresAfterDate != nil || (isShared && reply.sharedMaxAge != nil)
    // Not required by the RFC: a shared cache keeps a cookie only if the origin says that the response is for all.
    if isShared && reply.hasCookie && !reply.isPublic && reply.sharedMaxAge == nil { return false }
    guard isExplicit || allowsHeuristics(reply) else { return false }
    // Not required by the RFC: a response that no request could ever reuse isn't stored.
    if reply.tag != .none || reply.hasModified { return true }
    if reply.noCache { return false }
    if isFresh(received, received.responseTime) { return true }
    return !prohibitsStale(reply) && ((reply.staleWhileRevalidate ?? 0) > 0 || (reply.staleIfError ?? 0) > 0)
  }
}
#endif
