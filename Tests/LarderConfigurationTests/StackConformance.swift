#if Configuration && LMDB && SQLite && Metrics && Crypto && Compression
import Foundation
import Larder
import LarderBatching
import LarderBounded
import LarderCache
import LarderCompression
import LarderConfiguration
import LarderCrypto
import LarderExpiry
import LarderJSON
import LarderLMDB
import LarderMetrics
import LarderMirror
import LarderObservation
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

/// Configured stacks, each with the information and the capabilities of the one written in code.
@Suite struct StackConformance {
  struct Stack: Sendable, CustomTestStringConvertible {
    typealias Value = SampleValue?

    let name: String
    /// The settings, as JSON.
    ///
    /// `FOLDER` stands for the folder of the test.
    let settings: String
    /// The settings of the stack `o`, which the stack uses, in the same form.
    ///
    /// `ACCESS` stands for the access of the location.
    var other: String?
    var lacking: StoreCapabilities = []
    var maximumKeyLength = StoreKey.maximumLength
    let open: @Sendable (ConformanceLocation, KeyRing) async throws -> any DataStore<Value>

    var testDescription: String { name }

    /// Opens the stack from the settings.
    func configured(_ location: ConformanceLocation, _ ring: KeyRing) async throws -> AnyDataStore<Value> {
      let access = location.access == .readWrite ? "" : ", \"access\": \"readOnly\""
      let other = other.map { ", \"o\": \($0.replacing("ACCESS", with: access))" } ?? ""
      let text = "{\"stores\": {\"s\": \(settings.dropLast())\(access)}\(other)}}"
        .replacing("FOLDER", with: location.path(""))
      let source = try ConfigurationSource.json(Data(text.utf8), name: "test")
      return try await Stacks.all(source, ring: ring).open("s", codec: .json(Value.self))
    }
  }

