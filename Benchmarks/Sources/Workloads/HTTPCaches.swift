import Foundation
import HTTPTypes
import Larder
import LarderHTTPCache
import LarderLMDB

/// Responses that an `HTTPCache` reuses and stores, next to the operations of the store that it needs for them.
public enum HTTPCaches {
  /// The decision on a request with 12 fields for which a response with 12 fields is stored, and the head of the answer.
  public static let decision = Workload("HTTP cache: decision on a request", operationCount: decisionCount) { _ in
    let decision = CacheDecision(on: request, stored: head, at: now.timeIntervalSince1970)
    return {
      var sum = 0
      for _ in 0..<decisionCount { sum += decision.fieldCount() }
      consume(sum)
    }
  }

  /// Hits of a response of 1 KB, next to the reads of the store that each of them makes.
  public static let hits: [(name: String, hit: Workload, reads: Workload)] = [
    pair("MemoryStore") { _ in MemoryStore<[UInt8]>() },
    pair("LMDBStore") { try await LMDBStore(path: $0.newPath(), codec: .raw, durability: .buffered) },
  ]

  /// A body of 100 MB that is stored and reused, next to the same chunks.
  static let comparisons = [
    Comparison(
      storing, beside: [Comparison.Yardstick(chunkWrites, limit: 1 / 0.7)], roundCount: 5),
    Comparison(
      reuse, beside: [Comparison.Yardstick(chunkReads, limit: 1 / 0.8)]),
  ]

  private static let decisionCount = 10_000
  private static let hitCount = 10_000
  private static let bodyLength = 100_000_000

  /// The length of the chunks of a body in the store, and the number of them in one update.
  private static let chunkLength = 65_408
  private static let batchLength = 16

  /// The length of the chunks in which the origin sends a body.
  private static let networkChunkLength = 65_536

  // MARK: Requests and responses

