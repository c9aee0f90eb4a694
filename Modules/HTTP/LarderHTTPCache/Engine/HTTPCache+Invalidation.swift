#if HTTPCache
import HTTPCachingRules
import Larder

/// The invalidations that the store has not carried out yet, because it failed.
///
/// As long as one of them matches a URL, nothing stored for this URL is reused.
struct PendingInvalidations: Sendable {
  /// An invalidation.
  enum Invalidation: Sendable, Hashable {
    case url(String)
    case prefix(String)
    case everything

    func matches(_ url: String) -> Bool {
      switch self {
      // The first comparison is fast, but takes composed and decomposed characters for equal.
      case .url(let other): other == url && other.utf8.elementsEqual(url.utf8)
      case .prefix(let prefix): url.utf8.starts(with: prefix.utf8)
      case .everything: true
      }
    }
  }

  /// An invalidation that was not carried out yet.
  struct Entry: Sendable {
    let number: UInt64
    let invalidation: Invalidation
    /// A Boolean value that indicates whether the store has failed to carry it out, and nothing else tries to at the
    /// moment.
    var hasFailed = false
  }

  /// The number of failed invalidations above which all are replaced by one of everything.
  static let maximumCount = 1_000

  /// The time between a repetition that has failed and the next one.
  static let repeatInterval: Duration = .seconds(1)

  private var nextNumber: UInt64 = 0
  private var isRepeating = false
  private var nextRepetition: Duration = .zero

  /// The invalidations, the first one first.
  private(set) var entries: [Entry] = []

  /// Adds an invalidation that the caller carries out.
  ///
  /// It takes the place of the same one that has failed.
  ///
  /// - Returns: The entry for it, or one that includes it.
  mutating func insert(_ invalidation: Invalidation) -> Entry {
    entries.removeAll { $0.hasFailed && ($0.invalidation == invalidation || invalidation == .everything) }
    nextNumber += 1
    let isTooMany = entries.count(where: \.hasFailed) >= Self.maximumCount
    let entry = Entry(number: nextNumber, invalidation: isTooMany ? .everything : invalidation)
    if isTooMany { entries = [] }
    entries.append(entry)
    return entry
  }

  /// Records that the store has failed to carry out an invalidation.
  ///
  /// It is repeated after all others, so one that always fails does not hold them up.
  mutating func noteFailure(of entry: Entry) {
    guard let index = entries.firstIndex(where: { $0.number == entry.number }) else { return }
    entries.remove(at: index)
    // A later one that has failed as well includes this one.
    guard !entries.contains(where: { $0.hasFailed && $0.invalidation == entry.invalidation }) else { return }
    entries.append(Entry(number: entry.number, invalidation: entry.invalidation, hasFailed: true))
  }

  /// Removes an invalidation that the store has carried out.
  mutating func remove(_ entry: Entry) {
    entries.removeAll { $0.number == entry.number }
  }

  // MARK: Repeating

  /// Returns whether the caller must repeat the invalidations that have failed, until ``claim()`` returns `nil`.
  ///
  /// - Parameter now: A closure that returns the current time.
  mutating func beginRepeating(at now: () -> Duration) -> Bool {
    guard !isRepeating, entries.contains(where: \.hasFailed), now() >= nextRepetition else { return false }
    isRepeating = true
    return true
  }

  /// Returns the next invalidation to repeat, which the caller must carry out, or `nil` after the last one.
  mutating func claim() -> Entry? {
    guard isRepeating, let index = entries.firstIndex(where: \.hasFailed) else {
      isRepeating = false
      return nil
    }
    entries[index].hasFailed = false
    return entries[index]
  }

  /// Records that a repetition has failed, which ends the round.
  mutating func noteFailedRepetition(at now: Duration) {
    isRepeating = false
    nextRepetition = now + Self.repeatInterval
  }

  /// Returns whether a URL was invalidated.
  func matches(_ url: String) -> Bool { entries.contains { $0.invalidation.matches(url) } }
}

extension HTTPCache {
  /// Invalidates all responses to a URL, in all partitions.
  ///
  /// A response whose request was forwarded before is not stored, in other processes neither. Responses that are being read
  /// can be read to their end.
  ///
  /// ```swift
  /// try await cache.invalidate("https://api.example/users/7")
  /// try await cache.invalidate(prefix: "https://api.example/users/")
  /// try await cache.removeAll()
  /// ```
  ///
  /// - Parameter url: The absolute URL. A fragment is ignored.
  /// - Throws: ``HTTPCacheError`` with `invalidURL`; `CancellationError` if the task is cancelled before; the errors of the
  ///   store. In this process, the responses are not reused even then, and the invalidation is repeated in the background
  ///   until it succeeds.
  public func invalidate(_ url: String) async throws {
    try Task.checkCancellation()
    do {
      try await invalidate(.url(configuration.queryKey.key(of: RequestURL(url).text)))
    } catch let problem as RequestURL.Problem {
      throw HTTPCacheError(problem)
    }
  }

