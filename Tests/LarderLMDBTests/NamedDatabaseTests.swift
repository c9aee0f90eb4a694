#if LMDB
import Larder
import TestSupport
import Testing

@testable import LarderLMDB

/// The handles of named databases.
///
/// An environment has a fixed number of them.
@Suite struct NamedDatabaseTests {
  @Test func `more stores than handles can be opened in turn`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    for number in 0..<1100 {
      let store = try await LMDBStore<Int>(in: environment, name: "\(number)", codec: .json())
      // A released store is closed as well.
      if !number.isMultiple(of: 3) { try await store.close() }
    }
    #expect(try await environment.storeNames().count == 1100)
    await expectStoreError(.versionMismatch) {
      try await LMDBStore<[UInt8]>(in: environment, name: "7", codec: .raw)
    }
    try await environment.close()
  }

  @Test func `a store is removed with its database and record`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"))
    let store = try await LMDBStore<Int>(in: environment, name: "s", codec: .json())
    let neighbour = try await LMDBStore<Int>(in: environment, name: "n", codec: .json())
    try await store.apply(ChangeBatch((0..<1000).map { .set(StoreKey(integer: $0), $0) }))
    try await neighbour.setValue(1, forKey: "a")
    await expectStoreError(.locked) { try await environment.removeStore("s") }
    try await store.close()
    try await environment.removeStore("s")
    for name in ["s", "missing"] { await expectStoreError(.notFound) { try await environment.removeStore(name) } }
    await expectStoreError(.unsupported) { try await environment.removeStore("larder") }
    #expect(try await environment.storeNames() == ["n"])
    // The name is free for another type, and the handle for another database.
    let others = try await LMDBStore<[UInt8]>(in: environment, name: "o", codec: .raw)
    let again = try await LMDBStore<[UInt8]>(in: environment, name: "s", codec: .raw)
    try await again.setValue([1], forKey: "a")
    #expect(try again.count(in: .all) == 1 && neighbour.value(forKey: "a") == 1)
    #expect(try others.count(in: .all) == 0)
    #expect(try await neighbour.verify().findings == [])
    try await environment.close()
  }

  @Test(.enabled(if: ForeignTool.pythonObstacle == nil, "\(ForeignTool.pythonObstacle ?? "")"))
  func `a store that another program removes is not written`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    let environment = try await LMDBEnvironment(path: path)
    let store = try await LMDBStore<Int>(in: environment, name: "s", codec: .json())
    try await store.setValue(1, forKey: "a")
    _ = try ForeignTool.lines(
      ofPython: """
        env = lmdb.open(argv[1], max_dbs=8)
        with env.begin(write=True) as transaction: transaction.drop(env.open_db(b's', transaction))
        """, path)
    await expectStoreError(.conflict) { try await store.setValue(2, forKey: "a") }
    try await environment.close()
  }

  /// Opening looks for the store, and then for its handle.
  @Test func `a store that is removed while it is opened is a conflict`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"))
    try await LMDBStore<Int>(in: environment, name: "s").close()
    let (shared, catalog) = (environment.handle.environment, StoreCatalog(store: "s"))
    #expect(try shared.readOnce(keepingHandles: false) { try catalog.find("s", in: $0)?.record } != nil)
    try await environment.removeStore("s")
    let error = expectStoreError(.conflict) { try shared.readOnce { try catalog.identifier(of: "s", in: $0) } }
    #expect(error?.isRetryable == true && error?.operation == .open)
    let store = try await LMDBStore<Int>(in: environment, name: "s")
    #expect(try store.count(in: .all) == 0)
    try await environment.close()
  }

  @Test func `as many stores as handles can be open`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    var stores: [LMDBStore<Int>] = []
    for number in 0..<SharedEnvironment.maximumStoreCount {
      stores.append(try await LMDBStore(in: environment, name: "\(number)", codec: .json()))
    }
    await expectStoreError(.full) { try await LMDBStore<Int>(in: environment, name: "more", codec: .json()) }
    #expect(try await environment.storeNames().count == SharedEnvironment.maximumStoreCount)
    stores.append(try await LMDBStore(in: environment, name: "0", codec: .json()))
    try await stores[1].close()
    let store = try await LMDBStore<Int>(in: environment, name: "more", codec: .json())
    try await store.setValue(1, forKey: "k")
    #expect(try stores[2].value(forKey: "k") == nil)
    try await environment.close()
  }

  @Test func `stores of one name share a handle`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    let first = try await LMDBStore<Int>(in: environment, name: "a", codec: .json())
    let second = try await LMDBStore<Int>(in: environment, name: "a", codec: .json())
    #expect(first.identifier == second.identifier)
    try await first.close()
    try await first.close()
    let other = try await LMDBStore<Int>(in: environment, name: "b", codec: .json())
    #expect(other.identifier != second.identifier)
    try await other.setValue(2, forKey: "k")
    try await second.setValue(1, forKey: "k")
    #expect(try second.value(forKey: "k") == 1)
    try await second.close()
    let third = try await LMDBStore<Int>(in: environment, name: "c", codec: .json())
    #expect(third.identifier == second.identifier)
    #expect(try third.value(forKey: "k") == nil)
    try await environment.close()
  }

  /// LMDB would show such a transaction the entries of the handle's former store.
  @Test func `a handle is not reused while a transaction may use it`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    let first = try await LMDBStore<Int>(in: environment, name: "a", codec: .json())
    try await first.setValue(1, forKey: "k")
    let reader = HeldRead()
    let later = Locked<LMDBStore<Int>?>(nil)
    let reading = Task {
      try await reader.run {
        try environment.read { transaction in
          #expect(try transaction.value(forKey: "k", in: first) == 1)
          reader.hold()
          let second = try #require(later.withLock { $0 })
          #expect((try? transaction.value(forKey: "k", in: second)) == nil)
        }
      }
    }
    await reader.isHeld()
    try await first.close()
    let opened = try await LMDBStore<Int>(in: environment, name: "b", codec: .json())
    later.withLock { $0 = opened }
    #expect(opened.identifier != first.identifier)
    reader.release()
    try await reading.value
    let third = try await LMDBStore<Int>(in: environment, name: "c", codec: .json())
    #expect(third.identifier == first.identifier)
    try await environment.close()
  }
}
#endif