  /// A request with 12 fields, as a browser sends it.
  static let request = HTTPRequest(
    method: .get, scheme: "https", authority: "www.example.com", path: "/articles/7?page=2",
    headerFields: fields([
      ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
      ("Accept-Encoding", "gzip, deflate, br"), ("Accept-Language", "en-US,en;q=0.5"),
      ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
      ("Referer", "https://www.example.com/articles"), ("Cookie", "session=1f4a90c2"), ("DNT", "1"),
      ("Sec-Fetch-Dest", "document"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Site", "same-origin"),
      ("Upgrade-Insecure-Requests", "1"), ("Priority", "u=0, i"),
    ]))

  /// The head of a response with 12 fields.
  static let head = HTTPResponse(
    status: .ok,
    headerFields: fields([
      ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("Server", "nginx"), ("Content-Type", "text/html; charset=utf-8"),
      ("Cache-Control", "public, max-age=31536000, stale-while-revalidate=60"), ("ETag", "\"5f3c-9a81d2\""),
      ("Last-Modified", "Sat, 05 Nov 1994 08:49:37 GMT"), ("Vary", "Accept-Encoding, Accept-Language"),
      ("Accept-Ranges", "bytes"), ("Strict-Transport-Security", "max-age=63072000"),
      ("X-Content-Type-Options", "nosniff"), ("X-Request-ID", "0f8fad5b-d9cb-469f-a165-70867728950e"),
      ("Via", "1.1 proxy"),
    ]))

  private static func fields(_ pairs: [(name: String, value: String)]) -> HTTPFields {
    HTTPFields(pairs.compactMap { name, value in HTTPField.Name(name).map { HTTPField(name: $0, value: value) } })
  }

  /// The time when the response is fresh.
  private static let now = Date(timeIntervalSince1970: 784_111_800)

  static func makeCache(
    _ store: some DataStore<[UInt8]>, _ configuration: HTTPCacheConfiguration = .shared
  ) async throws -> HTTPCache {
    var configuration = configuration
    configuration.capacity = 1_000_000_000
    configuration.largestBody = bodyLength
    configuration.now = { now }
    return try await HTTPCache(store, configuration: configuration)
  }

  /// Sends a request, and reads the whole response.
  ///
  /// - Returns: The number of bytes of the body.
  private static func load(
    _ cache: HTTPCache, forward: @escaping HTTPCache.Forward = { _ in throw Missed() }
  ) async throws -> Int {
    let response = try await cache.response(to: request, forward: forward)
    var count = 0
    for try await chunk in response.body { count += chunk.count }
    return count
  }

  /// The error of a request that was to be answered from the store.
  private struct Missed: Error {}

  // MARK: Hits

  /// Creates the hits of a response over a store, and the reads of the store that each of them makes.
  private static func pair<Store: DataStore<[UInt8]>>(
    _ store: String, _ open: @escaping @Sendable (ScratchFolder) async throws -> Store
  ) -> (name: String, hit: Workload, reads: Workload) {
    let body = [UInt8](repeating: 7, count: 1024)
    @Sendable func filled(_ folder: ScratchFolder) async throws -> (Store, HTTPCache) {
      let store = try await open(folder)
      let cache = try await makeCache(store)
      _ = try await load(cache) { _ in HTTPForwardedResponse(head: head, body: body) }
      // The second request finds the response stored, and the use of it persisted.
      _ = try await load(cache)
      return (store, cache)
    }
    return (
      "cost of a hit of 1 KB over \(store), beyond the reads of the store",
      Workload("hit of 1 KB over \(store)", operationCount: hitCount) { folder in
        let (_, cache) = try await filled(folder)
        return {
          for _ in 0..<hitCount { consume(try await load(cache)) }
        }
      },
      Workload("reads of a hit of 1 KB in \(store)", operationCount: hitCount) { folder in
        let (store, _) = try await filled(folder)
        let response = try await store.keys(in: .prefix("http/r"), limit: 1, order: .ascending)[0]
        let chunk = try await store.keys(in: .prefix("http/b"), limit: 1, order: .ascending)[0]
        // The range has the responses of the URL in all their variants: the last 8 bytes of a key identify one.
        let variants = KeyRange.prefix(StoreKey(bytes: Array(response.bytes.dropLast(8))))
        return {
          for _ in 0..<hitCount {
            consume(try await store.entries(in: variants, limit: 64, order: .ascending))
            consume(try await store.value(forKey: response))
            consume(try await store.value(forKey: chunk))
          }
        }
      }
    )
  }

  // MARK: Large bodies

  private static func openStore(_ folder: ScratchFolder) async throws -> LMDBStore<[UInt8]> {
    try await LMDBStore(path: folder.newPath(), codec: .raw, durability: .buffered)
  }

  /// The body of the origin, in chunks.
  private struct Body: AsyncSequence, AsyncIteratorProtocol, Sendable {
    private let chunk = [UInt8](repeating: 7, count: networkChunkLength)
    private var rest = bodyLength

    func makeAsyncIterator() -> Body { self }

    mutating func next() async -> [UInt8]? {
      guard rest > 0 else { return nil }
      let bytes = rest < networkChunkLength ? Array(chunk[..<rest]) : chunk
      rest -= bytes.count
      return bytes
    }
  }

  private static func loadFromOrigin(_ cache: HTTPCache) async throws -> Int {
    try await load(cache) { _ in
      var head = head
      head.headerFields[.contentLength] = "\(bodyLength)"
      return HTTPForwardedResponse(head: head, body: Body())
    }
  }

  /// Stores a body that is read at the same time.
  private static let storing = Workload("store 100 MB in an HTTP cache over LMDBStore") { folder in
    return {
      let store = try await openStore(folder)
      let cache = try await makeCache(store)
      consume(try await loadFromOrigin(cache))
      // It waits until the response is stored.
      consume(try await cache.response(to: request) { _ in throw Missed() }.head)
      try await store.close()
    }
  }

  private static func chunkKey(_ number: Int) -> StoreKey { StoreKey(integer: number * chunkLength) }

  private static func writeChunks(_ store: LMDBStore<[UInt8]>) async throws {
    let chunk = [UInt8](repeating: 7, count: chunkLength)
    let count = bodyLength / chunkLength
    for first in stride(from: 0, to: count, by: batchLength) {
      let numbers = first..<min(count, first + batchLength)
      try await store.apply(ChangeBatch(numbers.map { .set(chunkKey($0), chunk) }))
    }
  }

  private static let chunkWrites = Workload("store 100 MB in LMDBStore, in chunks of 64 KB, 16 in a batch") { folder in
    return {
      let store = try await openStore(folder)
      try await writeChunks(store)
      try await store.close()
    }
  }

  private static let reuse = Workload("reuse 100 MB from an HTTP cache over LMDBStore") { folder in
    let cache = try await makeCache(openStore(folder))
    consume(try await loadFromOrigin(cache))
    return { consume(try await load(cache)) }
  }

  private static let chunkReads = Workload("get 100 MB from LMDBStore, in chunks of 64 KB") { folder in
    let store = try await openStore(folder)
    try await writeChunks(store)
    return {
      var sum = 0
      for number in 0..<bodyLength / chunkLength { sum += try store.value(forKey: chunkKey(number))?.count ?? 0 }
      consume(sum)
    }
  }
}
