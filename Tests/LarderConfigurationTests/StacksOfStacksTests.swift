#if Configuration && SQLite && Crypto
import Foundation
import Larder
import LarderBatching
import LarderCache
import LarderConfiguration
import LarderCrypto
import LarderExpiry
import LarderJSON
import LarderMirror
import LarderObservation
import LarderSQLite
import LarderStoreQueue
import LarderTesting
import TestSupport
import Testing

/// Layers that use another stack, and layers that report failures.
@Suite struct StacksOfStacksTests {
  private struct Uncomparable: Codable, Sendable {
    var text: String
  }

  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func stacks(
    _ document: String, _ layers: [any LayerProvider], more: [any StoreProvider] = []
  ) throws -> Stacks {
    let text = "{\"stores\": \(document.replacing("FOLDER", with: folder.path("")))}"
    return Stacks(
      sources: [try .json(Data(text.utf8), name: "app.json")],
      stores: [JSONFileStoreProvider(), SQLiteStoreProvider(), MemoryStoreProvider()] + more, layers: layers)
  }

  /// A mirror whose failures and openings are noted.
  private final class Mirrors: Sendable {
    let failures = Locked<[String]>([])
    let opened = Locked<[String: any StoreMirror]>([:])

    var layer: MirroredLayerProvider {
      MirroredLayerProvider { [self] stack, _ in
        failures.withLock { $0.append(stack) }
      } onOpen: { [self] stack, mirror in
        opened.withLock { $0[stack] = mirror }
      }
    }
  }

  private static let mirrored = """
    {"s": {"url": "json:FOLDER/old", "mirrored": {"secondary": "new"}, "cached": {"entries": 10, "ttl": "1h"}},
    "new": {"url": "json:FOLDER/new"}}
    """

  @Test func `a mirror moves a stack`() async throws {
    let old = try await JSONFileStore<Int>(path: folder.path("old"), codec: .json())
    try await old.setValue(1, forKey: "a")
    try await old.close()
    let mirrors = Mirrors()
    let store = try await stacks(Self.mirrored, [mirrors.layer, CachedLayerProvider()]).open(
      "s", codec: .json(Int.self))
    try await store.setValue(2, forKey: "b")
    let mirror = try #require(mirrors.opened.withLock { $0["s"] })
    #expect(!mirror.isSynchronized)
    #expect(try await mirror.repair().repairedCount == 1)
    #expect(mirror.isSynchronized)
    try await mirror.promoteSecondary()
    #expect(mirror.isSwitched)
    try await mirror.forEachDifference(in: .all, batchSize: 10) { Issue.record("\($0.key) differs") }
    try await store.close()
    // Both stores are exclusive, so they are closed. Each has the codec of the stack.
    for path in ["old", "new"] {
      let store = try await JSONFileStore<Int>(path: folder.path(path), codec: .json())
      #expect(try await store.entries(in: .all, limit: 9, order: .ascending).map(\.value) == [1, 2])
      try await store.close()
    }
    #expect(mirrors.failures.withLock(\.self) == [])
  }

  @Test func `a failure of the secondary is reported`() async throws {
    let mirrors = Mirrors()
    let store = try await stacks(
      #"{"s": {"url": "json:FOLDER/s", "mirrored": {"secondary": "o"}}, "o": {"url": "failing:"}}"#, [mirrors.layer],
      more: [FailingStoreProvider()]
    ).open("s", codec: .json(Int.self))
    try await store.setValue(1, forKey: "a")
    #expect(mirrors.failures.withLock(\.self) == ["s"])
    #expect(try await store.value(forKey: "a") == 1)
    try await store.close()
  }

