import Foundation
import HTTPTypes
import Larder
import LarderHTTPCache
import LarderJSON
import LarderLMDB
import Testing

@testable import LarderCommand
@testable import StoreAccess

/// Tests of `larder http` on stores that an ``HTTPCache`` has written.
@Suite struct HTTPTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func url(_ kind: StoreKind = .lmdb) -> String { kind.url("proxy", in: folder) }

  private func larder(_ verb: String, _ arguments: String..., kind: StoreKind = .lmdb) async throws -> ToolRun {
    try await ToolRun.run(Tool.path, ["http", verb, url(kind)] + arguments)
  }

  /// Opens the store that the tool inspects, calls a closure, and closes the store.
  private func withStore(_ kind: StoreKind = .lmdb, _ body: (AnyDataStore<[UInt8]>) async throws -> Void) async throws {
    let path = folder.file(kind.fileName("proxy"))
    let store: AnyDataStore<[UInt8]> =
      switch kind {
      case .json: AnyDataStore(try await JSONFileStore<[UInt8]>(path: path, codec: .raw))
      default: AnyDataStore(try await LMDBStore<[UInt8]>(path: path, codec: .raw))
      }
    try await body(store)
    try await store.close()
  }

  private static func get(
    _ path: String, _ cache: HTTPCache, _ fields: HTTPFields, _ body: String = "Hello", request: HTTPFields = [:]
  ) async throws {
    let request = HTTPRequest(
      method: .get, scheme: "https", authority: "api.example", path: path, headerFields: request)
    let response = try await cache.response(to: request) { _ in
      HTTPForwardedResponse(head: HTTPResponse(status: .ok, headerFields: fields), body: Array(body.utf8))
    }
    for try await _ in response.body {}
    // The next request for the URL waits until the response is stored.
    let again = try await cache.response(to: request, policy: .cacheOnly) { _ in throw CancellationError() }
    #expect(again.cacheStatus.isHit)
  }

  /// Stores a fresh response, a stale one, one with several chunks, and two variants.
  private func fill(_ store: AnyDataStore<[UInt8]>) async throws {
    var past = HTTPCacheConfiguration.shared
    past.now = { Date.now - 3_600 }
    try await Self.get("/old", HTTPCache(store, configuration: past), [.cacheControl: "max-age=60", .eTag: "\"a\""])
    let cache = try await HTTPCache(store, configuration: .shared)
    try await Self.get("/users/7", cache, [.cacheControl: "max-age=86400", .contentType: "text/plain"])
    try await Self.get("/users/8", cache, [.cacheControl: "s-maxage=86400, max-age=0", .eTag: "\"b\""])
    try await Self.get("/logo", cache, [.cacheControl: "max-age=86400"], String(repeating: "x", count: 200_000))
    for language in ["de", "en"] {
      try await Self.get(
        "/page", cache, [.cacheControl: "max-age=86400", .vary: "Accept-Language"], language,
        request: [.acceptLanguage: language])
    }
  }

  /// Writes the cache of the examples in the guide.
  static func writeCache(at path: String) async throws {
    let store = try await LMDBStore<[UInt8]>(path: path, codec: .raw)
    var past = HTTPCacheConfiguration.shared
    past.now = { Date.now - 3_600 }
    try await get("/users/8", HTTPCache(store, configuration: past), [.cacheControl: "max-age=60", .eTag: "\"a\""])
    let cache = try await HTTPCache(store, configuration: .shared)
    try await get("/users/7", cache, [.cacheControl: "max-age=86400", .contentType: "text/plain"])
    try await get("/logo.png", cache, [.cacheControl: "max-age=86400"], String(repeating: "x", count: 200_000))
    for language in ["de", "en"] {
      try await get(
        "/page", cache, [.cacheControl: "max-age=86400", .vary: "Accept-Language"], language,
        request: [.acceptLanguage: language])
    }
    try await store.close()
  }

  private func fill(_ kind: StoreKind = .lmdb) async throws {
    try await withStore(kind) { try await fill($0) }
  }

  /// An object that `list --json` and `show --json` print.
  private struct Line: Decodable {
    let url: String
    let method: String
    let status: Int
    let vary: [String]
    let freshness: String
    let freshUntil: Date
    let age: Int
    let bytes: Int
    let length: Int?
    let isComplete: Bool
    let stored: Date
    let fields: [[String]]?
    let selecting: [[String: String?]]?
  }

  private func lines(_ run: ToolRun) throws -> [Line] {
    #expect(run.status == 0 && run.errors.isEmpty, "\(run)")
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    return try run.output.split(separator: "\n").map { try decoder.decode(Line.self, from: Data($0.utf8)) }
  }

  // MARK: Reading

  @Test func `metrics go to standard error`() async throws {
    try await fill()
    let plain = try await larder("stat")
    let metered = try await larder("stat", "--metrics")
    #expect(plain.status == 0 && metered.status == 0 && metered.output == plain.output)
    #expect(plain.errors.isEmpty && metered.errors.contains("open"))
  }

  @Test(
    arguments: [
      (
        ["https://api.example/users/7"],
        #"{"isHit":true,"isStale":false,"forward":null,"validates":false,"candidates":1}"#
      ),
      (
        ["https://api.example/old"],
        #"{"isHit":false,"isStale":false,"forward":"stale","validates":true,"candidates":1}"#
      ),
      (
        ["https://api.example/old", "--field", "Cache-Control: max-stale"],
        #"{"isHit":true,"isStale":true,"forward":null,"validates":false,"candidates":1}"#
      ),
      (
        ["https://api.example/users/8", "--mode", "private"],
        #"{"isHit":false,"isStale":false,"forward":"stale","validates":true,"candidates":1}"#
      ),
      (
        ["https://api.example/page#part", "--field", "Accept-Language: en"],
        #"{"isHit":true,"isStale":false,"forward":null,"validates":false,"candidates":2}"#
      ),
      (
        ["https://api.example/page"],
        #"{"isHit":false,"isStale":false,"forward":"vary-miss","validates":false,"candidates":2}"#
      ),
      (
        ["https://api.example/none"],
        #"{"isHit":false,"isStale":false,"forward":"uri-miss","validates":false,"candidates":0}"#
      ),
      (
        ["https://api.example/users/7", "--field", "Cache-Control: only-if-cached, no-cache"],
        #"{"isHit":false,"isStale":false,"forward":null,"validates":false,"candidates":1}"#
      ),
    ])
  func `explain says why a request is forwarded`(arguments: [String], line: String) async throws {
    try await fill()
    let run = try await ToolRun.run(Tool.path, ["http", "explain", url()] + arguments)
    #expect(run == .done(line + "\n"))
  }

  @Test func `explain refuses other URLs and fields`() async throws {
    try await fill()
    #expect(try await larder("explain", "users/7").status == 64)
    for field in ["no colon", "bad name: x", ": x"] {
      #expect(
        try await larder("explain", "https://api.example/old", "--field", field).failed(64, "--field needs a name"))
    }
  }

  @Test(arguments: [StoreKind.lmdb, .json])
  func `list prints the facts of each response`(kind: StoreKind) async throws {
    try await fill(kind)
    let lines = try lines(try await larder("list", "--json", kind: kind))
    #expect(lines.map { $0.url.dropFirst(19) } == ["/logo", "/old", "/page", "/page", "/users/7", "/users/8"])
    #expect(lines.allSatisfy { $0.method == "GET" && $0.status == 200 && $0.isComplete && $0.fields == nil })
    #expect(lines.map(\.length) == [200_000, 5, 2, 2, 5, 5])
    #expect(lines.map(\.freshness) == ["fresh", "stale", "fresh", "fresh", "fresh", "fresh"])
    #expect(lines[0].bytes > 200_000 && lines[0].bytes < 202_000)
    #expect((3_500...3_700).contains(lines[1].age) && lines[1].freshUntil < .now - 3_000)
    #expect(abs(lines[4].freshUntil.timeIntervalSinceNow - 86_400) < 600 && lines[4].stored < .now + 1)
    #expect(lines[2].vary == ["accept-language"] && lines[4].vary == [])
    // A private cache ignores s-maxage.
    let personal = try self.lines(try await larder("list", "--json", "--mode", "private", kind: kind))
    #expect(personal.map(\.freshness).last == "stale")
    let table = try await larder("list", "--prefix", "https://API.example/users/", kind: kind).output
    let rows = table.split(separator: "\n")
    #expect(rows.count == 3 && rows[0].hasPrefix("STATUS  FRESHNESS"))
    #expect(rows[1].hasSuffix("https://api.example/users/7"))
    #expect(try self.lines(try await larder("list", "--json", "--limit", "2", kind: kind)).count == 2)
  }

  @Test func `show prints fields and bodies`() async throws {
    try await fill()
    let lines = try lines(try await larder("show", "https://api.example/page", "--json"))
    #expect(lines.compactMap { $0.selecting?.first?["accept-language"] ?? nil }.sorted() == ["de", "en"])
    #expect(lines[0].fields?.contains(["Vary", "Accept-Language"]) == true)
    let text = try await larder("show", "https://api.example/users/7").output
    #expect(text.contains("  body:      5 bytes of 5\n") && text.contains("\nContent-Type: text/plain\n"))
    let body = try await larder("show", "https://api.example/logo", "--body").output
    #expect(body == String(repeating: "x", count: 200_000))
    #expect(try await larder("show", "https://api.example/none") == ToolRun(status: 1, output: "", errors: ""))
    #expect(try await larder("show", "no-url").failed(64, "must have a scheme"))
  }

  @Test func `stat counts bodies marks and retired`() async throws {
    try await fill()
    struct Figures: Decodable {
      let bytes, responses, bodies, bodyBytes, marks, retired, retiredBytes, invalidations: Int
    }
    func figures() async throws -> Figures {
      try JSONDecoder().decode(Figures.self, from: Data(try await larder("stat", "--json").output.utf8))
    }
    let before = try await figures()
    #expect(before.responses == 6 && before.bodies == 6 && before.bodyBytes == 200_019 && before.bytes > 200_019)
    #expect(before.marks == 0 && before.retired == 0 && before.invalidations == 0)
    #expect(try await larder("purge", "https://api.example/logo") == .done("{\"purged\":1}\n"))
    let after = try await figures()
    #expect(after.responses == 5 && after.bodyBytes == 19 && after.invalidations == 1)
    #expect(after.retired == 1 && after.retiredBytes > 200_000)
    #expect(try await larder("stat").output.hasPrefix("bytes         \(after.bytes)\nresponses     5\n"))
  }

  // MARK: Removing

  @Test(arguments: [StoreKind.lmdb, .json])
  func `purge removes by URL and by prefix`(kind: StoreKind) async throws {
    try await fill(kind)
    #expect(try await larder("purge", "https://api.example/page", kind: kind) == .done("{\"purged\":2}\n"))
    #expect(
      try await larder("purge", "--prefix", "https://api.example/users/", kind: kind) == .done("{\"purged\":2}\n"))
    let rest = try lines(try await larder("list", "--json", kind: kind))
    #expect(rest.map { $0.url.dropFirst(19) } == ["/logo", "/old"])
    #expect(try await larder("verify", kind: kind).status == 0)
    #expect(try await larder("purge", "--all", kind: kind) == .done("{\"purged\":2}\n"))
    #expect(try await larder("purge", "--all", kind: kind) == .done("{\"purged\":0}\n"))
    #expect(try await larder("verify", kind: kind).status == 0)
    for arguments in [[], ["--all", "--prefix", "https://a/"], ["--prefix", ""]] {
      let run = try await ToolRun.run(Tool.path, ["http", "purge", url(kind)] + arguments)
      #expect(run.status == 64, "\(arguments)")
    }
  }

  @Test func `a running program shares the store`() async throws {
    try await withStore { store in
      try await fill(store)
      let cache = try await HTTPCache(store, configuration: .shared)
      #expect(try lines(try await larder("list", "--json")).count == 6)
      #expect(try await larder("purge", "https://api.example/users/7") == .done("{\"purged\":1}\n"))
      let request = HTTPRequest(method: .get, scheme: "https", authority: "api.example", path: "/users/7")
      let response = try await cache.response(to: request, policy: .cacheOnly) { _ in throw CancellationError() }
      #expect(response.head.status == .gatewayTimeout)
      let verify = try await larder("verify")
      #expect(verify.status == 0 && verify.errors.hasSuffix("no damage\n"), "\(verify)")
    }
  }

  // MARK: Verifying

  @Test(arguments: [StoreKind.lmdb, .json])
  func `an intact cache has no findings`(kind: StoreKind) async throws {
    try await fill(kind)
    // Six responses with their places, and nine chunks.
    #expect(try await larder("verify", kind: kind) == ToolRun(status: 0, output: "", errors: "21 entries, no damage\n"))
  }

  @Test func `a cache that is being written has no findings`() async throws {
    try await withStore { store in
      var configuration = HTTPCacheConfiguration.shared
      (configuration.capacity, configuration.largestBody) = (9_000_000, 4_000_000)
      configuration.retention = .zero
      let cache = try await HTTPCache(store, configuration: configuration)
      let body = String(repeating: "x", count: 2_000_000)
      let isDone = Locked(false)
      async let written: Void = {
        defer { isDone.withLock { $0 = true } }
        for number in 0..<60 {
          try await Self.get("/\(number)", cache, [.cacheControl: "max-age=86400"], number % 2 == 0 ? body : "short")
        }
      }()
      let inspector = try HTTPCacheInspector(store, configuration: .shared)
      var disturbed = 0
      while !isDone.withLock({ $0 }) {
        let verification = try await inspector.verify()
        #expect(verification.report.findings == [])
        if !verification.isComplete { disturbed += 1 }
      }
      try await written
      print("\(disturbed) verifications were disturbed by the writer")
      #expect(try await inspector.verify() == inspector.verify())
      #expect(try await inspector.verify().isComplete)
    }
  }

  /// Entries that a damaged store has lost or changed, and the finding for them.
  enum Damage: CaseIterable {
    case missingChunk, shortChunk, missingRecord, brokenRecord, otherURL, missingPlace, brokenPlace, orphanedChunk
    case missingTotals, otherTotals, unknownEntry

    var message: String {
      switch self {
      case .missingChunk, .shortChunk: "chunks of the body are missing"
      case .missingRecord: "a place in the order of use has no response"
      case .brokenRecord: "the record of the response cannot be read"
      case .otherURL: "the record has the URL or the partition of another key"
      case .missingPlace: "the place of the response in the order of use is missing"
      case .brokenPlace: "a place in the order of use cannot be read"
      case .orphanedChunk: "the chunks of a body belong to no response"
      case .missingTotals, .otherTotals: "the totals have"
      case .unknownEntry: "1 entries of no known kind"
      }
    }
  }

  @Test(arguments: Damage.allCases, [StoreKind.lmdb, .json])
  func `damage is found`(_ damage: Damage, kind: StoreKind) async throws {
    try await fill(kind)
    try await withStore(kind) { store in
      func first(_ prefix: StoreKey) async throws -> StoreEntry<[UInt8]> {
        try #require(try await store.entries(in: .prefix(prefix), limit: 1, order: .ascending).first)
      }
      let (chunk, record, place) = (try await first("http/b"), try await first("http/r"), try await first("http/o"))
      let totals = try await first("http/t")
      let change: BatchChange<[UInt8]> =
        switch damage {
        case .missingChunk: .remove(chunk.key)
        case .shortChunk: .set(chunk.key, chunk.value.dropLast())
        case .missingRecord: .remove(record.key)
        case .brokenRecord: .set(record.key, record.value.dropLast())
        case .otherURL: .set(record.key, record.value.map { $0 == UInt8(ascii: "/") ? UInt8(ascii: "!") : $0 })
        case .missingPlace: .remove(place.key)
        case .brokenPlace: .set(place.key, Array(place.value.reversed()))
        case .orphanedChunk:
          .set(StoreKey("http/b\(String(repeating: "1", count: 16))\(String(repeating: "\0", count: 8))"), [1])
        case .missingTotals: .remove(totals.key)
        case .otherTotals: .set(totals.key, totals.value.enumerated().map { $0 == 8 ? $1 ^ 1 : $1 })
        case .unknownEntry: .set("http/z", [])
        }
      try await store.apply([change])
    }
    let run = try await larder("verify", kind: kind)
    #expect(run.status == 2 && run.output.contains(damage.message), "\(run)")
    // Every line is an object.
    for line in run.output.split(separator: "\n") { _ = try JSONSerialization.jsonObject(with: Data(line.utf8)) }
  }

  @Test func `any flipped byte of a record is found or harmless`() async throws {
    try await fill()
    var records: [StoreEntry<[UInt8]>] = []
    try await withStore { store in
      records = try await store.entries(in: .prefix("http/r"), limit: .max, order: .ascending)
      let inspector = try HTTPCacheInspector(store, configuration: .shared)
      let record = try #require(records.first)
      var found = 0
      for position in record.value.indices {
        var bytes = record.value
        bytes[position] ^= 0xFF
        try await store.apply([.set(record.key, bytes)])
        if try await !inspector.verify().report.findings.isEmpty { found += 1 }
        // Never a crash, and never a response for another URL.
        let listed = try await inspector.responses(to: "https://api.example/logo")
        #expect(listed.count <= 1)
      }
      // The others are times, the status code and the text of fields, which only a codec with a checksum protects.
      #expect(found > record.value.count / 2, "\(found) of \(record.value.count)")
      try await store.apply([.set(record.key, record.value)])
    }
    #expect(try await larder("verify").status == 0)
  }

  // MARK: Refusals

  @Test func `a store without a cache is refused`() async throws {
    #expect(try await larder("list").failed(66, "Check the URL"))
    try await fill()
    #expect(try await larder("list", "--key-prefix", "other/").failed(66, "no HTTP cache with the prefix other/"))
    #expect(try await larder("list", "--key-prefix", "").failed(64, "--key-prefix is empty"))
    let values = StoreKind.json.url("values", in: folder)
    #expect(try await Tool.larder("set", values, "k", "1") == .done())
    #expect(try await Tool.larder("http", "list", values).failed(65, "an HTTP cache needs the codec raw"))
  }
}
