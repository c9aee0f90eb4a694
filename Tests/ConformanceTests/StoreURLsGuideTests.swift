#if SQLite
import Foundation
import Larder
import LarderCBOR
import LarderCache
import LarderJSON
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Larder/Larder.docc/StoreURLs.md`.
@Suite struct StoreURLsGuideTests {
  private struct User: Codable, Sendable, Equatable {
    var name: String
  }

  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func registry() -> StoreRegistry {
    StoreRegistry(providers: [JSONFileStoreProvider(), SQLiteStoreProvider(), MemoryStoreProvider()])
  }

  @Test func `a store is opened with options and layers`() async throws {
    let url = "json:\(folder.path("users.json"))"

    // snippet.overview
    let registry = StoreRegistry(providers: [JSONFileStoreProvider(), SQLiteStoreProvider(), MemoryStoreProvider()])
    let users = try await registry.open(url, codec: .json(User.self))
    try await users.setValue(User(name: "Ada"), forKey: "user:1")
    try await users.close()
    // snippet.end

    // snippet.options
    let options = StoreOptions(createsIfMissing: false, access: .readOnly)
    let archive = try await registry.open(url, codec: .json(User.self), options: options)
    // snippet.end

    #expect(try await archive.value(forKey: "user:1") == User(name: "Ada"))
    await expectStoreError(.notPermitted) { try await archive.removeValue(forKey: "user:1") }
    try await archive.close()

    // snippet.layers-and-capabilities-2
    let cached = try await registry.open(url, codec: .json(User.self)).cached()
    // snippet.end

    #expect(try await cached.value(forKey: "user:1") == User(name: "Ada"))
    try await cached.close()
  }

  @Test(arguments: ["sqlite", "memory"]) func `capabilities depend on the store`(_ scheme: String) async throws {
    let (url, path) = ("\(scheme):\(folder.path("users"))", folder.path("backup"))
    let store = try await registry().open(url, codec: .json(User.self))
    func backUp() async throws {
      // snippet.layers-and-capabilities
      guard let maintenance = store.maintenance else {
        throw StoreError(.unsupported, during: .backup, store: url, message: "this kind of store has no backups")
      }
      try await maintenance.backup(to: path)
      // snippet.end
    }
    if scheme == "sqlite" { try await backUp() } else { await expectStoreError(.unsupported) { try await backUp() } }
    #expect(FileManager.default.fileExists(atPath: path) == (scheme == "sqlite"))
    try await store.close()
  }

  @Test(arguments: ["cbor", "json"]) func `the type depends on the codec`(_ codec: String) async throws {
    let (registry, url) = (registry(), "sqlite:\(folder.path("users.db"))#users")
    if codec == "cbor" {
      try await registry.open(url, codec: .cbor(User.self)).close()
    } else {
      try await registry.open(url, codec: .json(User.self)).close()
    }

    // snippet.values-of-several-types
    let untyped = try await registry.open(StoreURL(url))
    let users =
      if untyped.codecName == "cbor" {
        try await untyped.typed(codec: .cbor(User.self))
      } else {
        try await untyped.typed(codec: .json(User.self))
      }
    // snippet.end

    #expect(untyped.codecName == codec)
    try await users.setValue(User(name: "Ada"), forKey: "user:1")
    try await users.close()
  }

  @Test func `errors say what to do`() async throws {
    let registry = registry()
    await expectStoreError(.invalidArgument) { try await registry.open("users", codec: .json(User.self)) }
    let unknown = await expectStoreError(.unsupported) {
      try await registry.open("jsno:users", codec: .json(User.self))
    }
    #expect(unknown?.message.contains("known schemes: json:, memory:, sqlite:") == true)
    await expectStoreError(.notFound) {
      try await registry.open(
        "json:\(folder.path("none"))", codec: .json(User.self), options: StoreOptions(createsIfMissing: false))
    }
  }
}
#endif