  @Test func `a mirror that does not fit is named and closes both stores`() async throws {
    let keys = try TemporaryFolder()
    let ring = try await KeyRing.open(in: .file(keys.path("keys")), createsIfMissing: true)
    let layers: [any LayerProvider] = [
      Mirrors().layer, EncryptedLayerProvider(rings: ["main": ring]), ExpiringLayerProvider(),
    ]
    let plain =
      #"{"s": {"url": "json:FOLDER/s", "mirrored": {"secondary": "o"PLAIN}, "encrypted": {"ring": "main"}}, "#
      + #""o": {"url": "json:FOLDER/o"}}"#
    let refused = await expectStoreError(.unsupported) {
      try await stacks(plain.replacing("PLAIN", with: ""), layers).open("s", codec: .json(Int.self))
    }
    #expect(refused?.message.hasPrefix("stores.s.mirrored does not fit: the values are encrypted") == true)
    // Nothing is open, or the exclusive stores would be locked.
    let allowed = try await stacks(plain.replacing("PLAIN", with: #", "plain": true"#), layers)
      .open("s", codec: .json(Int.self))
    try await allowed.close()

    let expiring =
      #"{"s": {"url": "json:FOLDER/a", "mirrored": {"secondary": "o"}}, "#
      + #""o": {"url": "json:FOLDER/b", "expiring": true}}"#
    let expired = await expectStoreError(.unsupported) {
      try await stacks(expiring, layers).open("s", codec: .json(Int.self))
    }
    #expect(expired?.message.hasPrefix("stores.s.mirrored does not fit: ") == true)

    let uncomparable = await expectStoreError(.unsupported) {
      try await stacks(Self.mirrored, [Mirrors().layer, CachedLayerProvider()]).open(
        "s", codec: .json(Uncomparable.self))
    }
    #expect(
      uncomparable?.message
        == "stores.s.mirrored needs values that it can compare; let Uncomparable conform to Equatable")
    #expect(!FileManager.default.fileExists(atPath: folder.path("old")))
  }

  @Test func `copies outlive the process`() async throws {
    let stacks = try stacks(
      """
      {"s": {"url": "sqlite:FOLDER/s", "tiered": {"cache": "copies", "ttl": "1h"}},
      "t": {"url": "json:FOLDER/t", "tiered": {"cache": "copies"}}, "copies": {"url": "json:FOLDER/copies"}}
      """, [TieredLayerProvider()])
    let store = try await stacks.open("s", codec: .json(Int.self))
    try await store.setValue(1, forKey: "a")
    #expect(try await store.value(forKey: "a") == 1)
    try await store.close()
    // The cache is exclusive, so it is closed, and another stack can use it, with its own keys.
    let other = try await stacks.open("t", codec: .json(Int.self))
    #expect(try await other.value(forKey: "a") == nil)
    await expectStoreError(.locked) { try await stacks.open("s", codec: .json(Int.self)) }
    try await other.close()
    let copies = try await JSONFileStore(path: folder.path("copies"), codec: .raw)
    #expect(try copies.keys(in: .all, limit: 9, order: .ascending) == ["s/a"])
    try await copies.close()
  }

  @Test func `copies that could be wrong or plain are refused`() async throws {
    let keys = try TemporaryFolder()
    let ring = try await KeyRing.open(in: .file(keys.path("keys")), createsIfMissing: true)
    let layers: [any LayerProvider] = [TieredLayerProvider(), EncryptedLayerProvider(rings: ["main": ring])]
    let undated = await expectStoreError(.invalidArgument) {
      try await stacks(
        #"{"s": {"url": "sqlite:FOLDER/s", "tiered": {"cache": "o"}}, "o": {"url": "json:FOLDER/o"}}"#, layers
      ).open("s", codec: .json(Int.self))
    }
    #expect(undated?.message.hasPrefix("stores.s.tiered.ttl is required") == true)
    let encrypted =
      #"{"s": {"url": "json:FOLDER/e", "encrypted": {"ring": "main"}, "tiered": {"cache": "o"}}, "o": OTHER}"#
    let plain = await expectStoreError(.unsupported) {
      try await stacks(encrypted.replacing("OTHER", with: #"{"url": "json:FOLDER/o"}"#), layers)
        .open("s", codec: .json(Int.self))
    }
    #expect(plain?.message.hasPrefix("stores.s.tiered does not fit: the values are encrypted") == true)
    // Nothing is open, or the exclusive stores would be locked.
    let store = try await stacks(
      encrypted.replacing("OTHER", with: #"{"url": "json:FOLDER/p", "encrypted": {"ring": "main"}}"#), layers
    ).open("s", codec: .json(Int.self))
    try await store.close()
  }

  @Test(arguments: [
    (
      #"{"s": {"url": "memory:a", "mirrored": {"secondary": "o"}}, "o": {"url": "memory:b", "mirrored": {"secondary": "s"}}}"#,
      "stores.o.mirrored.secondary is s, which uses this stack itself"
    ),
    (
      #"{"s": {"url": "json:FOLDER/s", "mirrored": {"secondary": "o"}}, "o": {"url": "json:FOLDER/s"}}"#,
      "stores.s.mirrored.secondary is o, which has the same address"
    ),
    (#"{"s": {"url": "memory:a", "mirrored": {"secondary": "o"}}}"#, "stores.o.url is missing"),
    (
      #"{"s": {"url": "memory:a", "mirrored": {"secondary": "o"}}, "o": {"url": "memory:b", "batchd": true}}"#,
      "stores.o.batchd in app.json is no setting"
    ),
    (
      #"{"s": {"url": "memory:a", "mirrored": {"secondary": "o"}}, "o": {"url": "memory:b", "queue": {"prefix": "q/"}}}"#,
      "stores.s.mirrored.secondary is o, which is a queue"
    ),
  ]) func `a wrong use of another stack is named`(_ document: String, _ text: String) async throws {
    let error = await expectStoreError(.invalidArgument) {
      try await stacks(document, [Mirrors().layer, QueueLayerProvider()]).open("s", codec: .json(Int.self))
    }
    #expect(error?.message.hasPrefix(text) == true, "\(error?.message ?? "")")
  }

  @Test func `an observable stack reports its changes`() async throws {
    let store = try await stacks(
      #"{"s": {"url": "json:FOLDER/s", "observable": true, "cached": {"entries": 5}}}"#,
      [CachedLayerProvider(), ObservableLayerProvider()]
    ).open("s", codec: .json(Int.self))
    let observable = try #require(store.observation)
    let changes = Locked<[StoreChange]>([])
    let observation = observable.observe(.all) { event in
      if case .changed(let new) = event { changes.withLock { $0 += new } }
    }
    try await store.setValue(1, forKey: "a")
    #expect(changes.withLock(\.self) == [.key("a")])
    observation.cancel()
    try await store.close()
  }

  // Write-behind.

  @Test func `lost changes are reported`() async throws {
    let lost = Locked<[LostChanges]>([])
    let layer = WriteBehindLayerProvider { changes in lost.withLock { $0.append(changes) } }
    let store = try await stacks(#"{"s": {"url": "json:FOLDER/s", "writeBehind": {"changes": 4}}}"#, [layer])
      .open("s", codec: .json(Double.self))
    // JSON has no infinity, which is noticed when the value is written.
    for key in ["a", "b"] as [StoreKey] { try await store.setValue(.infinity, forKey: key) }
    await expectStoreError(.encodingFailed) { try await store.flushing?.flush() }
    #expect(lost.withLock { $0.map(\.stack) } == ["s", "s"])
    #expect(lost.withLock { $0.flatMap(\.changes) } == [.key("a"), .key("b")])
    #expect(lost.withLock { $0.allSatisfy { $0.error.code == .encodingFailed } })
    await expectStoreError(.encodingFailed) { try await store.flushing?.flush() }
    lost.withLock(\.self).first?.free()
    try await store.setValue(1, forKey: "a")
    try await store.flushing?.flush()
    try await store.close()
  }

  /// A cache outside of write-behind would keep the value that was given up.
  @Test func `a cache is below write-behind`() async throws {
    let stacks = try stacks(
      #"{"s": {"url": "json:FOLDER/s", "cached": {"entries": 5}, "writeBehind": {"age": "1h"}, "expiring": true}}"#,
      [CachedLayerProvider(), WriteBehindLayerProvider { $0.free() }, ExpiringLayerProvider()])
    #expect(try stacks.layers(of: "s") == ["expiring", "writeBehind", "cached"])
  }
}

/// Stores whose writes fail.
private struct FailingStoreProvider: StoreProvider {
  fileprivate struct Untyped: UntypedStore {
    var codecName: String { "json" }

    func typed<Value: Sendable>(codec: some Codec<Value>) -> AnyDataStore<Value> {
      var plan = FaultPlan()
      plan.schedule(.error(.corrupted), on: .apply, probability: 1)
      return AnyDataStore(MemoryStore<Value>().faulty(plan: plan))
    }
  }

  var scheme: String { "failing" }
  var summary: String { "stores whose writes fail" }
  var codecName: String { "json" }

  func open(_ url: StoreURL, options: StoreOptions, newCodecName: String?) -> Untyped { Untyped() }
}
#endif
