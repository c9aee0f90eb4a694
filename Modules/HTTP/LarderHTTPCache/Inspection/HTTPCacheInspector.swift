#if HTTPCache
import Foundation
import HTTPCachingRules
public import Larder

/// A view of the responses in the store of an HTTP cache, for tools.
///
/// ```swift
/// let inspector = try HTTPCacheInspector(store, configuration: .shared)
/// let page = try await inspector.responses(prefix: "https://api.example/")
/// for response in page.responses { print(response.status, response.url, response.freshness) }
/// ```
///
/// An inspector only reads. It works on a store that is open read-only, and on one that caches of other processes are
/// using. To remove responses, use ``HTTPCache/invalidate(_:)`` and its kind.
///
/// All methods can be called from any task.
public struct HTTPCacheInspector: Sendable {
  /// The sizes of the entries of a cache in its store.
  public struct Usage: Sendable, Hashable {
    /// The number of bytes of the keys and values of all entries but the totals, which the capacity limits.
    public internal(set) var bytes = 0

    /// The number of responses.
    public internal(set) var responseCount = 0

    /// The number of invalidations since the cache was created.
    public internal(set) var invalidationCount: UInt64 = 0

    /// The number of bodies that responses have.
    public internal(set) var bodyCount = 0

    /// The sum of the lengths of these bodies, in bytes.
    public internal(set) var bodyBytes: Int64 = 0

    /// The number of bodies that are being stored, or that a program left behind when it ended.
    public internal(set) var markCount = 0

    /// The number of bytes of these bodies so far.
    public internal(set) var markedBytes: Int64 = 0

    /// The number of bytes that these bodies reserve of their share: the announced lengths, or those so far.
    public internal(set) var reservedBytes = 0

    /// The number of these bodies whose programs have ended, or were not heard of for a minute.
    ///
    /// Only on Linux, and only for a program of the same host, boot and namespace of processes, is it known that it has
    /// ended.
    public internal(set) var abandonedCount = 0

    /// The number of bodies whose responses were removed, and which will be removed themselves.
    public internal(set) var retiredCount = 0

    /// The number of bytes that these bodies take up.
    public internal(set) var retiredBytes = 0
  }

  /// Some of the stored responses.
  public struct Page: Sendable {
    /// The responses, in the order of their URLs.
    public internal(set) var responses: [HTTPStoredResponse] = []

    /// The keys of the records that are damaged.
    public internal(set) var damagedKeys: [StoreKey] = []

    /// The key after which the next page begins, or `nil` if there isn't one.
    public internal(set) var next: StoreKey?
  }

  let storage: CacheStorage
  let rules: HTTPCacheRules
  let configuration: HTTPCacheConfiguration

  /// Creates an inspector, without reading anything.
  ///
  /// - Parameters:
  ///   - store: The store of bytes.
  ///   - configuration: The settings of the cache. Its mode, its targeted fields and its heuristics decide on
  ///     freshness, and its query key on the responses for a URL.
  /// - Throws: ``HTTPCacheError`` with `invalidConfiguration`; `StoreError` with `invalidArgument`.
  public init(_ store: some DataStore<[UInt8]>, configuration: HTTPCacheConfiguration) throws {
    try configuration.check()
    rules = HTTPCacheRules(configuration)
    self.configuration = configuration
    storage = try CacheStorage(unopened: AnyDataStore(store), options: StorageOptions(configuration))
  }

  /// Returns whether the store has an HTTP cache with the prefix of the configuration.
  ///
  /// - Throws: The errors of the store.
  public func isPresent() async throws -> Bool {
    try await !storage.base.keys(in: storage.layout.everything, limit: 1, order: .ascending).isEmpty
  }

  /// Returns stored responses, in the order of their URLs and in all partitions.
  ///
  /// ```swift
  /// let inspector = try HTTPCacheInspector(store, configuration: .private)
  /// for response in try await inspector.responses(prefix: "https://api.example/").responses {
  ///   print(response.status, response.freshness, response.url)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - prefix: The beginning of the URLs, such as `https://api.example/users/`. Defaults to the empty text, for all.
  ///     If it is not empty, it must have a scheme and an authority.
  ///   - limit: The maximum number of records that are read, at least 1. Defaults to 256.
  ///   - previous: The key to begin after, from ``Page/next``. Defaults to `nil`, for the first page.
  /// - Returns: The responses. A page can be empty although further pages follow.
  /// - Throws: ``HTTPCacheError`` with `invalidURL`; the errors of the store.
  public func responses(
    prefix: String = "", limit: Int = 256, after previous: StoreKey? = nil
  ) async throws -> Page {
    let text = prefix.isEmpty ? "" : try HTTPCacheInspector.url(prefix)
    let prefix = Array(text.utf8)
    let range = storage.layout.responses(urlPrefix: prefix)
    return try await page(of: previous.map { range.after($0) } ?? range, limit: max(1, limit)) {
      $0.utf8.starts(with: prefix)
    }
  }

