#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderCBOR
import LarderCompressedFile
import LarderJSON
import LarderLMDB
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

/// Kills processes while they migrate all values of a store.
///
/// `LARDER_KILL_ROUNDS` sets the number of killed processes for each kind of store.
@Suite(.limitedParallelism) struct MigrationKillTests {
  struct Old: Codable, Sendable {
    var name: String
  }

  struct New: Codable, Sendable, Equatable {
    var name: String
    var length: Int

    init(_ old: Old) {
      name = old.name
      length = old.name.utf8.count
    }
  }

  private static let rounds = ConformanceSuite.killsOfProcess

  private static let registry = StoreRegistry(providers: [
    JSONFileStoreProvider(), LMDBStoreProvider(), SQLiteStoreProvider(), CompressedFileStoreProvider(),
  ])

  private static let entryCount = 400

  private static func key(_ number: Int) -> StoreKey { StoreKey(integer: number) }

  private static func old(_ number: Int) -> Old {
    Old(name: String(repeating: "\(number) ", count: 1 + number % 50))
  }

  private static func open(_ scheme: String, at path: String) async throws -> AnyDataStore<New> {
    let url = StoreURL(scheme: scheme, location: path)
    let options = StoreOptions(createsIfMissing: false, durability: .buffered)
    let untyped = try await registry.open(url, options: options)
    if untyped.codecName.hasPrefix("cbor") {
      let migration = ValueMigration(from: 0, .cbor(Old.self)) { New($0) }
      return try await untyped.typed(codec: CBORCodec<New>().versioned(1, migration))
    }
    let migration = ValueMigration(from: 0, .json(Old.self)) { New($0) }
    return try await untyped.typed(codec: JSONCodec<New>().versioned(1, migration))
  }

  private static func makeOldStore(_ scheme: String, at path: String) async throws {
    let url = StoreURL(scheme: scheme, location: path)
    let untyped = try await registry.open(url, options: StoreOptions(durability: .buffered))
    let store: AnyDataStore<Old> =
      if untyped.codecName == "cbor" {
        try await untyped.typed(codec: .cbor())
      } else {
        try await untyped.typed(codec: .json())
      }
    try await store.apply(ChangeBatch((0..<entryCount).map { .set(key($0), old($0)) }))
    try await store.close()
  }

  private static func checkAll(_ store: AnyDataStore<New>, _ context: Comment) async throws {
    let values = try await store.values(forKeys: (0..<entryCount).map(key))
    for (number, value) in values.enumerated() { #expect(value == New(old(number)), context) }
    #expect(try await store.count() == entryCount, context)
  }

  /// Migrates all values in another process, which dies at some moment after a number of steps, or at the end.
  private static func migrateAndDie(_ scheme: String, _ path: String, _ pages: Int, _ delay: Int) async {
    await #expect(processExitsWith: .signal(SIGKILL)) { [scheme, path, pages, delay] in
      let store = try await MigrationKillTests.open(scheme, at: path)
      try await store.migrateAll(batchSize: 10) { progress in
        guard progress.examinedCount == pages * 10 else { return }
        Thread.detachNewThread {
          usleep(UInt32(delay))
          kill(getpid(), SIGKILL)
        }
      }
      kill(getpid(), SIGKILL)
    }
  }

  @Test(arguments: registry.providers.map(\.scheme)) func `a killed walk is completed by the next one`(scheme: String)
    async throws
  {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "MigrationKillTests \(scheme)")
    for round in 0..<Self.rounds {
      let folder = try TemporaryFolder()
      let path = folder.path("store")
      try await Self.makeOldStore(scheme, at: path)
      let (pages, delay) = (Int.random(in: 0..<40, using: &generator), Int.random(in: 0..<1500, using: &generator))
      let context: Comment = "seed \(SeededGenerator.seedOfProcess), \(scheme), round \(round)"
      await Self.migrateAndDie(scheme, path, pages, delay)
      let store = try await Self.open(scheme, at: path)
      try await Self.checkAll(store, context)
      let outcome = try await store.migrateAll()
      #expect(outcome.examinedCount == Self.entryCount && outcome.failureCount == 0, context)
      try await Self.checkAll(store, context)
      try await store.close()

      // Every value has a version now, so a program without migrations reads them all.
      let untyped = try await Self.registry.open(StoreURL(scheme: scheme, location: path))
      let migrated =
        if untyped.codecName.hasPrefix("cbor") {
          try await untyped.typed(codec: CBORCodec<New>().versioned(1))
        } else {
          try await untyped.typed(codec: JSONCodec<New>().versioned(1))
        }
      try await Self.checkAll(migrated, context)
      try await migrated.close()
    }
    print("\(scheme): killed \(Self.rounds) migrations")
  }
}
#endif
