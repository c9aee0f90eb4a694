#if HTTPCache
import HTTPCachingRules
import Larder

extension ResponseStorage {
  /// Removes the bodies that were abandoned by their writers, and those that were retired long enough ago.
  ///
  /// It reads only marks and retired bodies. It also renews the marks of this object's writers, so other processes
  /// don't take a slow body for an abandoned one. Call it more often than ``StorageOptions/markTimeout``. A mark that
  /// cannot be retired does not keep the others from it.
  ///
  /// - Throws: The first error of the store.
  func sweep() async throws {
    try await roomGate.withAccess(.exclusive) {
      let (_, failure) = try await sweepMarks()
      _ = try await removeRetired(atLeast: .max, early: false)
      if let failure { throw failure }
    }
  }

  /// Retires the bodies that were abandoned by their writers.
  ///
  /// - Returns: The number of bodies.
  /// - Throws: The first error of the store if none could be retired.
  func retireAbandoned() async throws -> Int {
    try await roomGate.withAccess(.exclusive) {
      let (count, failure) = try await sweepMarks()
      if count == 0, let failure { throw failure }
      return count
    }
  }

  /// Removes entries until there is room for a number of bytes.
  ///
  /// Bodies that are retired long enough go first, then other retired ones, then the responses that were not used for
  /// longest. Nothing goes that a reader or a writer of this object uses.
  ///
  /// - Parameters:
  ///   - bytes: The number of bytes.
  ///   - lasting: The number of bytes among them that are not transient, or `nil` to evict nothing.
  /// - Returns: A Boolean value that indicates whether there was room for a moment.
  func makeRoom(for bytes: Int, lasting: Int?) async throws -> Bool {
    guard bytes <= options.capacity, lasting ?? 0 <= lastingCapacity else { return false }
    return try await roomGate.withAccess(.exclusive) {
      var hasSwept = false
      while true {
        let totals = try await totals(for: .update)
        let excess = totals.bytes + bytes - options.capacity
        let lastingExcess = lasting.map { totals.lasting + $0 - lastingCapacity } ?? 0
        if excess <= 0, lastingExcess <= 0 { return true }
        if excess > 0 {
          if try await removeRetired(atLeast: excess, early: hasSwept) > 0 { continue }
          if !hasSwept {
            hasSwept = true
            _ = try await sweepMarks()
            continue
          }
        }
        guard lasting != nil, try await evict(atLeast: max(excess, lastingExcess)) > 0 else { return false }
      }
    }
  }

  // MARK: Retired bodies

  /// Removes chunks of retired bodies that no reader of this object uses, in the order of their retirement.
  ///
  /// - Parameters:
  ///   - needed: The number of bytes after which it stops.
  ///   - early: A Boolean value that indicates whether to remove those as well whose retention is not over.
  /// - Returns: The number of bytes that were removed.
  private func removeRetired(atLeast needed: Int, early: Bool) async throws -> Int {
    var removed = 0
    var rest: KeyRange? = layout.retired
    while removed < needed, let range = rest {
      let page = try await page(in: range, limit: Self.pageSize)
      let now = now
      var keys = page.entries.map(\.key).filter { key in
        guard let retired = layout.retired(key), !leases.contains(retired.body) else { return false }
        return early || has(options.retention, passedSince: retired.microseconds, at: now)
      }[...]
      while removed < needed, !keys.isEmpty {
        let (bytes, count) = try await removeSlice(of: keys, atLeast: needed - removed)
        removed += bytes
        keys = keys.dropFirst(count)
      }
      rest = page.rest
    }
    return removed
  }

  /// Removes chunks of the first of some retired bodies in one commit.
  ///
  /// - Returns: The number of bytes, and the number of bodies of which nothing is left.
  private func removeSlice(
    of retiredKeys: ArraySlice<StoreKey>, atLeast needed: Int
  ) async throws -> (bytes: Int, count: Int) {
    try await committing { commit in
      var (bytes, count, chunkCount) = (0, 0, 0)
      for key in retiredKeys where bytes < needed && chunkCount < Self.sliceLength {
        guard let retired = layout.retired(key), let stored = try await readableValue(forKey: key, unreadable: [])
        else {
          // Another process has removed it.
          count += 1
          continue
        }
        let footprint =
          if let known = layout.footprint(ofRetired: stored) { known } else {
            try await measuredFootprint(of: retired.body)
          }
        let limit = Self.sliceLength - chunkCount
        let chunks = try await base.keys(in: layout.chunks(of: retired.body), limit: limit + 1, order: .ascending)
        let isRest = chunks.count <= limit
        bytes += commit.free(chunks.prefix(limit), of: key, stored, footprint: footprint, isRest: isRest)
        chunkCount += chunks.prefix(limit).count
        guard isRest else { break }
        count += 1
      }
      return (bytes, count)
    }
  }

  /// Returns the number of bytes of the chunks of a body whose length is unknown, because its record is damaged.
  private func measuredFootprint(of body: BodyIdentifier) async throws -> Int {
    let keys = try await base.keys(in: layout.chunks(of: body), limit: .max, order: .ascending)
    guard let last = keys.last else { return 0 }
    let value = try await readableValue(forKey: last, unreadable: [])
    return (keys.count - 1) * layout.fullChunkFootprint + last.count + (value?.count ?? 0)
  }

  // MARK: Marks

