#if HTTPCache
import HTTPCachingRules
import Larder

extension ResponseStorage {
  /// Begins to store a body.
  ///
  /// - Parameter expectedLength: The number of bytes, if it is known.
  /// - Throws: ``StorageRefusal/tooLarge`` if the body is larger than ``StorageOptions/largestBody``.
  func makeWriter(expectedLength: Int64? = nil) throws -> BodyWriter<Base> {
    if let expectedLength, expectedLength > options.largestBody { throw StorageRefusal.tooLarge }
    return BodyWriter(self, expectedLength: expectedLength ?? 0)
  }

  /// Stores a response whose body is complete.
  ///
  /// The rest of the body, the response, the end of the body's mark and the removal of replaced responses are one commit,
  /// which holds only if the URL was not invalidated since the request. A complete response also replaces the older
  /// complete ones with the same selecting fields, and is not stored if there is a newer one. If there are too many
  /// variants, the oldest are removed.
  ///
  /// - Parameters:
  ///   - response: The response. Its ranges become those of the parts.
  ///   - parts: The bytes of the representation in the body of the writer and in bodies of replaced responses.
  ///   - writer: The writer of the body, or `nil` if the response has no new body. If the method throws, abandon it.
  ///   - replaced: The stored responses that are removed. Those that are gone already are ignored.
  ///   - token: The state of the invalidations before the request was forwarded.
  /// - Returns: The stored response.
  /// - Throws: ``StorageRefusal``; the errors of the store.
  @discardableResult
  func store(
    _ response: StoredResponse, parts: [StoredPart], body writer: BodyWriter<Base>?,
    replacing replaced: [StoredEntry] = [], token: FetchToken
  ) async throws -> StoredEntry {
    var response = response
    let parts = parts.filter { !$0.range.isEmpty }
    response.ranges = parts.map(\.range)
    let key = layout.responseKey(
      url: response.url, partition: response.partition, identifier: .random(in: 0 ... .max))
    let new = writer.map { StoredBody(identifier: $0.body, length: $0.count) }
    // One at a time, because a new response of another task would make the plan stale.
    let entry = try await storeGate.withAccess(.exclusive) { [response] in
      try await committing { commit in
        try await check(token, url: response.url, &commit)
        let now = now
        // Without this, two writers that don't see each other would both store a response for the same requests.
        commit.refusesNewPlaces = true
        var removed = try await entries(forKeys: replaced.map(\.key)).compactMap(\.self)
        let bodies = try bodies(of: parts, new, removed.flatMap(\.bodies))
        var others: [StoredEntry] = []
        for other in try await entries(url: response.url, partition: response.partition) {
          if other.response.isReplaced(by: response) {
            // A time in the future is that of a clock that was set back.
            let time = other.response.responseTime
            if time > response.responseTime, time.microsecondsSince1970 <= now { throw StorageRefusal.superseded }
            if !removed.contains(where: { $0.key == other.key }) { removed.append(other) }
          } else if !removed.contains(where: { $0.key == other.key }) {
            others.append(other)
          }
        }
        removed += others.dropFirst(options.maximumVariants - 1)
        let entry = try commit.insert(key, response, parts, bodies, at: now)
        for old in removed { commit.remove(old, keeping: bodies, at: now) }
        try await writer?.addRest(to: &commit)
        (commit.limit, commit.lastingLimit) = (options.capacity, lastingCapacity)
        return entry
      }
    }
    writer?.finish()
    return entry
  }

  /// Returns the bodies that some parts are in.
  ///
  /// - Throws: ``StorageRefusal/superseded`` if a body is not there anymore.
  private func bodies(
    of parts: [StoredPart], _ new: StoredBody?, _ old: [StoredBody]
  ) throws -> [StoredBody] {
    var bodies: [StoredBody] = []
    for part in parts {
      let known = new?.identifier == part.body ? new : old.first { $0.identifier == part.body }
      guard let body = known, part.rangeInBody.upperBound <= body.length else { throw StorageRefusal.superseded }
      if !bodies.contains(body) { bodies.append(body) }
    }
    // A body that no part refers to would never be removed.
    if let new, new.length > 0, !bodies.contains(new) { throw StorageRefusal.superseded }
    return bodies
  }

  /// Replaces the head of a stored response.
  ///
  /// - Parameters:
  ///   - entry: The stored response, as it was read.
  ///   - response: The response with its new head. The parts stay those of the stored response.
  ///   - token: The state of the invalidations before the request was forwarded.
  /// - Returns: The stored response, or `nil` if it is gone. If another writer has freshened it later, that one.
  /// - Throws: ``StorageRefusal``; the errors of the store.
  @discardableResult
  func freshen(_ entry: StoredEntry, by response: StoredResponse, token: FetchToken) async throws -> StoredEntry? {
    try await committing { commit in
      try await check(token, url: entry.response.url, &commit)
      guard let old = try await entries(forKeys: [entry.key])[0] else { return nil }
      // A time in the future is that of a clock that was set back.
      let time = old.response.responseTime
      guard time <= response.responseTime || time.microsecondsSince1970 > now else { return old }
      let new = try old.freshened(by: response)
      commit.replace(old, by: new)
      (commit.limit, commit.lastingLimit) = (options.capacity, lastingCapacity)
      return new
    }
  }

  /// Removes stored responses, except for those that are gone already, and retires their bodies.
  func remove(_ entries: [StoredEntry]) async throws {
    guard !entries.isEmpty else { return }
    try await removeEntries(entries.map(\.key)) { _ in true }
  }

  /// Removes those of some responses that satisfy a condition.
  func removeEntries(_ keys: [StoreKey], where isIncluded: (StoredEntry) -> Bool) async throws {
    // A response that is named twice is counted once.
    let keys = Array(Set(keys))
    try await committing { commit in
      for case let old? in try await entries(forKeys: keys) where isIncluded(old) { commit.remove(old, at: now) }
    }
    uses.finish(removed: keys, at: now)
  }
}

extension StoredResponse {
  /// Returns whether another response for the same URL answers all requests that this one answers.
  fileprivate func isReplaced(by other: StoredResponse) -> Bool {
    isComplete && other.isComplete && selecting.sets.allSatisfy { other.selecting.sets.contains($0) }
  }
}
#endif
