#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderCompressedFile
import LarderFiles
import LarderJSON
import LarderLMDB
import LarderQueue
import LarderSQLite
import TestSupport
import Testing

/// The files of stores of every format: no new store, backup or restored store takes up a file of another one.
@Suite struct StoreFilesTests {
  enum Format: String, CaseIterable, Codable {
    case json, compressed, sqlite, lmdb, singleFileLMDB, queue

    /// The companions that a new store would take up.
    var contents: [String] {
      switch self {
      case .json: [".journal"]
      case .sqlite: ["-wal", "-shm", "-journal"]
      case .singleFileLMDB: ["-lock"]
      case .compressed, .lmdb, .queue: []
      }
    }

    /// A Boolean value that indicates whether opening creates the file itself, beside which a companion may be left.
    var createsBesideCompanions: Bool { [.json, .sqlite].contains(self) }

    func open(
      _ path: String, access: StoreAccess = .readWrite
    ) async throws -> any MaintainableStore<String> {
      switch self {
      case .json: return try await JSONFileStore<String>(path: path, access: access)
      case .compressed: return try await CompressedFileStore<String>(path: path, access: access)
      case .sqlite: return try await SQLiteStore<String>(path: path, access: access)
      case .lmdb: return try await LMDBStore<String>(path: path, access: access)
      case .singleFileLMDB:
        // An environment is a single file if there is one.
        if !FileManager.default.fileExists(atPath: path) { try Data().write(to: URL(filePath: path)) }
        return try await LMDBStore<String>(path: path, access: access)
      case .queue: return try await QueueStore<String>(path: path, access: access)
      }
    }

    /// Creates a store with one entry.
    func make(_ path: String) async throws -> any MaintainableStore<String> {
      let store = try await open(path)
      try await store.setValue("value", forKey: "key")
      return store
    }

    /// All pairs of a format and the suffix of a companion.
    static let companions = allCases.flatMap { format in format.contents.map { (format, $0) } }
  }

  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func write(_ text: String, to name: String) throws {
    try Data(text.utf8).write(to: URL(filePath: folder.path(name)))
  }

  private func text(_ name: String) throws -> String {
    try String(contentsOfFile: folder.path(name), encoding: .utf8)
  }

  // MARK: Companions of another store

  @Test(arguments: Format.companions) func `a destination with a companion is refused`(
    _ format: Format, _ suffix: String
  ) async throws {
    let store = try await format.make(folder.path("store"))
    try write("of another store", to: "copy" + suffix)
    let names = try folder.names
    for isCompacting in [false, true] {
      let error = await expectStoreError(.invalidArgument) {
        try await store.backup(to: folder.path("copy"), compacting: isCompacting)
      }
      #expect(error?.message.contains(folder.path("copy" + suffix)) == true)
      #expect(error?.message.contains("move it away") == true)
    }
    await expectStoreError(.invalidArgument) { try await store.restore(to: folder.path("copy")) }
    #expect(try folder.names == names, "nothing was written")
    #expect(try text("copy" + suffix) == "of another store")
    try await store.close()
  }

  @Test(arguments: Format.companions.filter { $0.0.createsBesideCompanions })
  func `no store is created beside a companion`(_ format: Format, _ suffix: String) async throws {
    try write("of another store", to: "store" + suffix)
    let error = await expectStoreError(.corrupted) { try await format.open(folder.path("store")) }
    #expect(error?.message.contains(folder.path("store" + suffix)) == true)
    #expect(try !folder.names.contains("store"))
    #expect(try text("store" + suffix) == "of another store")
    try FileManager.default.removeItem(atPath: folder.path("store" + suffix))
    let store = try await format.make(folder.path("store"))
    try await store.close()
  }