  /// Invalidates all responses to the URLs with a prefix, in all partitions; see ``invalidate(_:)``.
  ///
  /// - Parameter prefix: The beginning of absolute URLs, such as `https://api.example/users/`, which is compared with the
  ///   keys; see ``HTTPCacheConfiguration/queryKey``. It must have a scheme and an
  ///   authority. An authority that no `/` follows stands for all URLs with this authority.
  /// - Throws: ``HTTPCacheError`` with `invalidURL`; `CancellationError` if the task is cancelled before; the errors of the
  ///   store.
  public func invalidate(prefix: String) async throws {
    try Task.checkCancellation()
    do {
      try await invalidate(.prefix(RequestURL(prefix).text))
    } catch let problem as RequestURL.Problem {
      throw HTTPCacheError(problem)
    }
  }

  /// Invalidates all responses; see ``invalidate(_:)``.
  ///
  /// - Throws: `CancellationError` if the task is cancelled before; the errors of the store.
  public func removeAll() async throws {
    try Task.checkCancellation()
    try await invalidate(.everything)
  }

  /// Keeps the store tidy until the task is cancelled: removes the bodies that were replaced, and those that other programs
  /// have left behind.
  ///
  /// Run it in a task of its own, for example as a service. A cache without it works as well, but frees the bytes of
  /// replaced bodies only when it needs the room. The method returns when its task is cancelled. Errors of the store are
  /// counted in ``statistics()``, and do not end it.
  ///
  /// ```swift
  /// let tidying = Task { await cache.run() }
  /// // When the program ends:
  /// tidying.cancel()
  /// ```
  public func run() async {
    while await configuration.clock.hasSlept(for: configuration.sweepInterval) {
      repeatInvalidations()
      do {
        try await calls.withoutLimit { [storage] in try await storage.sweep() }
      } catch is CancellationError {
        return
      } catch {
        // The failure is counted. The next round tries again.
      }
    }
  }

  /// Invalidates responses.
  ///
  /// If the store fails, it is repeated before anything stored for these URLs is used again. The invalidation is carried out
  /// even if the caller is cancelled.
  ///
  /// - Parameters:
  ///   - invalidation: The responses.
  ///   - token: The state before the request that causes the invalidation was forwarded. Defaults to `nil`.
  /// - Returns: The state with which the response to that request can be stored; `nil` if it cannot.
  @discardableResult
  func invalidate(
    _ invalidation: PendingInvalidations.Invalidation, after token: FetchToken? = nil
  ) async throws -> FetchToken? {
    count { $0.invalidationCount += 1 }
    let entry = state.withLock { state in
      state.flights.invalidate(where: invalidation.matches)
      return state.pending.insert(invalidation)
    }
    return try await Task { try await self.carryOut(entry, after: token) }.value
  }

  /// Invalidates the responses for a URL because of a request.
  ///
  /// - Returns: The state that the response to the request can be stored with; `nil` if it cannot.
  func invalidateQuietly(_ url: String, after token: FetchToken?) async -> FetchToken? {
    do {
      return try await invalidate(.url(url), after: token)
    } catch {
      // The failure is counted. The invalidation stays pending.
      return nil
    }
  }

  @discardableResult
  private func carryOut(_ entry: PendingInvalidations.Entry, after token: FetchToken? = nil) async throws -> FetchToken?
  {
    let new: FetchToken?
    do {
      new = try await calls { [storage] in
        switch entry.invalidation {
        case .url(let url): return try await storage.invalidate(url: url, after: token)
        case .prefix(let prefix): try await storage.invalidate(prefix: prefix)
        case .everything: try await storage.removeAll()
        }
        return nil
      }
    } catch {
      state.withLock { $0.pending.noteFailure(of: entry) }
      throw error
    }
    state.withLock { $0.pending.remove(entry) }
    return new
  }

  /// Begins to repeat the invalidations that have failed, in a task of its own, if that is due.
  ///
  /// No request waits for this task, and there is one at a time.
  private func repeatInvalidations() {
    guard state.withLock({ $0.pending.beginRepeating { elapsed } }) else { return }
    Task {
      while let entry = state.withLock({ $0.pending.claim() }) {
        do {
          try await carryOut(entry)
        } catch {
          state.withLock { $0.pending.noteFailedRepetition(at: elapsed) }
          return
        }
      }
    }
  }

  /// A Boolean value that indicates whether what is stored for a URL must not be used, because it was invalidated and
  /// may still be there.
  ///
  /// If invalidations have failed, this begins to repeat them.
  func isInvalidated(_ url: String) -> Bool {
    let (isAny, isInvalidated) = state.withLock { (!$0.pending.entries.isEmpty, $0.pending.matches(url)) }
    if isAny { repeatInvalidations() }
    return isInvalidated
  }
}
#endif
