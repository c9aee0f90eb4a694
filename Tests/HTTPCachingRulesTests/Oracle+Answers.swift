#if HTTPCache
import Foundation

/// The answers of the origin: sections 3.2, 4.2.4, and 4.3.3 to 4.4.
extension Oracle {
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
      guard withinLimits(ask, record, now), isFresh(record, now) || wishesStale(ask) else { return false }
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