  static let stacks: [Stack] = [
    Stack(name: "JSON", settings: #"{"url": "json:FOLDER/s"}"#, lacking: .observation) { location, _ in
      try await JSONFileStore<Stack.Value>(path: location.path("s"), codec: .json(), access: location.access)
    },
    Stack(name: "SQLite, batched", settings: #"{"url": "sqlite:FOLDER/s", "batched": true}"#) { location, _ in
      try await SQLiteStore<Stack.Value>(path: location.path("s"), codec: .json(), access: location.access).batched()
    },
    Stack(
      name: "the stack of the README",
      settings: #"""
        {"url": "lmdb:FOLDER/s", "metered": true, "cached": {"entries": 1000}, "expiring": {"sliding": "30m"},
         "batched": true}
        """#,
      lacking: .keysWithoutValues
    ) { location, _ in
      try await LMDBStore(path: location.path("s"), codec: .json(Stack.Value.self).expiring(), access: location.access)
        .batched().cached(CachedStoreConfiguration(entryLimit: 1000)).expiring(.sliding(.seconds(1800))).metered(
          as: "s")
    },
    Stack(
      name: "LMDB, write-behind",
      settings: #"{"url": "lmdb:FOLDER/s", "durability": "buffered", "writeBehind": {"age": "1ms"}}"#,
      lacking: [.acknowledgedPersistence, .immediateRefusal]
    ) { location, _ in
      try await LMDBStore<Stack.Value>(
        path: location.path("s"), codec: .json(), durability: .buffered, access: location.access
      ).writeBehind(maximumAge: .milliseconds(1))
    },
    Stack(
      name: "JSON, cached", settings: #"{"url": "json:FOLDER/s", "cached": {"entries": 100}}"#, lacking: .observation
    ) { location, _ in
      try await JSONFileStore<Stack.Value>(path: location.path("s"), codec: .json(), access: location.access)
        .cached(CachedStoreConfiguration(entryLimit: 100))
    },
    Stack(
      name: "SQLite, compressed and encrypted",
      settings:
        #"{"url": "sqlite:FOLDER/s", "encrypted": {"ring": "main", "purpose": "p"}, "compressed": {"level": 9}}"#
    ) { location, ring in
      try await SQLiteStore(
        path: location.path("s"),
        codec: .json(Stack.Value.self).compressed(level: 9).encrypted(with: ring, purpose: "p"), access: location.access
      )
    },
    Stack(
      name: "LMDB, bounded", settings: #"{"url": "lmdb:FOLDER/s", "bounded": {"bytes": "1GiB", "entries": 100000}}"#,
      lacking: .recordedCodecs, maximumKeyLength: 508
    ) { location, _ in
      try await LMDBStore(path: location.path("s"), codec: .raw, access: location.access)
        .bounded(bytes: 1 << 30, entries: 100_000).typed(Stack.Value.self, codec: .json())
    },
    Stack(
      name: "SQLite, expiring", settings: #"{"url": "sqlite:FOLDER/s", "expiring": {"after": "1h", "purges": false}}"#,
      lacking: .keysWithoutValues
    ) { location, _ in
      try await SQLiteStore(
        path: location.path("s"), codec: .json(Stack.Value.self).expiring(), access: location.access
      )
      .expiring(.after(.seconds(3600)), purgesOnWrite: false)
    },
    Stack(
      name: "LMDB, compressed and cached",
      settings:
        #"{"url": "lmdb:FOLDER/s", "cached": {"entries": 10, "ttl": "1h"}, "compressed": true}"#
    ) { location, _ in
      try await LMDBStore(
        path: location.path("s"), codec: .json(Stack.Value.self).compressed(), access: location.access
      )
      .cached(CachedStoreConfiguration(entryLimit: 10, timeToLive: .afterWrite(.seconds(3600))))
    },
    Stack(
      name: "JSON, mirrored in SQLite",
      settings: #"{"url": "json:FOLDER/s", "mirrored": {"secondary": "o"}, "compressed": true, "batched": true}"#,
      other: #"{"url": "sqlite:FOLDER/o", "encrypted": {"ring": "main", "purpose": "p"}ACCESS}"#, lacking: .observation
    ) { location, ring in
      try await MirroredStore(
        primary: JSONFileStore(
          path: location.path("s"), codec: .json(Stack.Value.self).compressed(), access: location.access),
        secondary: SQLiteStore(
          path: location.path("o"), codec: .json(Stack.Value.self).encrypted(with: ring, purpose: "p"),
          access: location.access)
      ).batched()
    },
    Stack(
      name: "JSON, with copies in LMDB",
      settings: #"{"url": "json:FOLDER/s", "tiered": {"cache": "o", "missing": "1m"}}"#,
      other: #"{"url": "lmdb:FOLDER/o", "durability": "buffered", "bounded": {"bytes": "100MB"}}"#,
      lacking: .observation
    ) { location, _ in
      var configuration = TieredStoreConfiguration(negativeTimeToLive: .seconds(60))
      configuration.keyPrefix = "s/"
      return try await JSONFileStore<Stack.Value>(path: location.path("s"), codec: .json(), access: location.access)
        .cached(
          in: try await LMDBStore(path: location.path("o"), codec: .raw, durability: .buffered)
            .bounded(bytes: 100_000_000), codec: .json(), configuration: configuration)
    },
    Stack(
      name: "JSON, observable", settings: #"{"url": "json:FOLDER/s", "cached": {"entries": 100}, "observable": true}"#
    ) { location, _ in
      try await JSONFileStore<Stack.Value>(path: location.path("s"), codec: .json(), access: location.access)
        .observable().cached(CachedStoreConfiguration(entryLimit: 100))
    },
    Stack(
      name: "memory with all",
      settings: #"""
        {"url": "memory:s", "metered": {"slow": "1s"}, "cached": {"entries": 1000, "missing": "1m"}, "expiring": true,
         "batched": {"changes": 100}}
        """#,
      lacking: [.persistence, .encoding, .observation]
    ) { location, _ in
      MemoryStore<Expiring<Stack.Value>>(name: "s").batched(bounds: BatchBounds(changes: 100))
        .cached(CachedStoreConfiguration(entryLimit: 1000, negativeTimeToLive: .seconds(60))).expiring().metered(
          as: "s")
    },
  ]

  @Test(arguments: stacks) func `information and capabilities are those of the stack in code`(_ stack: Stack)
    async throws
  {
    let folder = try TemporaryFolder()
    let ring = try await KeyRing.open(in: .file(folder.path("keys")), createsIfMissing: true)
    let (one, other) = (try ConformanceLocation(), try ConformanceLocation())
    let (configured, written) = (try await stack.configured(one, ring), try await stack.open(other, ring))
    func text(_ information: StoreInformation, _ location: ConformanceLocation) -> String {
      var information = information
      // Two stores have two identities.
      information.identity = nil
      return "\(information)".replacing(location.path(""), with: "")
    }
    #expect(text(configured.information, one) == text(AnyDataStore(written).information, other))
    #expect(configured.capabilities == AnyDataStore(written).capabilities)
    try await configured.close()
    try await written.close()
  }

  @Test(arguments: stacks) func conforms(_ stack: Stack) async throws {
    let folder = try TemporaryFolder()
    let ring = try await KeyRing.open(in: .file(folder.path("keys")), createsIfMissing: true)
    let suite = ConformanceSuite(
      named: stack.name, lacking: stack.lacking, rounds: 1, maximumKeyLength: stack.maximumKeyLength
    ) { try await stack.configured($0, ring) }
    // A short run takes each fourth case, from one that the seed chooses, and the one about capabilities.
    let (share, first) = (TestDepth.isShort ? 4 : 1, Int(SeededGenerator.seedOfProcess % 4))
    for (index, conformanceCase) in suite.cases.enumerated()
    where conformanceCase.id == "201" || (index + first) % share == 0 {
      try await conformanceCase.run()
    }
  }
}

extension AnyDataStore {
  /// The names of the capabilities of the store inside.
  var capabilities: Set<String> {
    var names: Set<String> = []
    if maintenance != nil { names.insert("maintenance") }
    if expiry != nil { names.insert("expiry") }
    if invalidation != nil { names.insert("invalidation") }
    if flushing != nil { names.insert("flushing") }
    if observation != nil { names.insert("observation") }
    if queue != nil { names.insert("queue") }
    if pausableQueue != nil { names.insert("pausableQueue") }
    if inspectableQueue != nil { names.insert("inspectableQueue") }
    return names
  }
}

extension Stacks {
  /// Stacks of all kinds.
  static func all(_ sources: ConfigurationSource..., ring: KeyRing) -> Stacks {
    Stacks(
      sources: sources,
      stores: [MemoryStoreProvider(), JSONFileStoreProvider(), SQLiteStoreProvider(), LMDBStoreProvider()],
      layers: layers(ring))
  }

  /// The providers of all layers, in another order than that of a stack.
  static func layers(_ ring: KeyRing) -> [any LayerProvider] {
    [
      ExpiringLayerProvider(), BoundedLayerProvider(), MeteredLayerProvider(), BatchedLayerProvider(),
      EncryptedLayerProvider(rings: ["main": ring]), CachedLayerProvider(), WriteBehindLayerProvider { _ in },
      CompressedLayerProvider(), TieredLayerProvider(), ObservableLayerProvider(), MirroredLayerProvider { _, _ in },
    ]
  }
}
#endif
