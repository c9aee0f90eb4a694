#if SQLite
import CSQLite
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

  @Test(arguments: Obstruction.allCases) func `a reader whose file cannot be examined continues once it can be`(
    _ obstruction: Obstruction
  ) async throws {
    let inner = folder.path("inner")
    try FileManager.default.createDirectory(atPath: inner, withIntermediateDirectories: false)
    try await makeStore(1, at: inner + "/app.sqlite")
    let store = try await SQLiteStore<Int>(path: inner + "/app.sqlite", access: .readOnly)
    try await obstruction.replacing(inner) {
      let error = expectStoreError(.ioFailed) { try store.value(forKey: "key") }
      #expect(error?.operation == .value && error?.message.contains("could not be checked") == true)
    }
    #expect(try store.value(forKey: "key") == 1)
    try await store.close()
  }

  @Test func `a read that needs another connection does not open the new file`() async throws {
    try await makeStore(1, at: path)
    try await makeStore(2, at: folder.path("new"))
    let database = try await SQLiteDatabase(path: path)
    let store = try await SQLiteStore<Int>(in: database)
    try database.read { transaction in
      #expect(rename(folder.path("new"), path) == 0)
      let error = expectStoreError(.conflict) { try store.value(forKey: "key") }
      #expect(error?.isRetryable == true && error?.message.contains("replaced") == true)
      let value = try transaction.value(forKey: "key", in: store)
      #expect(value == 1)
    }
    await expectStoreError(.conflict) { try await store.setValue(3, forKey: "key") }
    await expectStoreError(.conflict) { try await database.close() }
    let again = try await SQLiteStore<Int>(path: path)
    #expect(try again.value(forKey: "key") == 2)
    try await again.close()
  }

  /// A folder that is moved away once, by an authorizer, which SQLite calls while it compiles a statement.
  private final class Mover: Sendable {
    let path: String
    private let isArmed = Locked(false)

    init(_ path: String) {
      self.path = path
    }

    func arm() { isArmed.withLock { $0 = true } }

    /// Moves the folder away, and puts a file in its place.
    func move() {
      let isFirst = isArmed.withLock { isArmed in
        defer { isArmed = false }
        return isArmed
      }
      guard isFirst else { return }
      #expect(rename(path, path + ".away") == 0 && FileManager.default.createFile(atPath: path, contents: nil))
    }

    func moveBack() {
      #expect(unlink(path) == 0 && rename(path + ".away", path) == 0)
    }

    func observe(_ connection: OpaquePointer) {
      sqlite3_set_authorizer(
        connection,
        { context, action, name, _, _, _ in
          if action == SQLITE_PRAGMA, let context, let name, String(cString: name) == "data_version" {
            Unmanaged<Mover>.fromOpaque(context).takeUnretainedValue().move()
          }
          return SQLITE_OK
        }, Unmanaged.passUnretained(self).toOpaque())
    }
  }

  /// The log is open by then, but its identity is not known yet.
  @Test func `a folder that is moved while the writer connects is an error`() async throws {
    let inner = folder.path("inner")
    try FileManager.default.createDirectory(atPath: inner, withIntermediateDirectories: false)
    try await makeStore(1, at: inner + "/app.sqlite")
    let mover = Mover(inner)
    let database = try await SQLiteDatabase(path: inner + "/app.sqlite") { mover.observe($0.pointer) }
    mover.arm()
    let error = await expectStoreError(.invalidArgument) { try await SQLiteStore<Int>(in: database) }
    #expect(error?.operation == .open && error?.message.contains("log cannot be examined") == true)
    mover.moveBack()
    let store = try await SQLiteStore<Int>(in: database)
    #expect(try store.value(forKey: "key") == 1)
    try await store.setValue(2, forKey: "key")
    try await database.close()
    withExtendedLifetime(mover) {}
  }

  /// Opening looks at the path several times.
  @Test func `a folder that is exchanged while its database is opened loses nothing`() async throws {
    let (inner, other) = (folder.path("inner"), folder.path("other"))
    try FileManager.default.createDirectory(atPath: inner, withIntermediateDirectories: false)
    try Data().write(to: URL(filePath: other))
    try await makeStore(1, at: inner + "/app.sqlite")
    let isDone = Flag()
    let exchanging = Thread {
      while !isDone.isSet {
        #expect(rename(inner, inner + ".away") == 0 && rename(other, inner) == 0)
        #expect(rename(inner, other) == 0 && rename(inner + ".away", inner) == 0)
      }
    }
    exchanging.start()
    // The last look fails after some 2,000 attempts.
    for _ in 0..<20_000 {
      do {
        let store = try await SQLiteStore<Int>(path: inner + "/app.sqlite", createsIfMissing: false)
        #expect(try store.value(forKey: "key") == 1)
        try await store.close()
      } catch let error as StoreError {
        let codes = [StoreError.Code.notFound, .invalidArgument, .conflict, .notPermitted, .ioFailed]
        try #require(codes.contains(error.code) && error.outcome == .nothingChanged, "\(error)")
        if error.message == "the path cannot be examined" { break }
      }
    }
    isDone.set()
    try await waitUntil { exchanging.isFinished }
    let store = try await SQLiteStore<Int>(path: inner + "/app.sqlite", createsIfMissing: false)
    #expect(try store.value(forKey: "key") == 1)
    try await store.setValue(2, forKey: "key")
    try await store.close()
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
