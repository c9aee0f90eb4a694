#if Configuration && SQLite
import Configuration
import Foundation
import Larder
import LarderBatching
import LarderCache
import LarderCBOR
import LarderConfiguration
import LarderExpiry
import LarderJSON
import LarderMirror
import LarderSQLite
import LarderStoreQueue
import LarderTesting
import LarderWorker
import TestSupport
import Testing

/// The code of the guide, and of the landing page.
@Suite struct ConfigurationGuideTests {
  private struct Mail: Codable, Sendable {
    var to: String
  }

  private struct Session: Codable, Sendable, Equatable {
    var user: String
  }

  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  /// The stack of the guide, in a folder of its own.
  @Test func `a stack`() async throws {
    let path = folder.path("app.json")
    try """
    {"stores": {"sessions": {"url": "sqlite:\(folder.path("shop.db"))#sessions", "batched": true,
    "cached": {"entries": 10000}, "expiring": {"sliding": "30m"}}}}
    """.write(toFile: path, atomically: true, encoding: .utf8)

    // snippet.open-a-stack
    let stacks = Stacks(
      sources: [.arguments(), .environment(), try .json(path: path)],
      stores: [JSONFileStoreProvider(), SQLiteStoreProvider()],
      layers: [BatchedLayerProvider(), CachedLayerProvider(), ExpiringLayerProvider()])
    let sessions = try await stacks.open("sessions", of: Session.self, codec: .cbor())
    // snippet.end

    #expect(
      try stacks.describe("sessions")
        == "sessions: a store of the kind sqlite:\n  expiring: sliding = 1800.0 seconds\n  cached: entries = 10000\n  batched"
    )
    #expect(
      stacks.describe().contains(
        "    cached.entries: the most entries in memory; required; a whole number of at least 1"))
    try await sessions.setValue(Session(user: "Ada"), forKey: "7f3a")
    #expect(try await sessions.value(forKey: "7f3a")?.user == "Ada")
    #expect(sessions.expires)
    try await sessions.close()
  }

  @Test func `the names of all stacks`() async throws {
    let file = try ConfigurationSource.json(
      Data(#"{"stores": {"sesions": {"url": "json:sessions.json"}, "mails": {"url": "memory:"}}}"#.utf8),
      name: "app.json")

    // snippet.open-a-stack-2
    let stacks = Stacks(
      sources: [file, .environment(["STORES_SESSIONS_URL": "memory:"])], stores: [MemoryStoreProvider()],
      names: ["sessions", "mails"])
    // snippet.end

    let error = await expectStoreError(.invalidArgument) {
      try await stacks.open("sessions", of: Session.self, codec: .cbor())
    }
    #expect(error?.message.hasPrefix("stores.sesions.url in app.json is of no stack of the program") == true)
  }

  /// The stacks of the guide, over files.
  @Test func `failures are heard of`() async throws {
    let failures = Locked<[LostChanges]>([])
    let mirrors = Locked<[String: any StoreMirror]>([:])
    let logged = Locked<[String]>([])
    @Sendable func log(_ text: String) { logged.withLock { $0.append(text) } }

    // snippet.hear-of-failures
    let writeBehind = WriteBehindLayerProvider { lost in
      log("\(lost.stack) lost \(lost.changes.count) changes: \(lost.error)")
      failures.withLock { $0.append(lost) }
    }
    let mirrored = MirroredLayerProvider { stack, error in
      log("\(stack) must be repaired: \(error)")
    } onOpen: { stack, mirror in
      mirrors.withLock { $0[stack] = mirror }
    }
    // snippet.end

    let document = """
      {"stores": {"notes": {"url": "json:\(folder.path("notes.json"))", "mirrored": {"secondary": "newnotes"},
      "writeBehind": true}, "newnotes": {"url": "sqlite:\(folder.path("notes.db"))"}}}
      """
    let stacks = Stacks(
      sources: [try .json(Data(document.utf8), name: "app.json")],
      stores: [JSONFileStoreProvider(), SQLiteStoreProvider()], layers: [mirrored, writeBehind])
    let notes = try await stacks.open("notes", of: Double.self, codec: .json())
    try await mirrors.withLock { $0["notes"] }?.repair()
    try await notes.setValue(.infinity, forKey: "a")
    await expectStoreError(.encodingFailed) { try await notes.flushing?.flush() }
    #expect(logged.withLock { $0.first }?.hasPrefix("notes lost 1 changes: ") == true)
    failures.withLock(\.self).last?.free()
    try await notes.setValue(1, forKey: "a")
    try await notes.close()
    let moved = try await SQLiteStore<Double>(path: folder.path("notes.db"), codec: .json())
    #expect(try moved.value(forKey: "a") == 1)
    try await moved.close()
  }

  @Test func `a queue and its worker`() async throws {
    let document = """
      {"stores": {"mails": {"url": "sqlite:\(folder.path("shop.db"))#mails", "queue": {"prefix": "mails/"}}},
      "workers": {"mail": {"concurrency": 4, "lease": "1m"}}}
      """
    let stacks = Stacks(
      sources: [try .json(Data(document.utf8), name: "app.json")],
      stores: [SQLiteStoreProvider(), MemoryStoreProvider()],
      layers: [QueueLayerProvider(), ExpiringLayerProvider(), CachedLayerProvider()])
    let sent = Locked<[String]>([])
    @Sendable func send(_ mail: Mail) async throws { sent.withLock { $0.append(mail.to) } }

    // snippet.queues-and-workers
    let mails = try await stacks.openQueue("mails", of: Mail.self, codec: .cbor())
    let settings = try stacks.settings(QueueWorker.settings, of: "mail", in: "workers")
    let worker = QueueWorker([QueueHandler(mails, settings: settings) { try await send($0.value) }], settings: settings)
    // snippet.end

    #expect(settings.count("concurrency") == 4)
    #expect(settings.duration("lease") == .seconds(60))
    try await mails.enqueue(Mail(to: "Ada"))
    async let result: Void = worker.run()
    try await waitUntil { worker.statistics().processed == 1 }
    worker.shutDown()
    try await result
    #expect(sent.withLock(\.self) == ["Ada"])
    try await mails.close()
  }

  @Test func `wrong queues and workers are named`() async throws {
    func stacks(_ variables: [String: String]) -> Stacks {
      Stacks(
        sources: [.environment(variables)], stores: [MemoryStoreProvider()],
        layers: [QueueLayerProvider(), ExpiringLayerProvider()])
    }
    let store = ["STORES_S_URL": "memory:"]
    let noQueue = await expectStoreError(.unsupported) {
      try await stacks(store).openQueue("s", of: Mail.self, codec: .cbor())
    }
    #expect(noQueue?.message.hasPrefix("stores.s.url is the address of a store and not of a queue") == true)
    let expiring = store.merging(["STORES_S_QUEUE_PREFIX": "q/", "STORES_S_EXPIRING_AFTER": "1h"]) { $1 }
    let lost = await expectStoreError(.invalidArgument) {
      try await stacks(expiring).openQueue("s", of: Mail.self, codec: .cbor())
    }
    #expect(lost?.message == "stores.s.queue contradicts stores.s.expiring; set one of them")
    for (name, value, text) in [
      ("WORKERS_MAIL_CONCURENCY", "4", "did you mean WORKERS_MAIL_CONCURRENCY?"),
      ("WORKERS_MAIL_CONCURRENCY", "0", "workers.mail.concurrency in"),
      ("WORKERS_MAIL_LEASE", "60", "workers.mail.lease in"),
    ] {
      let error = #expect(throws: StoreError.self) {
        try stacks([name: value]).settings(QueueWorker.settings, of: "mail", in: "workers")
      }
      #expect(error?.message.contains(text) == true, "\(error?.message ?? "")")
    }
  }

  @Test func `another source`() async throws {
    // snippet.read-another-source
    let values = InMemoryProvider(values: ["stores.sessions.url": "memory:"])
    let source = ConfigurationSource(values.snapshot(), names: ["stores.sessions.url"])
    // snippet.end
    let stacks = Stacks(sources: [source], stores: [MemoryStoreProvider()])
    try await stacks.open("sessions", codec: .json(Session.self)).close()
  }

  @Test func `the first source decides`() async throws {
    let stacks = Stacks(
      sources: [
        .arguments(["server", "--stores-s-cached-entries=5"]),
        .environment(["STORES_S_CACHED_ENTRIES": "7", "STORES_S_CACHED_TTL": "1m"]),
        try .json(
          Data(#"{"stores": {"s": {"url": "memory:", "cached": {"entries": 9, "missing": "1s"}}}}"#.utf8),
          name: "app.json"),
      ], stores: [MemoryStoreProvider()], layers: [CachedLayerProvider()])
    #expect(
      try stacks.describe("s")
        == "s: a store of the kind memory:\n  cached: entries = 5, missing = 1.0 seconds, ttl = 60.0 seconds")
  }

  #if ConfigurationYAML
  @Test func yaml() async throws {
    try """
    stores:
      s:
        url: "memory:"
        cached: {entries: 9}
        expiring: true
    """.write(toFile: folder.path("app.yaml"), atomically: true, encoding: .utf8)
    let stacks = Stacks(
      sources: [try .yaml(path: folder.path("app.yaml"))], stores: [MemoryStoreProvider()],
      layers: [CachedLayerProvider(), ExpiringLayerProvider()])
    #expect(try stacks.describe("s") == "s: a store of the kind memory:\n  expiring\n  cached: entries = 9")
    let wrong = Stacks(
      sources: [try .yaml(path: folder.path("app.yaml"))], stores: [MemoryStoreProvider()],
      layers: [CachedLayerProvider()])
    let error = #expect(throws: StoreError.self) { try wrong.describe("s") }
    #expect(error?.message.hasPrefix("stores.s.expiring in ") == true)
  }
  #endif

  // A layer of one's own.

  struct LimitedCodec<Base: Codec>: Codec {
    let base: Base
    let limit: Int

    init(_ base: Base, limit: Int) {
      (self.base, self.limit) = (base, limit)
    }

    var name: String { base.name }
    var format: CodecFormat { base.format }

    func encode(_ value: Base.Value, into bytes: inout [UInt8], context: ValueContext) throws {
      let count = bytes.count
      try base.encode(value, into: &bytes, context: context)
      guard bytes.count - count <= limit else {
        throw StoreError(.valueTooLarge, during: .apply, store: "limited", message: "the value is too large")
      }
    }

    func decode(_ bytes: RawSpan, context: ValueContext) throws -> Base.Value {
      try base.decode(bytes, context: context)
    }
  }

  // snippet.offer-a-layer
  struct CheckedLayerProvider: LayerProvider {
    var name: String { "checked" }
    var summary: String { "refuses values that are larger than a limit" }
    var place: LayerPlace { LayerPlace(distance: 65) }
    var settings: [LayerSetting] {
      [LayerSetting("limit", .bytes, "the largest value", required: "set a size, such as 1MB")]
    }

    func open<Value: Sendable>(
      codec: some Codec<Value>, over base: some OpenableStore, settings: LayerSettings
    ) async throws -> AnyDataStore<Value> {
      let limited = LimitedCodec(codec, limit: settings.byteCount("limit") ?? 0)
      return try await base.open(codec: limited)
    }
  }
  // snippet.end

  @Test func `a layer of ones own`() async throws {
    let source = ConfigurationSource.environment([
      "STORES_S_URL": "json:\(folder.path("s"))", "STORES_S_CHECKED_LIMIT": "10B",
    ])
    let stacks = Stacks(sources: [source], stores: [JSONFileStoreProvider()], layers: [CheckedLayerProvider()])
    let store = try await stacks.open("s", codec: .json(String.self))
    try await store.setValue("short", forKey: "a")
    await expectStoreError(.encodingFailed) { try await store.setValue("much too long", forKey: "a") }
    #expect(try await store.value(forKey: "a") == "short")
    try await store.close()
    let missing = Stacks(
      sources: [.environment(["STORES_S_URL": "memory:", "STORES_S_CHECKED": "true"])], stores: [MemoryStoreProvider()],
      layers: [CheckedLayerProvider()])
    let error = #expect(throws: StoreError.self) { try missing.describe("s") }
    #expect(error?.message == "stores.s.checked.limit is required; set a size, such as 1MB")
  }

  @Test func `settings in a store`() async throws {
    let path = folder.path("settings.db")
    // snippet.change-settings-while-programs-run
    let store = try await SQLiteStore<JSONText>(path: path, codec: .jsonText)
    let settings = try await StoreConfigProvider(store)
    let reader = ConfigReader(provider: settings)
    let rate = reader.int(forKey: "limits.rate", default: 100)
    // snippet.end
    #expect(rate == 100)
    try await store.setValue(JSONText("250"), forKey: "limits.rate")
    try await waitUntil { reader.int(forKey: "limits.rate", default: 100) == 250 }
    try await store.close()
  }

  @Test func `settings in a configured store`() async throws {
    let source = ConfigurationSource.environment(["STORES_SETTINGS_URL": "sqlite:\(folder.path("settings.db"))"])
    let stacks = Stacks(sources: [source], stores: [SQLiteStoreProvider()])

    // snippet.change-settings-while-programs-run-2
    func settings(in store: some ObservableStore<JSONText>) async throws -> ConfigReader {
      ConfigReader(provider: try await StoreConfigProvider(store))
    }

    let store = try await stacks.open("settings", of: JSONText.self, codec: .jsonText)
    guard let observable = store.observation else { return }
    let reader = try await settings(in: observable)
    // snippet.end

    try await store.setValue(JSONText("250"), forKey: "limits.rate")
    try await waitUntil { reader.int(forKey: "limits.rate", default: 100) == 250 }
    try await store.close()
  }
}
#endif
