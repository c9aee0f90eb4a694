#if SQLite
import Foundation
import Larder
import LarderSQLite
import TestSupport
import Testing

/// Databases whose files were replaced, or are not complete.
@Suite(.timeLimit(.minutes(10))) struct ReplacedFilesTests {
  private let folder: TemporaryFolder
  private var path: String { folder.path("app.sqlite") }

  init() throws {
    folder = try TemporaryFolder()
  }

  private func makeStore(_ value: Int, at path: String) async throws {
    let store = try await SQLiteStore<Int>(path: path)
    try await store.setValue(value, forKey: "key")
    try await store.close()
  }

  @Test func `a reader notices a replaced file`() async throws {
    try await makeStore(1, at: path)
    try await makeStore(2, at: folder.path("new"))
    let store = try await SQLiteStore<Int>(path: path, access: .readOnly)
    #expect(try store.value(forKey: "key") == 1)
    #expect(rename(folder.path("new"), path) == 0)
    var error: StoreError?
    while error == nil {
      do {
        #expect(try store.value(forKey: "key") == 1)
      } catch let thrown as StoreError {
        error = thrown
      }
    }
    #expect(error?.code == .conflict)
    #expect(error?.message.contains("\(path) was replaced") == true)
    await expectStoreError(.conflict) { try await store.verify() }
    try await store.close()
    let again = try await SQLiteStore<Int>(path: path, access: .readOnly)
    #expect(try again.value(forKey: "key") == 2)
    try await again.close()
  }

  @Test(arguments: [StoreAccess.readOnly, .readWrite], [true, false]) func `observations end with the file`(
    access: StoreAccess, isReplaced: Bool
  ) async throws {
    try await makeStore(1, at: path)
    try await makeStore(2, at: folder.path("new"))
    let store = try await SQLiteStore<Int>(path: path, access: access)
    let (events, event) = AsyncStream.makeStream(of: StoreEvent.self)
    let observation = store.observe(.all) { event.yield($0) }
    #expect(isReplaced ? rename(folder.path("new"), path) == 0 : unlink(path) == 0)
    for await event in events where event == .closed { break }
    // A later observer learns it too.
    let late = store.observe(.all) { #expect($0 == .closed) }
    if access == .readWrite {
      await expectStoreError(.conflict) { try await store.close() }
    } else {
      try await store.close()
    }
    withExtendedLifetime((observation, late)) {}
  }

  // MARK: Journals

  /// A database in the journal mode DELETE, copied in the middle of a transaction, as a killed program leaves it.
  private func makeHotJournal() async throws -> String {
    let database = try await SQLiteDatabase(path: folder.path("source"))
    let store = try await SQLiteStore(in: database, codec: .json(String.self))
    try await store.apply(ChangeBatch((0..<500).map { .set(StoreKey("k\($0)"), String(repeating: "a", count: 200)) }))
    try await store.close()
    try await database.close()
    let other = try await OtherConnection(folder.path("source"))
    try other.run(
      """
      PRAGMA journal_mode = DELETE; PRAGMA cache_size = 5; PRAGMA cache_spill = 1;
      BEGIN; UPDATE "default" SET value = replace(value, 'a', 'b');
      """)
    let copy = folder.path("hot")
    for suffix in ["", "-journal"] {
      try FileManager.default.copyItem(atPath: folder.path("source" + suffix), toPath: copy + suffix)
    }
    try other.run("ROLLBACK")
    other.close()
    return copy
  }

  @Test func `immutable refuses an interrupted transaction`() async throws {
    let hot = try await makeHotJournal()
    let error = await expectStoreError(.unsupported) {
      try await SQLiteStore(path: hot, codec: .json(String.self), access: .immutable)
    }
    #expect(error?.message.contains("hot-journal") == true && error?.message.contains("readWrite") == true)
    // The way out.
    let store = try await SQLiteStore(path: hot, codec: .json(String.self))
    #expect(try store.value(forKey: "k0")?.first == "a")
    try await store.close()
    let immutable = try await SQLiteStore(path: hot, codec: .json(String.self), access: .immutable)
    let entries = try await immutable.entries(in: .all, limit: .max, order: .ascending)
    #expect(entries.count == 500 && entries.allSatisfy { $0.value.first == "a" })
    try await immutable.close()
  }

  @Test func `immutable accepts the journal of a complete transaction`() async throws {
    try await makeStore(1, at: path)
    // The modes TRUNCATE and PERSIST leave these.
    for content in [Data(), Data(count: 512)] {
      try content.write(to: URL(filePath: path + "-journal"))
      let store = try await SQLiteStore<Int>(path: path, access: .immutable)
      #expect(try store.value(forKey: "key") == 1)
      try await store.close()
    }
  }
}
#endif