  /// Retires the bodies that their writers have abandoned, and renews the marks of this object's writers.
  ///
  /// - Returns: The number of bodies that were retired, and the first error of one that could not be retired or renewed.
  private func sweepMarks() async throws -> (count: Int, failure: (any Error)?) {
    var retiredCount = 0
    var failure: (any Error)?
    var rest: KeyRange? = layout.marks
    while let range = rest {
      let page = try await page(in: range, limit: Self.pageSize)
      for entry in page.entries {
        guard let body = layout.body(ofMark: entry.key) else { continue }
        do {
          if try await sweepMark(of: body, BodyMark(entry.value)) { retiredCount += 1 }
        } catch let error as CancellationError {
          throw error
        } catch {
          failure = failure ?? error
        }
      }
      rest = page.rest
    }
    return (retiredCount, failure)
  }

  /// Retires a body if its writer has abandoned it, or renews its mark if that is due.
  ///
  /// - Returns: A Boolean value that indicates whether the body was retired.
  private func sweepMark(of body: BodyIdentifier, _ mark: BodyMark?) async throws -> Bool {
    if leases.contains(body) {
      let isDue = mark.map { has(options.markTimeout / 4, passedSince: $0.renewed, at: now) } ?? true
      if isDue { try await renew(body) }
      return false
    }
    guard mark?.owner == owner || isAbandoned(mark) else { return false }
    // Only its own process reads an unfinished body, so that the body of an ended one needs no retention.
    let retention = options.processes.hasEnded(mark?.process) ? options.retention.wholeMicroseconds : 0
    try await retireMarked(body, at: now.addingSaturating(-retention))
    return true
  }

  /// Returns whether the writer of a body has ended, or was not heard of for too long.
  ///
  /// - Parameter mark: The mark of the body, or `nil` if it is damaged.
  func isAbandoned(_ mark: BodyMark?) -> Bool {
    guard let mark else { return true }
    return has(options.markTimeout, passedSince: mark.renewed, at: now) || options.processes.hasEnded(mark.process)
  }

  private func renew(_ body: BodyIdentifier) async throws {
    let key = layout.markKey(of: body)
    try await committing { commit in
      guard let stored = try await base.value(forKey: key), var mark = BodyMark(stored) else { return }
      mark.renewed = now
      commit.setMark(key, replacing: stored, by: mark)
    }
  }

  /// Retires a body that has a mark, if it has one.
  ///
  /// - Parameters:
  ///   - body: The body.
  ///   - time: The time of the retirement, in microseconds since 1970. Defaults to `nil`, for the current time.
  func retireMarked(_ body: BodyIdentifier, at time: Int64? = nil) async throws {
    let key = layout.markKey(of: body)
    try await committing { commit in
      guard let stored = try await readableValue(forKey: key, unreadable: []) else { return }
      let footprint: Int
      if let mark = BodyMark(stored) {
        footprint = layout.footprint(ofBody: mark.count)
      } else {
        footprint = try await measuredFootprint(of: body)
        commit.setReserved(try await reservedBytes(except: key))
      }
      commit.setMark(key, replacing: stored, counting: footprint, by: nil)
      commit.retire(body, footprint: footprint, at: time ?? now)
    }
  }

  /// Returns the number of bytes that all bodies which are being stored reserve, except for one.
  private func reservedBytes(except key: StoreKey) async throws -> Int {
    var sum = 0
    var rest: KeyRange? = layout.marks
    while let range = rest {
      let page = try await page(in: range, limit: Self.pageSize)
      for entry in page.entries where entry.key != key { sum += Int(BodyMark(entry.value)?.reserved ?? 0) }
      rest = page.rest
    }
    return sum
  }

  // MARK: Evictions

  /// Evicts the least recently used responses, as many as one commit can.
  ///
  /// A response that was used in this process since it got its place gets a new one instead, as long as there are others.
  ///
  /// - Parameter needed: The number of bytes after which it stops.
  /// - Returns: The number of responses that were evicted.
  private func evict(atLeast needed: Int) async throws -> Int {
    let evicted = try await committing { commit in
      let now = now
      var (evicted, bytes) = ([UseRecord](), 0)
      let spared = try await uses.evict(
        in: layout.uses,
        page: { range in
          let page = try await page(in: range, limit: Self.pageSize)
          return (page.entries.map { ($0, UseRecord($0.value, layout: layout)) }, page.rest)
        },
        until: { bytes >= needed || evicted.count >= Self.pageSize },
        key: { candidate in
          guard let use = candidate.1 else {
            // The response gets another place when it is used.
            commit.set(candidate.0.key, nil)
            return nil
          }
          return use.bodies.contains { leases.contains($0.identifier) } ? nil : use.responseKey
        },
        { candidate in
          guard let use = candidate.1 else { return }
          commit.evict(candidate.0.key, candidate.0.value, use, at: now)
          evicted.append(use)
          bytes += use.recordLength + use.bodies.reduce(0) { $0 + layout.footprint(ofBody: $1.length) }
        })
      let keys = spared.compactMap { $0.1?.responseKey }
      // A damaged one keeps its place and goes the next time.
      for case let old? in try await entries(forKeys: keys) { try commit.use(old, at: now) }
      return (evicted, keys)
    }
    uses.finish(placed: evicted.1, removed: evicted.0.map(\.responseKey), at: now)
    counted.withLock { counters in
      counters.evictions += evicted.0.count
      counters.evictedBytes += evicted.0.reduce(0) { $0 + $1.bodies.reduce(0) { $0 + Int($1.length) } }
    }
    return evicted.0.count
  }
}
#endif
