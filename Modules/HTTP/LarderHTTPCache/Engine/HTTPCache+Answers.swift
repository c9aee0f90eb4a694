#if HTTPCache
import HTTPCachingRules
import HTTPTypes
import Larder

extension HTTPCache {
  /// Returns a stored response as the answer.
  ///
  /// The first bytes of the body are read before the head is returned. If they cannot be read, the origin can still
  /// answer.
  ///
  /// - Parameters:
  ///   - reuse: The answer.
  ///   - entry: The stored response.
  ///   - reader: A reader of its body. Defaults to `nil`, for a new one.
  func answer(
    _ reuse: Reuse, from entry: StoredEntry, reader: CacheReader? = nil
  ) async throws -> Attempt {
    guard reuse.hasBody, let range = reuse.bodyRange, !range.isEmpty else { return .response(response(reuse, nil)) }
    guard let segments = try await segments(of: entry, range, reader) else { return .unreadable(reuse.position) }
    return .response(response(reuse, reading(segments, of: entry)))
  }

  /// Begins to read bytes of a stored response.
  ///
  /// - Returns: The first bytes and the rest, or `nil` if they cannot be read.
  private func segments(
    of entry: StoredEntry, _ range: Range<Int64>, _ reader: CacheReader?
  ) async throws -> [BodyReading.Segment]? {
    do {
      // This is one call, because hits are frequent.
      return try await calls.reading { [storage] in
        var reader = reader
        if reader == nil { reader = try await storage.reader(of: entry) }
        guard let reader else { return nil }
        guard !range.isEmpty else { return [.stored(reader, range)] }
        let bytes = Array(try await reader.bytes(from: range.lowerBound, upTo: range.upperBound))
        return [.bytes(bytes), .stored(reader, range.lowerBound + Int64(bytes.count)..<range.upperBound)]
      }
    } catch let error as CancellationError {
      throw error
    } catch {
      // The failure is counted.
      if (error as? StoreError)?.isValueUnreadable == true { await remove([entry]) }
      return nil
    }
  }

  func reader(of entry: StoredEntry) async throws -> CacheReader? {
    try await calls.reading { [storage] in try await storage.reader(of: entry) }
  }

  private func reading(_ segments: [BodyReading.Segment], of entry: StoredEntry?) -> BodyReading {
    BodyReading(
      segments, calls,
      onBytes: { [weak self] count, areStored in
        self?.count { statistics in
          if areStored { statistics.storedBytesRead += count } else { statistics.originBytesRead += count }
        }
      },
      onUnreadable: { [weak self] in if let entry { await self?.remove([entry]) } })
  }

  private func response(_ reuse: Reuse, _ reading: BodyReading?) -> HTTPCacheResponse {
    HTTPCacheResponse(
      head: reuse.head, body: HTTPCacheBody(reading: reading), cacheStatus: reuse.status,
      userData: reuse.response.userData)
  }

  func refusal(_ head: HTTPResponse, _ status: CacheStatus) -> HTTPCacheResponse {
    count { $0.refusalCount += 1 }
    return HTTPCacheResponse(head: head, body: HTTPCacheBody(reading: nil), cacheStatus: status, userData: [])
  }

  // MARK: Responses of the origin

  /// Returns the response to the caller whose request was forwarded.
  func response(from fetch: Fetch, _ received: Fetch.Received, _ entries: [StoredEntry]) async throws -> Attempt {
    switch received.decision.delivery {
    case .stored(let reuse):
      if reuse.status.isValidated { count { $0.validationCount += 1 } }
      if reuse.status.isStale { count { $0.staleCount += 1 } }
      return try await answer(reuse, from: entries[reuse.position], reader: received.reader)
    case .combined(let reuse, let receiving):
      return try await combined(reuse, receiving, fetch, received, entries)
    case .forwarded(let head):
      return .response(try forwarded(head, fetch, received))
    case .again:
      return .response(try forwarded(received.head, fetch, received))
    }
  }

  private func forwarded(
    _ head: HTTPResponse, _ fetch: Fetch, _ received: Fetch.Received
  ) throws -> HTTPCacheResponse {
    var reading: BodyReading?
    if received.hasBody {
      // The fetch keeps the beginning for its first caller. Without it, the body would seem to be empty.
      guard let reader = fetch.addReader() else { throw HTTPCacheError.unreadableBody }
      reading = self.reading([.fetched(fetch, reader)], of: nil)
    }
    return HTTPCacheResponse(
      head: head, body: HTTPCacheBody(reading: reading), cacheStatus: received.decision.status,
      userData: received.decision.storing?.response.userData ?? [])
  }

