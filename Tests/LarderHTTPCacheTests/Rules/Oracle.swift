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

  /// 5.2.1: whether the request's own limits allow the age.
  func withinLimits(_ ask: Ask, _ record: Record, _ now: Int) -> Bool {
    if let limit = ask.maxAge {
      let isExempt = record.reply.isImmutable && isFresh(record, now)  // RFC 8246
      if !isExempt && (limit == 0 || age(record, now) > Double(limit)) { return false }
    }
    if let rest = ask.minFresh, lifetime(record) - age(record, now) < Double(rest) { return false }
    return true
  }

  /// Whether the request insists on the origin.
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
        } else if let window = record.reply.staleWhileRevalidate, late <= Double(window) {
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
    if isShared && reply.hasCookie && !isExplicit { return false }
    guard isExplicit || allowsHeuristics(reply) else { return false }
    // Not required by the RFC: a response that no request could ever reuse isn't stored.
    if reply.tag != .none || reply.hasModified { return true }
    if reply.noCache { return false }
    if isFresh(received, received.responseTime) { return true }
    return !prohibitsStale(reply) && ((reply.staleWhileRevalidate ?? 0) > 0 || (reply.staleIfError ?? 0) > 0)
  }

  // MARK: Sections 4.3.3 to 4.4

  /// The origin answers a request that was forwarded with these tags and this date.
  mutating func answered(
    _ ask: Ask, offered: Set<Int>, offersDate: Bool, by reply: Reply, sent: Int, received: Int
  ) -> End {
    let new = Record(
      url: ask.url, reply: reply, requestTime: sent, responseTime: received, languages: [ask.language])
    guard ask.method == "GET" || ask.method == "HEAD" else {
      if (200..<400).contains(reply.status) {
        records.removeAll { $0.url == ask.url || $0.url == reply.invalidates }
      }
      return .origin
    }
    let chosen = selected(ask)
    if [500, 502, 503, 504].contains(reply.status), let first = chosen.first {
      let record = records[first]
      let window = [record.reply.staleIfError, ask.staleIfError].compactMap { $0 }.max()
      if let window, mayServeStale(ask, record, received), staleness(record, received) <= Double(window) {
        return end(ask, record)
      }
    }
    if reply.status == 304 {
      return notModified(ask, chosen, offered: offered, offersDate: offersDate, reply, sent: sent, received: received)
    }
    if ask.method == "HEAD" {
      if reply.status == 200 { head(ask, chosen, reply, sent: sent, received: received) }
      return .origin
    }
    if mayStore(reply, for: ask, received: new) {
      remove(chosen)
      records.append(new)
    } else if !offered.isEmpty || offersDate {
      // 4.3.3: a full response means that none of the nominated ones is suitable.
      if (200..<400).contains(reply.status) || reply.status == 404 || reply.status == 410 {
        remove(nominated(chosen, offered))
      }
    }
    return .origin
  }

  private func nominated(_ chosen: [Int], _ offered: Set<Int>) -> [Int] {
    offered.isEmpty
      ? Array(chosen.prefix(1))
      : chosen.filter { $0 == chosen.first || records[$0].reply.tag != .none }
  }

  private mutating func remove(_ positions: [Int]) {
    for position in positions.sorted(by: >) { records.remove(at: position) }
  }

  private mutating func notModified(
    _ ask: Ask, _ chosen: [Int], offered: Set<Int>, offersDate: Bool, _ reply: Reply, sent: Int, received: Int
  ) -> End {
    let isOwn = !offered.isEmpty || offersDate
    let others = records.indices.filter {
      records[$0].url == ask.url && !chosen.contains($0) && isOwn && offered.contains(records[$0].reply.version)
        && records[$0].reply.tag == .strong && chosen.isEmpty
    }
    var updated: [Int] = []
    var answering: Int?
    let hasStrong = reply.tag == .strong || (reply.tag == .none && reply.hasModified)
    if hasStrong || reply.tag == .weak {
      let pool = chosen + (reply.tag == .strong ? others : [])
      let same = pool.filter { position in
        let stored = records[position].reply
        if reply.tag != .none && stored.tag != .none {
          guard stored.version == reply.version else { return false }
          return reply.tag == .weak || stored.tag == .strong
        }
        return reply.hasModified && stored.hasModified && stored.version == reply.version
      }
      updated = hasStrong ? same : Array(same.prefix(1))
      answering = same.first
    }
    if answering == nil, isOwn {
      // It confirms the only response that was asked about, or one with the same opaque tag.
      let asked = offered.union(ask.knownVersion.map { [$0] } ?? [])
      let nominees = nominated(chosen, offered)
      if reply.tag != .none,
        let position = nominees.first(where: {
          records[$0].reply.tag != .none && records[$0].reply.version == reply.version
        })
      {
        answering = position
      } else if asked.count <= 1, let first = nominees.first,
        asked.isEmpty || (records[first].reply.tag != .none && asked.contains(records[first].reply.version))
      {
        answering = first
        if reply.tag == .none && !reply.hasModified { updated = [first] }
      }
    }
    var result: End = .origin
    var doomed: [Int] = []
    var versions: [Int: Record] = [:]
    for position in updated {
      let fresh = freshened(records[position], by: reply, ask, sent: sent, received: received)
      versions[position] = fresh
      if !mayStore(fresh.reply, for: nil, received: fresh) {
        doomed.append(position)
      } else if mayStore(fresh.reply, for: ask, received: fresh) {
        records[position] = fresh
      }
    }
    if isOwn {
      if let answering {
        result = end(ask, versions[answering] ?? records[answering])
      } else if reply.tag != .none, ask.knownVersion == reply.version {
        result = .origin
      } else {
        result = .error  // The request must be made again; the histories never get here.
      }
    }
    remove(doomed)
    return result
  }

  /// 3.2: everything that the new head has replaces what was stored; the rest stays.
  private func freshened(_ old: Record, by reply: Reply, _ ask: Ask, sent: Int, received: Int) -> Record {
    var record = old
    record.requestTime = sent
    record.responseTime = received
    record.reply = reply
    record.reply.status = old.reply.status
    record.reply.version = old.reply.version
    record.reply.hasModified = old.reply.hasModified || reply.hasModified
    if reply.tag == .none { record.reply.tag = old.reply.tag }
    if !hasControl(reply) { copyControl(of: old.reply, to: &record.reply) }
    if reply.expiresAfterDate == nil, let expires = old.reply.expiresAfterDate {
      record.reply.expiresAfterDate = old.date + expires - record.date
    }
    record.reply.hasCookie = old.reply.hasCookie || reply.hasCookie
    record.reply.varies = old.reply.varies || reply.varies
    if record.reply.varies != old.reply.varies {
      record.languages = [ask.language]
    } else if record.reply.varies, !record.languages.contains(ask.language) {
      record.languages.append(ask.language)
    }
    return record
  }

  private func hasControl(_ reply: Reply) -> Bool {
    reply.maxAge != nil || reply.sharedMaxAge != nil || reply.noCache || reply.noStore || reply.isPrivate
      || reply.isPublic || reply.mustRevalidate || reply.proxyRevalidate || reply.mustUnderstand || reply.isImmutable
      || reply.staleWhileRevalidate != nil || reply.staleIfError != nil
  }

  private func copyControl(of old: Reply, to new: inout Reply) {
    (new.maxAge, new.sharedMaxAge, new.noCache, new.noStore) = (old.maxAge, old.sharedMaxAge, old.noCache, old.noStore)
    (new.isPrivate, new.isPublic, new.mustRevalidate) = (old.isPrivate, old.isPublic, old.mustRevalidate)
    (new.proxyRevalidate, new.mustUnderstand) = (old.proxyRevalidate, old.mustUnderstand)
    (new.isImmutable, new.staleWhileRevalidate) = (old.isImmutable, old.staleWhileRevalidate)
    new.staleIfError = old.staleIfError
  }

  /// 4.3.5.
  private mutating func head(_ ask: Ask, _ chosen: [Int], _ reply: Reply, sent: Int, received: Int) {
    var doomed: [Int] = []
    for position in chosen {
      let stored = records[position].reply
      let agrees =
        stored.status == 200 && (reply.tag == .none || (stored.tag == reply.tag && stored.version == reply.version))
        && (!reply.hasModified || (stored.hasModified && stored.version == reply.version))
      let fresh = freshened(records[position], by: reply, ask, sent: sent, received: received)
      if !agrees || !mayStore(fresh.reply, for: nil, received: fresh) {
        doomed.append(position)
      } else if mayStore(fresh.reply, for: ask, received: fresh) {
        records[position] = fresh
      }
    }
    remove(doomed)
  }

  private func mayServeStale(_ ask: Ask, _ record: Record, _ now: Int) -> Bool {
    guard ask.policy == "standard" || ask.policy == "preferCache", !insists(ask) else { return false }
    guard !prohibitsStale(record.reply) else { return false }
    if ask.policy == "standard" {
      guard withinLimits(ask, record, now) else { return false }
      if let limit = ask.maxStale, limit != Int.max, staleness(record, now) > Double(limit) { return false }
    }
    return true
  }

  private func end(_ ask: Ask, _ record: Record) -> End {
    let isKnown = record.reply.tag != .none && ask.knownVersion == record.reply.version
    return isKnown && (200..<300).contains(record.reply.status) ? .notModified : .stored(version: record.reply.version)
  }

  /// 4.2.4: the origin can't be reached.
  func unreachable(_ ask: Ask, _ now: Int) -> End {
    guard ask.method == "GET" || ask.method == "HEAD", let first = selected(ask).first else { return .error }
    let record = records[first]
    if mayServeStale(ask, record, now) { return end(ask, record) }
    return prohibitsStale(record.reply) ? .gatewayTimeout : .error
  }
}
#endif