  /// A data file that was removed leaves a lock file, which a new data file would share with the programs that have the
  /// old one open.
  @Test(arguments: [Format.sqlite, .lmdb]) func `no store is created for an open one that was removed`(
    _ format: Format
  ) async throws {
    let store = try await format.make(folder.path("store"))
    let data = format == .lmdb ? "store/data.mdb" : "store"
    try FileManager.default.removeItem(atPath: folder.path(data))
    // This process knows LMDB's lock file, and says so.
    await expectStoreError(format == .lmdb ? .locked : .corrupted) { try await format.open(folder.path("store")) }
    await #expect(processExitsWith: .success) { [path = folder.path("store") as String, format = format as Format] in
      await expectStoreError(.corrupted) { try await format.open(path) }
    }
    await expectStoreError(.conflict) { try await store.setValue("more", forKey: "key") }
    await expectStoreError(.conflict) { try await store.close() }
    #expect(!FileManager.default.fileExists(atPath: folder.path(data)))
  }

  @Test(arguments: [Format.json, .compressed]) func `a lock that is held is refused`(_ format: Format) async throws {
    let store = try await format.make(folder.path("store"))
    let lock = try #require(try FileLock.acquire(folder.path("copy.lock"), in: POSIXFileSystem()))
    let error = await expectStoreError(.locked) { try await store.backup(to: folder.path("copy")) }
    #expect(error?.message.contains("copy.lock") == true && error?.isRetryable == true)
    try lock.release()
    // The file stays after use.
    try await store.backup(to: folder.path("copy"))
    try await store.close()
    let copy = try await format.open(folder.path("copy"))
    #expect(try await copy.value(forKey: "key") == "value")
    try await copy.close()
  }

  @Test(arguments: Format.allCases) func `the files of the store itself are no destination`(_ format: Format)
    async throws
  {
    let store = try await format.make(folder.path("store"))
    for suffix in [""] + format.contents + [".dictionaries"] {
      let error = await expectStoreError(.invalidArgument) { try await store.backup(to: folder.path("store" + suffix)) }
      #expect(error?.message.contains(folder.path("store" + suffix)) == true)
    }
    try await store.close()
  }

  // MARK: Temporary files

  @Test(arguments: Format.allCases) func `a backup removes what killed backups left`(_ format: Format) async throws {
    let store = try await format.make(folder.path("store"))
    func makeTemporary(_ name: String) throws -> String {
      let temporary = folder.path("\(name).larder-tmp-0123456789abcdef")
      try FileManager.default.createDirectory(atPath: temporary + "/store", withIntermediateDirectories: true)
      for file in ["lock", "store/data.mdb", "store-wal", "store.dictionaries"] {
        try Data("x".utf8).write(to: URL(filePath: "\(temporary)/\(file)"))
      }
      return temporary
    }
    // A rotation chooses another name for each backup, so the name does not matter.
    let killed = try [makeTemporary("copy"), makeTemporary("other")]
    let running = try makeTemporary("running")
    let lock = try #require(try FileLock.acquire(running + "/lock", in: POSIXFileSystem()))
    let foreign = folder.path("copy.larder-tmp-0123")
    try FileManager.default.createDirectory(atPath: foreign, withIntermediateDirectories: false)
    try await store.backup(to: folder.path("copy"))
    for path in killed { #expect(!FileManager.default.fileExists(atPath: path)) }
    #expect(FileManager.default.fileExists(atPath: running + "/store/data.mdb"), "another backup is still writing")
    #expect(FileManager.default.fileExists(atPath: foreign))
    try lock.release()
    try await store.close()
    #expect(try folder.names.filter { $0.contains(".larder-tmp-") }.count == 2)
  }

  /// In a shared folder such as `/tmp`, another user can create any name.
  @Test func `a backup removes nothing behind symbolic links`() async throws {
    let store = try await Format.json.make(folder.path("store"))
    for file in ["victim/lock", "victim/data"] {
      try FileManager.default.createDirectory(atPath: folder.path("victim"), withIntermediateDirectories: true)
      try write("x", to: file)
    }
    let link = folder.path("one.larder-tmp-0123456789abcdef")
    let temporary = folder.path("two.larder-tmp-0123456789abcdef")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: folder.path("victim"))
    try FileManager.default.createDirectory(atPath: temporary, withIntermediateDirectories: false)
    try write("", to: "two.larder-tmp-0123456789abcdef/lock")
    try FileManager.default.createSymbolicLink(atPath: temporary + "/store", withDestinationPath: folder.path("victim"))
    try await store.backup(to: folder.path("copy"))
    try await store.close()
    #expect(try text("victim/data") == "x")
    #expect(try text("victim/lock") == "x")
    #expect(!FileManager.default.fileExists(atPath: temporary), "the link is removed, and not followed")
  }

  @Test func `a backup leaves the temporary folders of other users`() async throws {
    // Only the superuser can give a folder away.
    guard geteuid() == 0 else { return }
    let store = try await Format.json.make(folder.path("store"))
    let temporary = folder.path("copy.larder-tmp-0123456789abcdef")
    try FileManager.default.createDirectory(
      atPath: temporary, withIntermediateDirectories: false, attributes: [.ownerAccountID: 65534])
    try write("", to: "copy.larder-tmp-0123456789abcdef/lock")
    try await store.backup(to: folder.path("copy"))
    try await store.close()
    #expect(FileManager.default.fileExists(atPath: temporary + "/lock"))
  }

  @Test func `a new database removes what killed creations left`() async throws {
    let temporary = folder.path("store.larder-tmp-0123456789abcdef")
    try FileManager.default.createDirectory(atPath: temporary, withIntermediateDirectories: false)
    for file in ["lock", "store"] { try Data().write(to: URL(filePath: "\(temporary)/\(file)")) }
    let store = try await Format.sqlite.make(folder.path("store"))
    try await store.close()
    #expect(try folder.names == ["store"])
  }

  // MARK: Dictionaries

  @Test(arguments: Format.allCases) func `a backup takes the dictionaries along`(_ format: Format) async throws {
    let store = try await format.make(folder.path("store"))
    try write("dictionaries", to: "store.dictionaries")
    try await store.backup(to: folder.path("copy"))
    #expect(try text("copy.dictionaries") == "dictionaries")
    // Of another store, or of a later time.
    try write("others", to: "second.dictionaries")
    let names = try folder.names
    let error = await expectStoreError(.invalidArgument) { try await store.restore(to: folder.path("second")) }
    #expect(error?.message.contains(folder.path("second.dictionaries")) == true)
    #expect(try folder.names == names)
    // The store was moved away without them.
    try write("dictionaries", to: "second.dictionaries")
    try await store.restore(to: folder.path("second"))
    try await store.close()
    let copy = try await format.open(folder.path("second"))
    #expect(try await copy.value(forKey: "key") == "value")
    try await copy.close()
  }

  // MARK: Restoring

  @Test(arguments: Format.allCases) func `a backup is restored`(_ format: Format) async throws {
    let store = try await format.make(folder.path("store"))
    try await store.backup(to: folder.path("backup"))
    try await store.close()
    let backup = try await format.open(folder.path("backup"), access: .readOnly)
    let report = try await backup.restore(to: folder.path("restored"))
    #expect(report.entryCount == 1 && report.findings.isEmpty)
    await expectStoreError(.invalidArgument) { try await backup.restore(to: folder.path("restored")) }
    try await backup.close()
    let restored = try await format.open(folder.path("restored"))
    #expect(try await restored.value(forKey: "key") == "value")
    try await restored.setValue("more", forKey: "other")
    try await restored.close()
  }

  /// The code of the guide `Modules/Larder/Larder.docc/Restoring.md`.
  @Test func `the guide restores`() async throws {
    struct User: Codable, Equatable {
      var name: String
    }

    let folder = folder.path
    let monday = try await JSONFileStore<User>(path: folder + "/monday.json")
    try await monday.setValue(User(name: "Ada"), forKey: "1")
    try await monday.close()

    // snippet.restoring
    let backup = try await JSONFileStore<User>(path: folder + "/monday.json", access: .readOnly)
    try await backup.restore(to: folder + "/users.json")
    try await backup.close()
    // snippet.end

    let users = try await JSONFileStore<User>(path: folder + "/users.json")
    #expect(try users.value(forKey: "1") == User(name: "Ada"))
    try await users.close()
  }

  @Test func `a damaged backup is not restored`() async throws {
    let store = try await Format.json.make(folder.path("backup"))
    try await store.setValue("second", forKey: "other")
    try await store.close()
    try write(try text("backup").replacing("\"value\"", with: "\"value"), to: "cut")
    let backup = try await Format.json.open(folder.path("cut"), access: .readOnly)
    let names = try folder.names
    let error = await expectStoreError(.corrupted) { try await backup.restore(to: folder.path("restored")) }
    #expect(error?.operation == .restore)
    let damage = try #require(error?.underlying as? DamagedBackupError)
    #expect(!damage.report.findings.isEmpty)
    #expect(
      "\(damage)"
        == "the verification of \(damage.report.entryCount) entries has \(damage.report.findings.count) findings")
    #expect(try folder.names == names)
    try await backup.close()
  }
}
#endif