  /// Returns a response whose body is partly stored and partly being received.
  private func combined(
    _ reuse: Reuse, _ receiving: Range<Int64>, _ fetch: Fetch, _ received: Fetch.Received, _ entries: [StoredEntry]
  ) async throws -> Attempt {
    let entry = entries[reuse.position]
    let range = reuse.bodyRange ?? 0..<(entry.response.length ?? receiving.upperBound)
    guard reuse.hasBody, let piece = fetch.addReader(receiving.clamped(to: range).moved(by: -receiving.lowerBound))
    else {
      return .unreadable(reuse.position)
    }
    let before = range.lowerBound..<max(range.lowerBound, min(range.upperBound, receiving.lowerBound))
    let after = min(range.upperBound, max(range.lowerBound, receiving.upperBound))..<range.upperBound
    let stored = try await storedSegments(of: entry, before, received.reader) { fetch.removeReader(piece) }
    guard let stored, case .stored(let reader, _) = stored.last else { return .unreadable(reuse.position) }
    let segments = stored + [.fetched(fetch, piece), .stored(reader, after)]
    return .response(response(reuse, reading(segments, of: entry)))
  }

  /// Begins to read bytes of a stored response, and undoes something if that fails.
  private func storedSegments(
    of entry: StoredEntry, _ range: Range<Int64>, _ reader: CacheReader?, orElse undo: () -> Void
  ) async throws -> [BodyReading.Segment]? {
    do {
      let segments = try await segments(of: entry, range, reader)
      if segments == nil { undo() }
      return segments
    } catch {
      undo()
      throw error
    }
  }

  /// Returns the response to a request to which the origin gave no response.
  func response(
    afterFailure error: any Error, of exchange: Exchange, _ entries: [StoredEntry]
  ) async throws -> HTTPCacheResponse {
    switch rules.decide(failureOf: exchange, now: now) {
    case .answer(let reuse):
      if case .response(let response) = try await answer(reuse, from: entries[reuse.position]) {
        count { $0.staleCount += 1 }
        return response
      }
    case .refuse(let head, let status):
      return refusal(head, status)
    case .fail: break
    }
    count { $0.failureCount += 1 }
    throw error
  }

  // MARK: Responses to other requests

  /// Returns the response to a request that waited for another one, or `nil` if that response does not answer it.
  func sharedResponse(
    from fetch: Fetch, _ received: Fetch.Received, to exchange: Exchange, _ entries: [StoredEntry]
  ) async throws -> HTTPCacheResponse? {
    switch received.decision.delivery {
    case .forwarded:
      guard received.isStoring, let storing = received.decision.storing, storing.isWhole,
        let reuse = rules.share(storing.response, with: exchange.request, url: exchange.url, now: now)
      else { return nil }
      guard reuse.hasBody, received.hasBody else { return response(reuse, nil) }
      guard let reader = fetch.addReader(reuse.answer == .whole ? nil : reuse.bodyRange) else { return nil }
      return response(reuse, reading([.fetched(fetch, reader)], of: nil))
    case .stored(let reuse):
      let entry = received.entries[reuse.position]
      var shared = rules.share(reuse.response, with: exchange.request, url: exchange.url, now: now)
      if shared == nil, received.head.status.kind == .serverError, exchange.stored.indices.contains(reuse.position),
        entries[reuse.position].key == entry.key
      {
        // The error of the origin is shared as well.
        let decision = rules.decide(
          response: received.head, to: exchange, requestTime: received.requestTime, responseTime: received.responseTime)
        if case .stored(let stale) = decision.delivery, stale.position == reuse.position { shared = stale }
      }
      guard let shared, case .response(let response) = try await answer(shared, from: entry, reader: received.reader)
      else { return nil }
      if shared.status.isStale { count { $0.staleCount += 1 } }
      return response
    case .combined, .again: return nil
    }
  }
}

extension Range<Int64> {
  fileprivate func moved(by distance: Int64) -> Range<Int64> {
    (lowerBound + distance)..<(upperBound + distance)
  }
}
#endif