  /// Returns the stored responses for a URL in all partitions, the newest first.
  ///
  /// ```swift
  /// for response in try await inspector.responses(to: "https://api.example/users/7") {
  ///   print(response.status, response.freshness)
  /// }
  /// ```
  ///
  /// - Parameter url: The absolute URL. A fragment is ignored.
  /// - Throws: ``HTTPCacheError`` with `invalidURL`; the errors of the store.
  public func responses(to url: String) async throws -> [HTTPStoredResponse] {
    let url = configuration.queryKey.key(of: try HTTPCacheInspector.url(url))
    var responses: [HTTPStoredResponse] = []
    var rest: KeyRange? = storage.layout.responses(url: url)
    while let range = rest {
      let page = try await page(of: range, limit: 256) { $0 == url }
      responses += page.responses
      rest = page.next.map { range.after($0) }
    }
    return responses.sorted { $0.received > $1.received }
  }

  /// Returns the sizes of the cache's entries in its store.
  ///
  /// It reads the totals, the order of use, the marks and the retired bodies, but no record and no body.
  ///
  /// ```swift
  /// let usage = try await inspector.usage()
  /// print(usage.responseCount, "responses,", usage.bytes, "bytes")
  /// ```
  ///
  /// - Throws: `StoreError` with `versionMismatch` or `corrupted`; the errors of the store.
  public func usage() async throws -> Usage {
    let layout = storage.layout
    let totals = try await storage.totals(for: .statistics)
    var usage = Usage(
      bytes: totals.bytes, responseCount: totals.responses, invalidationCount: totals.invalidations,
      reservedBytes: totals.unfinished)
    try await forEachEntry(in: layout.uses) { entry in
      for body in UseRecord(entry.value, layout: layout)?.bodies ?? [] {
        usage.bodyCount += 1
        usage.bodyBytes += body.length
      }
    }
    try await forEachEntry(in: layout.marks) { entry in
      let mark = BodyMark(entry.value)
      usage.markCount += 1
      usage.markedBytes += mark?.count ?? 0
      if storage.isAbandoned(mark) { usage.abandonedCount += 1 }
    }
    try await forEachEntry(in: layout.retired) { entry in
      usage.retiredCount += 1
      usage.retiredBytes += layout.footprint(ofRetired: entry.value) ?? 0
    }
    return usage
  }

  /// Reads the body of a stored response.
  ///
  /// ```swift
  /// var body: [UInt8] = []
  /// try await inspector.readBody(of: response) { body += $0 }
  /// ```
  ///
  /// - Parameters:
  ///   - response: The response. It must be complete.
  ///   - receive: A closure that receives the bytes in their order, at most 65,408 at a time.
  /// - Throws: `StoreError` with `notFound` if the response is gone, or `corrupted` if a part of the body is missing;
  ///   the errors of `receive` and of the store.
  public func readBody(
    of response: HTTPStoredResponse, _ receive: (ArraySlice<UInt8>) throws -> Void
  ) async throws {
    guard let entry = try await storage.entries(forKeys: [response.key])[0],
      let reader = try await storage.reader(of: entry)
    else {
      throw StoreError(
        .notFound, during: .read, store: storage.base.information.name, key: response.key,
        message: "the response was removed while it was read")
    }
    let length = entry.response.length ?? 0
    var position: Int64 = 0
    while position < length {
      let bytes = try await reader.bytes(from: position, upTo: length)
      try receive(bytes)
      position += Int64(bytes.count)
    }
  }

  /// Calls a closure with every entry of a range, with an empty value for one that the store cannot read.
  func forEachEntry(in range: KeyRange, _ body: (StoreEntry<[UInt8]>) async throws -> Void) async throws {
    var rest: KeyRange? = range
    while let range = rest {
      let page = try await storage.page(in: range, limit: CacheStorage.pageSize)
      for entry in page.entries { try await body(entry) }
      rest = page.rest
    }
  }

  private func page(of range: KeyRange, limit: Int, where isIncluded: (String) -> Bool) async throws -> Page {
    let entries = try await storage.page(in: range, limit: limit)
    var page = Page()
    let now = configuration.now()
    for entry in entries.entries {
      guard let stored = StoredEntry(entry.key, entry.value) else {
        page.damagedKeys.append(entry.key)
        continue
      }
      guard isIncluded(stored.response.url) else { continue }
      page.responses.append(HTTPStoredResponse(stored, layout: storage.layout, rules: rules, now: now))
    }
    if entries.rest != nil { page.next = entries.entries.last?.key }
    return page
  }

  /// Returns a URL as the cache writes it.
  private static func url(_ text: String) throws -> String {
    do {
      return try RequestURL(text).text
    } catch {
      throw HTTPCacheError(error)
    }
  }
}
#endif
