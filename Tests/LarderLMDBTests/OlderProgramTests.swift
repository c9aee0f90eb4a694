#if LMDB
import CLMDB
import Larder
import LarderFiles
import TestSupport
import Testing

@testable import LarderLMDB

/// Programs that have a store open while a newer program records another codec.
@Suite struct OlderProgramTests {
  /// A type that any JSON object can be decoded as.
  struct User: Codable, Sendable, Equatable {
    var name: String?
    var tags: [String]?
  }

  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func open() async throws -> LMDBEnvironment {
    try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
  }

  private static func versioned() throws -> VersionedCodec<JSONCodec<User>> {
    try JSONCodec<User>().versioned(1, ValueMigration(from: 0, .json(User.self)) { $0 })
  }

  /// Sets the record of the store `default`.
  private func setRecord(_ text: String, in environment: LMDBEnvironment) async throws {
    try await environment.write { transaction in
      var catalog: MDB_dbi = 0
      try LMDBError.check(mdb_dbi_open(transaction.pointer, StoreCatalog.name, 0, &catalog))
      let records = RawDatabase(transaction: transaction.pointer, identifier: catalog)
      try records.setValue(Array(text.utf8), forKey: "default")
    }
  }

  private func record(in environment: LMDBEnvironment) throws -> String? {
    try environment.handle.read(for: .read) { transaction in
      try StoreCatalog(store: "store").record(of: "default", in: transaction).map {
        String(decoding: $0, as: UTF8.self)
      }
    }
  }

  @Test func `an older program cannot write once a newer one has taken over the store`() async throws {
    let environment = try await open()
    let older = try await LMDBStore<User>(in: environment, codec: .json())
    try await older.setValue(User(name: "Ada", tags: ["x"]), forKey: "7")
    let newer = try await LMDBStore<User>(in: environment, codec: Self.versioned())
    // As long as the newer program has written nothing, both can be used.
    try await older.update("7") { $0?.tags = ["y"] }
    try await newer.update("7") { $0?.name = "Ada L." }
    let expected = User(name: "Ada L.", tags: ["y"])

    let writes: [(String, StoreOperation, @Sendable () async throws -> Void)] = [
      ("update", .update, { try await older.update("7") { $0?.tags = [] } }),
      ("equal update", .update, { try await older.update("7") { _ in } }),
      ("set", .apply, { try await older.setValue(User(), forKey: "7") }),
      ("removal", .apply, { try await older.removeValue(forKey: "7") }),
      ("removal of all", .apply, { try await older.removeAll() }),
      (
        "set in a transaction", .write,
        { try await environment.write { try $0.setValue(User(), forKey: "7", in: older) } }
      ),
      ("removal in a transaction", .write, { try await environment.write { try $0.removeAll(of: older) } }),
    ]
    for (name, operation, write) in writes {
      let error = await expectStoreError(.versionMismatch) { try await write() }
      #expect(error?.operation == operation, "\(name)")
      #expect(error?.outcome == .nothingChanged, "\(name)")
      #expect(error?.message.contains("json+v1") == true, "\(name)")
      #expect(try newer.value(forKey: "7") == expected, "\(name)")
    }
    // The newer program continues.
    try await newer.update("7") { $0?.tags = nil }
    #expect(try newer.value(forKey: "7") == User(name: "Ada L."))
    try await environment.close()
  }

  @Test func `a transaction checks each store of the same name`() async throws {
    let environment = try await open()
    let older = try await LMDBStore<User>(in: environment, codec: .json())
    let newer = try await LMDBStore<User>(in: environment, codec: Self.versioned())
    try await environment.write { transaction in
      try transaction.setValue(User(name: "Ada"), forKey: "1", in: newer)
      #expect(throws: StoreError.self) { try transaction.setValue(User(name: "Bob"), forKey: "2", in: older) }
    }
    #expect(try newer.keys(in: .all, limit: 9, order: .ascending) == ["1"])
    try await environment.close()
  }

  @Test func `a take over that is aborted leaves the store to older programs`() async throws {
    let environment = try await open()
    let older = try await LMDBStore<User>(in: environment, codec: .json())
    let newer = try await LMDBStore<User>(in: environment, codec: Self.versioned())
    await #expect(throws: CancellationError.self) {
      try await environment.write { transaction in
        try transaction.setValue(User(), forKey: "1", in: newer)
        throw CancellationError()
      }
    }
    try await older.setValue(User(name: "Ada"), forKey: "1")
    #expect(try record(in: environment) == #"{"codec":"json","format":1}"#)
    try await newer.setValue(User(name: "Bob"), forKey: "1")
    #expect(try record(in: environment) == #"{"codec":"json+v1","format":1}"#)
    await expectStoreError(.versionMismatch) { try await older.setValue(User(), forKey: "1") }
    try await environment.close()
  }

  @Test func `the take over in another process is seen`() async throws {
    let environment = try await open()
    let older = try await LMDBStore<User>(in: environment, codec: .json())
    try await older.setValue(User(name: "Ada"), forKey: "1")
    await #expect(processExitsWith: .success) { [path = folder.path("environment") as String] in
      let codec = try JSONCodec<User>().versioned(1, ValueMigration(from: 0, .json(User.self)) { $0 })
      let newer = try await LMDBStore<User>(path: path, codec: codec, durability: .buffered)
      try await newer.update("1") { $0?.tags = ["x"] }
      try await newer.close()
    }
    await expectStoreError(.versionMismatch) { try await older.update("1") { $0?.name = "Bob" } }
    try await older.close()
    let newer = try await LMDBStore<User>(in: environment, codec: Self.versioned())
    #expect(try newer.value(forKey: "1") == User(name: "Ada", tags: ["x"]))
    try await environment.close()
  }

  @Test func `fields of newer versions stay when the store is taken over`() async throws {
    let environment = try await open()
    try await LMDBStore<User>(in: environment, codec: .json()).close()
    try await setRecord(
      #"{"a":{"codec":"json"}, "codec" : "json", "format":1,"n":1.50,"s":"\"codec\":"} "#, in: environment)
    let newer = try await LMDBStore<User>(in: environment, codec: Self.versioned())
    try await newer.setValue(User(name: "Ada"), forKey: "1")
    #expect(
      try record(in: environment)
        == #"{"a":{"codec":"json"}, "codec" : "json+v1", "format":1,"n":1.50,"s":"\"codec\":"} "#)
    try await newer.setValue(User(name: "Bob"), forKey: "1")
    #expect(try newer.value(forKey: "1") == User(name: "Bob"))
    try await environment.close()
  }

  @Test func `other changes of the record are accepted`() async throws {
    let environment = try await open()
    let store = try await LMDBStore<User>(in: environment, codec: .json())
    try await store.setValue(User(name: "Ada"), forKey: "1")
    try await setRecord(#"{"codec":"json","format":1,"contents":"users","new":[]}"#, in: environment)
    for name in ["Bob", "Eve"] {
      try await store.update("1") { $0?.name = name }
      #expect(try store.value(forKey: "1")?.name == name)
    }
    // A newer format is refused, as when the store is opened.
    try await setRecord(#"{"codec":"json","format":2}"#, in: environment)
    await expectStoreError(.versionMismatch) { try await store.setValue(User(), forKey: "1") }
    try await setRecord("{", in: environment)
    await expectStoreError(.corrupted) { try await store.setValue(User(), forKey: "1") }
    #expect(try store.value(forKey: "1") == User(name: "Eve"))
    try await environment.close()
  }
}
#endif
