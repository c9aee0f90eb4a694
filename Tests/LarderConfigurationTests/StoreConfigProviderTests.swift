#if Configuration && LMDB && SQLite
import Configuration
import ConfigurationTesting
import Foundation
import Larder
import LarderConfiguration
import LarderJSON
import LarderLMDB
import LarderObservation
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

/// Settings in a store, as a provider of swift-configuration.
@Suite struct StoreConfigProviderTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  /// The settings that the suite of swift-configuration expects.
  static let settings: [StoreKey: String] = [
    "string": #""Hello""#, "other.string": #""Other Hello""#, "int": "42", "other.int": "24", "double": "3.14",
    "other.double": "2.72", "bool": "true", "other.bool": "false", "bytes": #""bWFnaWM=""#,
    "other.bytes": #""bWFnaWMy""#,
    "stringy.array": #"["Hello", "World"]"#, "other.stringy.array": #"["Hello", "Swift"]"#, "inty.array": "[42, 24]",
    "other.inty.array": "[16, 32]", "doubly.array": "[3.14, 2.72]", "other.doubly.array": "[0.9, 1.8]",
    "booly.array": "[true, false]", "other.booly.array": "[false, true, true]",
    "byteChunky.array": #"["bWFnaWM=", "bWFnaWMy"]"#,
    "other.byteChunky.array": #"["bWFnaWM=", "bWFnaWMy", "bWFnaWM="]"#,
  ]

  private func check(_ store: some ObservableStore<JSONText>) async throws {
    for (key, text) in Self.settings { try await store.setValue(JSONText(text), forKey: key) }
    try await ProviderCompatTest(provider: StoreConfigProvider(store)).runTest()
    try await store.close()
  }

  @Test func `memory passes the suite of providers`() async throws {
    try await check(MemoryStore<JSONText>().observable())
  }

  @Test func `json passes the suite of providers`() async throws {
    try await check(try await JSONFileStore(path: folder.path("s"), codec: .jsonText).observable())
  }

  @Test func `sqlite passes the suite of providers`() async throws {
    try await check(try await SQLiteStore(path: folder.path("s"), codec: .jsonText))
  }

  @Test func `lmdb passes the suite of providers`() async throws {
    try await check(try await LMDBStore(path: folder.path("s"), codec: .jsonText))
  }

  @Test func `a prefix selects settings`() async throws {
    let store = MemoryStore<JSONText>().observable()
    try await store.setValue(JSONText("1"), forKey: "app/rate")
    try await store.setValue(JSONText("2"), forKey: "rate")
    let provider = try await StoreConfigProvider(store, prefix: "app/")
    #expect(try provider.value(forKey: "rate", type: .int).value?.content == .int(1))
    #expect(try await provider.fetchValue(forKey: "rate", type: .int).value?.content == .int(1))
    #expect(try provider.value(forKey: "app/rate", type: .int).value == nil)
  }

  @Test func `a value of another type is an error`() async throws {
    let store = MemoryStore<JSONText>().observable()
    for (key, text) in ["text": #""x""#, "object": #"{"a": 1}"#, "null": "null", "mixed": #"[1, "a"]"#] {
      try await store.setValue(JSONText(text), forKey: StoreKey(key))
    }
    let provider = try await StoreConfigProvider(store)
    for key in ["text", "object", "null", "mixed"] as [AbsoluteConfigKey] {
      #expect(throws: (any Error).self, "\(key)") { try provider.value(forKey: key, type: .int) }
      await #expect(throws: (any Error).self, "\(key)") { try await provider.fetchValue(forKey: key, type: .int) }
    }
    #expect(try provider.value(forKey: "text", type: .string).value?.content == .string("x"))
  }

  @Test func `secrets are marked`() async throws {
    let store = MemoryStore<JSONText>().observable()
    try await store.setValue(JSONText(#""hunter2""#), forKey: "db.password")
    try await store.setValue(JSONText("1"), forKey: "db.port")
    let provider = try await StoreConfigProvider(store, secrets: .dynamic { key, _ in key.hasSuffix("password") })
    #expect(try provider.value(forKey: "db.password", type: .string).value?.isSecret == true)
    #expect(try await provider.fetchValue(forKey: "db.password", type: .string).value?.isSecret == true)
    #expect(try provider.value(forKey: "db.port", type: .int).value?.isSecret == false)
  }

  /// Another object has the file open, as another process would.
  private func checkChange(
    _ reading: some ObservableStore<JSONText>, _ writing: some ObservableStore<JSONText>
  ) async throws {
    try await writing.setValue(JSONText("1"), forKey: "rate")
    let reader = ConfigReader(provider: try await StoreConfigProvider(reading))
    try await reader.watchInt(forKey: "rate", default: 0) { updates in
      var updates = updates.makeAsyncIterator()
      #expect(try await updates.next() == 1)
      try await writing.setValue(JSONText("2"), forKey: "other")
      try await writing.setValue(JSONText("5"), forKey: "rate")
      #expect(try await updates.next() == 5)
      try await writing.removeValue(forKey: "rate")
      #expect(try await updates.next() == 0)
    }
    try await reading.close()
    try await writing.close()
  }

  @Test func `a change of another object is seen over SQLite`() async throws {
    let path = folder.path("s")
    try await checkChange(
      try await SQLiteStore(path: path, codec: .jsonText), try await SQLiteStore(path: path, codec: .jsonText))
  }

  @Test func `a change of another object is seen over LMDB`() async throws {
    let path = folder.path("s")
    try await checkChange(
      try await LMDBStore(path: path, codec: .jsonText), try await LMDBStore(path: path, codec: .jsonText))
  }

  @Test func `snapshots are consistent and watched`() async throws {
    let store = MemoryStore<JSONText>().observable()
    try await store.apply([.set("a", JSONText("1")), .set("b", JSONText("1"))])
    let provider = try await StoreConfigProvider(store)
    try await provider.watchSnapshot { snapshots in
      var snapshots = snapshots.makeAsyncIterator()
      for number in 2...100 {
        try await store.apply([.set("a", JSONText("\(number)")), .set("b", JSONText("\(number)"))])
      }
      var latest: ConfigContent?
      while latest != .int(100), let snapshot = try await snapshots.next() {
        latest = try snapshot.value(forKey: "a", type: .int).value?.content
        #expect(try snapshot.value(forKey: "b", type: .int).value?.content == latest)
      }
    }
  }

  @Test func `values stay while the store cannot be read`() async throws {
    let (base, clock) = (MemoryStore<JSONText>().faulty(), ManualClock())
    let store = base.observable()
    try await store.setValue(JSONText("1"), forKey: "rate")
    let provider = try await StoreConfigProvider(store, clock: clock)
    base.schedule(.error(.corrupted), on: .entries, number: 1)
    try await store.setValue(JSONText("2"), forKey: "rate")
    try await waitUntil { clock.sleeperCount > 0 }
    #expect(try provider.value(forKey: "rate", type: .int).value?.content == .int(1))
    clock.advance(by: .seconds(60))
    try await waitUntil { try provider.value(forKey: "rate", type: .int).value?.content == .int(2) }
  }

  @Test func `too many settings are refused`() async throws {
    let store = MemoryStore<JSONText>().observable()
    let value = try JSONText("1")
    try await store.apply(ChangeBatch((0...10_000).map { .set(StoreKey("\($0)"), value) }))
    await expectStoreError(.unsupported) { try await StoreConfigProvider(store) }
  }

  @Test func `too many bytes of settings are refused`() async throws {
    let store = MemoryStore<JSONText>().observable()
    // 16 values of almost 1 MiB fit, and 17 do not.
    let value = JSONText(string: String(repeating: "a", count: (1 << 20) - 100))
    for number in 1...16 { try await store.setValue(value, forKey: StoreKey("large\(number)")) }
    let clock = ManualClock()
    let provider = try await StoreConfigProvider(store, clock: clock)
    try await store.apply([.set("large17", value), .set("rate", JSONText("1"))])
    try await waitUntil { clock.sleeperCount > 0 }
    #expect(try provider.value(forKey: "rate", type: .int).value == nil)
    await expectStoreError(.unsupported) { try await StoreConfigProvider(store) }
    try await store.removeValue(forKey: "large17")
    clock.advance(by: .seconds(60))
    try await waitUntil { try provider.value(forKey: "rate", type: .int).value?.content == .int(1) }
  }

  /// A watcher leaves nothing behind, neither after many changes nor after it has ended.
  @Test func `many changes leave nothing`() async throws {
    let store = MemoryStore<JSONText>().observable()
    try await store.setValue(JSONText("0"), forKey: "rate")
    weak var released: StoreConfigProvider<ObservingStore<MemoryStore<JSONText>>>?
    do {
      let provider = try await StoreConfigProvider(store)
      released = provider
      let count = TestDepth.isShort ? 2_000 : 1_000_000
      try await provider.watchValue(forKey: "rate", type: .int) { updates in
        for number in 1...count { try await store.setValue(JSONText("\(number)"), forKey: "rate") }
        for await update in updates {
          if try update.get().value?.content == .int(count) { break }
        }
      }
    }
    try await waitUntil { released == nil }
  }
}
#endif
