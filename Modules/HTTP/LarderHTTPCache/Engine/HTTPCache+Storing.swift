#if HTTPCache
import HTTPCachingRules
import HTTPTypes
import Larder

/// Changes of the store that a response of the origin implies.
extension HTTPCache {
  /// The largest number of bytes that the hook may add to a response.
  static var largestUserData: Int { 65_536 }

  // MARK: Storing

  /// Returns the writer of a body that is to be stored.
  ///
  /// If it must not be stored, the decision says why.
  func makeWriter(
    _ decision: inout ResponseDecision, _ forwarded: HTTPForwardedResponse, _ exchange: Exchange, _ token: FetchToken?
  ) -> CacheWriter? {
    guard decision.storing != nil else {
      if let refusal = decision.refusal { count { $0.notStoredCounts[refusal.rawValue, default: 0] += 1 } }
      return nil
    }
    guard forwarded.isStorable else { return refuse("client", &decision) }
    switch configuration.willStore?(exchange.request, forwarded.head) {
    case nil: break
    case .refuse: return refuse("refused", &decision)
    case .store(let userData):
      guard userData.count <= Self.largestUserData else { return refuse("userData", &decision) }
      decision.storing?.response.userData = userData
    }
    guard token != nil else { return refuse("storeFailed", &decision) }
    do {
      return try storage.makeWriter(expectedLength: decision.expectedLength)
    } catch {
      return refuse("tooLarge", &decision)
    }
  }

  private func refuse(_ reason: String, _ decision: inout ResponseDecision) -> CacheWriter? {
    decision.refuseStoring(because: reason, name: rules.name)
    count { $0.notStoredCounts[reason, default: 0] += 1 }
    return nil
  }

  /// The task that stores a body while it is received.
  func store(
    _ storing: ResponseDecision.Storing, _ writer: CacheWriter, _ work: Forwarding, _ token: FetchToken
  ) async {
    let fetch = work.fetch
    do {
      storing: while true {
        switch try await fetch.nextBatch() {
        case .stop: break storing
        case .bytes(let bytes, let isLast):
          try await calls { try await writer.append(bytes) }
          fetch.notePersisted(writer.storedCount)
          guard isLast else { continue }
          try await commit(storing, writer, work.entries, token)
          fetch.notePersisted(writer.storedCount)
          count { $0.storedCount += 1 }
          return
        }
      }
    } catch let refusal as StorageRefusal {
      count { $0.notStoredCounts["\(refusal)", default: 0] += 1 }
      // The next responses probably could not be stored either, so that their slow readers would make others wait.
      if refusal == .tooLarge, let key = work.key { state.withLock { $0.flights.refuse(key, fetch, at: elapsed) } }
    } catch {
      count { $0.notStoredCounts["storeFailed", default: 0] += 1 }
    }
    fetch.stopStoring()
    if let key = work.key { state.withLock { $0.flights.end(key, fetch) } }
    do {
      // Readers of the fetch hold the writer, so that they can still read it. Its mark would take a part of the share of
      // unfinished bodies for as long as one of them pauses.
      try await calls { try await writer.abandon() }
    } catch {
      // The failure is counted, and the body is swept later.
    }
  }

  private func commit(
    _ storing: ResponseDecision.Storing, _ writer: CacheWriter, _ entries: [StoredEntry], _ token: FetchToken
  ) async throws {
    var response = storing.response
    let range = storing.receiving ?? 0..<writer.count
    if storing.isWhole { response.length = response.length ?? writer.count }
    let kept = storing.extending.map { entries[$0].parts.pieces(of: response.ranges) } ?? []
    let parts = (kept + [StoredPart(range: range, body: writer.body, bodyStart: range.lowerBound)])
      .sorted { $0.range.lowerBound < $1.range.lowerBound }
    guard !isInvalidated(response.url) else { throw StorageRefusal.invalidated }
    let replaced = storing.replacing.map { entries[$0] }
    try await calls { [storage, response] in
      try await storage.store(response, parts: parts, body: writer, replacing: replaced, token: token)
    }
  }

  /// Carries out the changes of stored responses that a response implies.
  func change(_ decision: ResponseDecision, _ entries: [StoredEntry], _ token: FetchToken?) async {
    for (position, response) in decision.freshened {
      guard let token else { break }
      do {
        try await calls { [storage] in try await storage.freshen(entries[position], by: response, token: token) }
      } catch {
        // The failure is counted, or an invalidation came. The stored response stays as it is, and is validated again.
      }
    }
    await remove(decision.removed.map { entries[$0] })
  }

  /// Removes stored responses.
  ///
  /// If the store fails, they stay, and are decided on again by the next request.
  func remove(_ entries: [StoredEntry]) async {
    guard !entries.isEmpty else { return }
    do {
      try await calls { [storage] in try await storage.remove(entries) }
    } catch {
      // The failure is counted.
    }
  }
}
#endif
