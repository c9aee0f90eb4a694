#if HTTPCache
import HTTPCachingRules
import Larder

/// An entry of the log of invalidations.
enum Invalidation: Sendable, Equatable {
  /// All responses for the URL with this SHA-256.
  case url([UInt8])

  /// All responses for URLs with this prefix.
  case prefix([UInt8])

  /// All responses.
  case everything

  /// The number of entries that the log keeps.
  static let logLength: UInt64 = 1_024

  /// The length in bytes from which on a prefix is cut, so it stands for more URLs.
  static let maximumPrefixLength = 1_024

  init(url: String) {
    self = .url(Self.hash(of: url))
  }

  init(prefix: String) {
    self = .prefix(Array(prefix.utf8.prefix(Self.maximumPrefixLength)))
  }

  private static func hash(of url: String) -> [UInt8] { Array(url.utf8).withUnsafeBytes { KeyDigest.digest(of: $0) } }

  /// Reads an entry, or returns ``everything`` for a damaged one and for one of a newer version.
  init(bytes: [UInt8]) {
    switch bytes.first {
    case 1 where bytes.count == 1 + KeyDigest.length: self = .url(Array(bytes.dropFirst()))
    case 2: self = .prefix(Array(bytes.dropFirst()))
    default: self = .everything
    }
  }

  var bytes: [UInt8] {
    switch self {
    case .url(let hash): [1] + hash
    case .prefix(let prefix): [2] + prefix
    case .everything: [3]
    }
  }

  /// Returns whether a URL was invalidated.
  func matches(_ url: String) -> Bool {
    switch self {
    case .url(let hash): Self.hash(of: url) == hash
    case .prefix(let prefix): url.utf8.starts(with: prefix)
    case .everything: true
    }
  }
}

extension ResponseStorage {
  /// Invalidates all responses for a URL, in all partitions.
  ///
  /// Each invalidation is logged first, so responses whose requests are under way are not stored, in other processes
  /// neither. Then the stored responses are removed.
  ///
  /// - Parameters:
  ///   - url: The URL.
  ///   - token: The state before the request that causes the invalidation was forwarded. Defaults to `nil`.
  /// - Returns: The state with which the response to that request can be stored, or `nil` if the URL was invalidated since
  ///   `token`, or if `token` is `nil`.
  @discardableResult
  func invalidate(url: String, after token: FetchToken? = nil) async throws -> FetchToken? {
    let new = try await log(Invalidation(url: url)) { commit in
      guard let token else { return false }
      do {
        try await self.check(token, url: url, &commit)
        return true
      } catch StorageRefusal.invalidated {
        return false
      }
    }
    try await removeEntries(in: layout.responses(url: url)) { $0.response.url == url }
    return new
  }

  /// Invalidates all responses whose URL begins with a prefix, in all partitions.
  func invalidate(prefix: String) async throws {
    try await log(Invalidation(prefix: prefix))
    let prefix = Array(prefix.utf8)
    try await removeEntries(in: layout.responses(urlPrefix: prefix)) { $0.response.url.utf8.starts(with: prefix) }
  }

  /// Invalidates all responses, and removes damaged ones as well.
  func removeAll() async throws {
    try await log(.everything)
    var rest: KeyRange? = layout.uses
    while let range = rest {
      rest = try await committing { commit in
        let page = try await page(in: range, limit: Self.pageSize)
        for entry in page.entries {
          if let use = UseRecord(entry.value, layout: layout) {
            commit.evict(entry.key, entry.value, use, at: now)
          } else {
            commit.set(entry.key, nil)
          }
        }
        return page.rest
      }
    }
    // Responses that remain have no place in the order of use, because the store has lost it.
    try await removeEntries(in: layout.responses) { _ in true }
  }

  private func removeEntries(in range: KeyRange, where isIncluded: (StoredEntry) -> Bool) async throws {
    var rest: KeyRange? = range
    while let range = rest {
      let page = try await entries(in: range, limit: Self.pageSize)
      let keys = page.entries.filter(isIncluded).map(\.key)
      if !keys.isEmpty { try await removeEntries(keys, where: isIncluded) }
      rest = page.rest
    }
  }

  /// Adds an entry to the log.
  ///
  /// - Parameters:
  ///   - invalidation: The entry.
  ///   - isCurrent: A closure that returns whether a request that was forwarded before may continue after the entry.
  ///     Defaults to one that returns `false`.
  /// - Returns: The state after the entry, or `nil` if `isCurrent` returned `false`.
  @discardableResult
  private func log(
    _ invalidation: Invalidation, _ isCurrent: (inout StorageCommit) async throws -> Bool = { _ in false }
  ) async throws -> FetchToken? {
    // One at a time, because another entry of this process would make the plan stale.
    try await storeGate.withAccess(.exclusive) {
      try await committing { commit in
        let isCurrent = try await isCurrent(&commit)
        let number = commit.totals.invalidations + 1
        // The number must still be the next one.
        commit.invalidations = commit.totals.invalidations
        commit.isInvalidation = true
        commit.set(layout.invalidationKey(number), invalidation.bytes)
        if number > Invalidation.logLength {
          commit.set(layout.invalidationKey(number - Invalidation.logLength), nil)
        }
        return isCurrent ? FetchToken(invalidations: number) : nil
      }
    }
  }

  /// Checks that a URL was not invalidated since a request for it was forwarded, and adds the condition that this stays so
  /// to a commit.
  ///
  /// - Throws: ``StorageRefusal/invalidated``, also if the log does not go back so far.
  func check(_ token: FetchToken, url: String, _ commit: inout StorageCommit) async throws {
    let current = commit.totals.invalidations
    commit.invalidations = current
    guard token.invalidations != current else { return }
    guard token.invalidations < current, current - token.invalidations <= Invalidation.logLength else {
      throw StorageRefusal.invalidated
    }
    let keys = ((token.invalidations + 1)...current).map(layout.invalidationKey)
    let entries = try await base.values(forKeys: keys)
    guard entries.allSatisfy({ $0.map { !Invalidation(bytes: $0).matches(url) } ?? false }) else {
      throw StorageRefusal.invalidated
    }
  }
}
#endif
