#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderCBOR
import LarderJSON
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Larder/Larder.docc/Migrations.md`.
///
/// `Scripts/guide-code` writes it into the guide.
@Suite struct MigrationsGuideTests {
  @Test func `from one version to the next`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    do {
      struct User: Codable, Sendable {
        var name: String
      }
      let users = try await LMDBStore(path: folder + "/users", codec: CBORCodec<User>().versioned(1))
      try await users.apply([.set("1", User(name: "Ada")), .set("2", User(name: "Ada")), .set("3", User(name: "Ada"))])
      try await users.close()
    }

    // snippet.from-one-version-to-the-next-2
    struct UserV1: Codable, Sendable {
      var name: String
    }
    struct User: Codable, Sendable {
      var name: String
      var email: String?
    }

    let codec = try CBORCodec<User>().versioned(
      2, ValueMigration(from: 1, .cbor(UserV1.self)) { User(name: $0.name, email: nil) })
    let users = try await LMDBStore(path: folder + "/users", codec: codec)
    // snippet.end

    #expect(try users.value(forKey: "2")?.name == "Ada")
    try await users.update("2") { $0?.email = "ada@example.org" }
    #expect(try users.value(forKey: "2")?.email == "ada@example.org")

    // snippet.all-values-at-once
    let outcome = try await users.migrateAll(batchSize: 100) { progress in
      print(progress.examinedCount, "entries")
    }
    for failure in outcome.failures { print(failure.key?.string ?? "", failure.detailedDescription) }
    // snippet.end

    #expect(outcome.examinedCount == 3 && outcome.failureCount == 0)
    try await users.close()
    // All values have version 2, so no migration is needed.
    let again = try await LMDBStore(path: folder + "/users", codec: CBORCodec<User>().versioned(2))
    #expect(try again.value(forKey: "1")?.name == "Ada")
    #expect(try again.value(forKey: "2")?.email == "ada@example.org")
    try await again.close()
    try location.remove()
  }

  @Test func `several steps`() throws {
    struct UserV1: Codable, Sendable {
      var name: String
    }
    struct UserV2: Codable, Sendable {
      var name: String
      var email: String?
    }
    struct Account: Codable, Sendable {
      var name: String
      var addresses: [String]
    }

    // snippet.from-one-version-to-the-next
    let steps = ValueMigration(from: 1, .cbor(UserV1.self)) { UserV2(name: $0.name, email: nil) }
      .then(from: 2, .cbor()) { Account(name: $0.name, addresses: $0.email.map { [$0] } ?? []) }
    let codec = try CBORCodec<Account>().versioned(3, steps)
    // snippet.end

    for (bytes, count) in [
      (try bytes(of: UserV1(name: "Ada"), by: CBORCodec<UserV1>().versioned(1)), 0),
      (try bytes(of: UserV2(name: "Ada", email: "a"), by: CBORCodec<UserV2>().versioned(2)), 1),
      (try bytes(of: Account(name: "Ada", addresses: ["a", "b"]), by: codec), 2),
    ] {
      #expect(try codec.decode(bytes.span.bytes).addresses.count == count)
    }
  }

  @Test func `two versions at the same time`() async throws {
    struct UserV1: Codable, Sendable {
      var name: String
    }
    struct User: Codable, Sendable {
      var name: String
      var email: String?
    }
    // snippet.two-versions-at-the-same-time
    let codec = try CBORCodec<User>().versioned(
      2, ValueMigration(from: 1, .cbor(UserV1.self)) { User(name: $0.name, email: nil) },
      writing: OlderVersion(1, .cbor()) { UserV1(name: $0.name) })
    // snippet.end
    #expect(codec.name == "cbor+v1" && codec.newestName == "cbor+v2")
    let written = try bytes(of: User(name: "Ada", email: "a"), by: codec)
    #expect(try CBORCodec<UserV1>().versioned(1).decode(written.span.bytes).name == "Ada")
    #expect(try codec.decode(written.span.bytes).email == nil)
  }

  private func bytes<Value>(of value: Value, by codec: some Codec<Value>) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try codec.encode(value, into: &bytes)
    return bytes
  }

  @Test func `a store without versions`() async throws {
    struct UserV1: Codable, Sendable {
      var name: String
    }
    struct User: Codable, Sendable {
      var name: String
      var email: String?
    }
    let location = try ConformanceLocation()
    let folder = location.folder
    let old = try await JSONFileStore<UserV1>(path: folder + "/users.json")
    try await old.setValue(UserV1(name: "Ada"), forKey: "1")
    try await old.close()

    // snippet.stores-without-versions
    let codec = try JSONCodec<User>().versioned(
      1, ValueMigration(from: 0, .json(UserV1.self)) { User(name: $0.name, email: nil) })
    let users = try await JSONFileStore(path: folder + "/users.json", codec: codec)
    // snippet.end

    #expect(try users.value(forKey: "1")?.name == "Ada")
    try await users.close()
    try location.remove()
  }

  /// The first block is the whole of a migration.
  @Test func `the first migration is short`() throws {
    let guide = try Guide("Modules/Larder/Larder.docc/Migrations.md")
    #expect(guide.pieces[0].split(separator: "\n").count <= 15)
  }
}
#endif
