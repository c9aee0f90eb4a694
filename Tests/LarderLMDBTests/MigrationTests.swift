#if LMDB
import CLMDB
import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderLMDB

/// Copies of environments of both formats that the loaded library can open.
@Suite(.timeLimit(.minutes(20))) struct MigrationTests {
  private static let formats = DataFileFormat.all.filter { ExaminedImage.obstacle($0) == nil }

  private let folder: TemporaryFolder
  private var old: String { folder.path("old") }
  private var new: String { folder.path("new") }

  init() throws {
    folder = try TemporaryFolder()
  }

  private func expectEntries(at path: String, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let environment = try await LMDBEnvironment(path: path, access: .readOnly, createsIfMissing: false)
    #expect(try await environment.storeNames() == ["default", "other"], sourceLocation: sourceLocation)
    // Another codec than the recorded one is refused.
    await expectStoreError(.versionMismatch) { try await LMDBStore<Int>(in: environment, codec: .json()) }
    let store = try await LMDBStore<[UInt8]>(in: environment, codec: .raw)
    let found = try await store.entries(in: .all, limit: .max, order: .ascending)
    #expect(
      Dictionary(uniqueKeysWithValues: found.map { ($0.key, $0.value) }) == ExaminedImage.entries,
      sourceLocation: sourceLocation)
    try await environment.close()
  }

  @Test(arguments: formats, [true, false]) func `all databases are copied`(_ format: DataFileFormat, isFolder: Bool)
    async throws
  {
    try await ExaminedImage.create(format, at: folder.path("created"))
    try FileManager.default.moveItem(atPath: folder.path(isFolder ? "created" : "created/data.mdb"), toPath: old)
    let data = isFolder ? old + "/data.mdb" : old
    let before = try Data(contentsOf: URL(filePath: data))
    let migration = try await LMDBEnvironment.migrate(from: old, to: new)
    #expect(migration.oldVersion == format.library && migration.newVersion == DataFileFormat.linked.library)
    #expect(migration.databaseCount == 3)
    #expect(migration.entryCount > ExaminedImage.number + 200)
    #expect(try Data(contentsOf: URL(filePath: data)) == before)
    try await expectEntries(at: new)
    #expect(try folder.names.filter { $0.contains("tmp") } == [])
    // Nothing is replaced.
    await expectStoreError(.invalidArgument) { try await LMDBEnvironment.migrate(from: old, to: new) }
    try await expectEntries(at: new)
    // The copy can be written.
    let store = try await LMDBStore<[UInt8]>(path: new, codec: .raw)
    try await store.setValue([1], forKey: "new")
    try await store.close()
  }

  @Test func `the entries of other programs are copied`() async throws {
    guard ExaminedImage.obstacle(.version1) == nil, ExaminedImage.obstacle(.version3) == nil else { return }
    let program = """
      environment = lmdb.open(sys.argv[1], max_dbs=4, map_size=1 << 26)
      with environment.begin(write=True) as transaction:
        for number in range(3000): transaction.put(b"plain %d" % number, b"value" * (number % 30))
        transaction.put(b"large", b"v" * 100000)
      environment.open_db(b"m empty")
      environment.open_db("näme".encode())
      environment.close()
      """
    _ = try ForeignTool.runOther(program, old)
    let migration = try await LMDBEnvironment.migrate(from: old, to: new)
    #expect(migration.databaseCount == 2 && migration.entryCount == 3001)
    let lines = try ForeignTool.lines(
      of: "env", "LD_LIBRARY_PATH=\(DataFileFormat.linked == .version3 ? ForeignTool.otherLibrary ?? "" : "")",
      ForeignTool.python ?? "", "-c",
      """
      import lmdb, sys
      environment = lmdb.open(sys.argv[1], max_dbs=4, map_size=1 << 26)
      with environment.begin() as transaction:
        print(transaction.stat()["entries"], len(transaction.get(b"large")), transaction.get(b"plain 31"))
        print(transaction.stat(environment.open_db(b"m empty", txn=transaction, create=False))["entries"])
      """, new)
    #expect(lines == ["3003 100000 b'value'", "0"])
  }

  @Test(arguments: formats) func `a database with several values per key is refused`(_ format: DataFileFormat)
    async throws
  {
    guard format != .linked else { return }
    let program = """
      environment = lmdb.open(sys.argv[1], max_dbs=4, map_size=1 << 26)
      database = environment.open_db(b"several", dupsort=True)
      with environment.begin(write=True) as transaction:
        for number in range(3): transaction.put(b"key", b"%d" % number, db=database)
      """
    _ = try ForeignTool.runOther(program, old)
    await expectStoreError(.unsupported) { try await LMDBEnvironment.migrate(from: old, to: new) }
    #expect(try folder.names == ["old"])
  }

  @Test(arguments: formats) func `damage is refused`(_ format: DataFileFormat) async throws {
    let image = try await ExaminedImage.make(format)
    let pages = image.paths.values.reduce(into: Set<UInt64>()) { $0.formUnion($1) }.subtracting(image.bodies).sorted()
    for page in [0, 1] + TestDepth.part(of: pages, oneIn: 20, for: "migration") {
      var bytes = image.bytes
      for place in 0..<ExaminedImage.pageSize { bytes[Int(page) * ExaminedImage.pageSize + place] = 0 }
      try Data(bytes).write(to: URL(filePath: old))
      await expectStoreError(.corrupted) { try await LMDBEnvironment.migrate(from: old, to: new) }
    }
    #expect(try folder.names == ["old"])
    await expectStoreError(.notFound) { try await LMDBEnvironment.migrate(from: folder.path("missing"), to: new) }
  }

  /// A program of either version, and this process.
  @Test(arguments: formats) func `an environment in use is refused`(_ format: DataFileFormat) async throws {
    try await ExaminedImage.create(format, at: old)
    if format == .linked {
      let environment = try await LMDBEnvironment(path: old)
      await expectStoreError(.locked) { try await LMDBEnvironment.migrate(from: old, to: new) }
      // The locks of this process are still there.
      await #expect(processExitsWith: .success) { [old = old as String, new = new as String] in
        await expectStoreError(.locked) { try await LMDBEnvironment.migrate(from: old, to: new) }
      }
      try await environment.close()
    } else {
      let waiting = """
        import time, os
        environment = lmdb.open(sys.argv[1], max_dbs=4, map_size=1 << 26)
        open(sys.argv[1] + ".open", "w")
        end = time.time() + 60
        while not os.path.exists(sys.argv[1] + ".refused") and time.time() < end: time.sleep(0.01)
        """
      async let lines = Task.detached { [old = old as String] in try ForeignTool.runOther(waiting, old) }.value
      while !FileManager.default.fileExists(atPath: old + ".open") { try await Task.sleep(for: .milliseconds(5)) }
      await expectStoreError(.locked) { try await LMDBEnvironment.migrate(from: old, to: new) }
      try Data().write(to: URL(filePath: old + ".refused"))
      _ = try await lines
    }
    #expect(!FileManager.default.fileExists(atPath: new))
    _ = try await LMDBEnvironment.migrate(from: old, to: new)
    try await expectEntries(at: new)
  }

  @Test func `the rest of an interrupted migration is replaced`() async throws {
    try await ExaminedImage.create(.linked, at: old)
    let left = new + ".larder-tmp-0123456789abcdef"
    try FileManager.default.createDirectory(atPath: left + "/store", withIntermediateDirectories: true)
    try Data([1]).write(to: URL(filePath: left + "/store/data.mdb"))
    try Data().write(to: URL(filePath: left + "/lock"))
    _ = try await LMDBEnvironment.migrate(from: old, to: new)
    #expect(try folder.names == ["new", "old"])
    try await expectEntries(at: new)
  }

  /// As if a byte of a value had changed on its way to the disk.
  @Test func `a copy that was written wrongly is refused`() async throws {
    try await ExaminedImage.create(.linked, at: old)
    await expectStoreError(.ioFailed) {
      try await LMDBEnvironment.migrate(from: old, to: new) { path in
        let url = URL(filePath: path + "/data.mdb")
        var content = try Data(contentsOf: url)
        let place = try #require(content.range(of: Data(repeating: 101, count: 50))).lowerBound
        content[place] = 102
        try content.write(to: url)
      }
    }
    #expect(try folder.names == ["old"])
  }

  /// Another program has opened the old environment after the migration began.
  @Test func `a write during the migration is a conflict`() async throws {
    try await ExaminedImage.create(.linked, at: old)
    await expectStoreError(.conflict) {
      try await LMDBEnvironment.migrate(from: old, to: new) { [old] _ in
        try ForeignTool.write(to: old) { transaction in
          var database: MDB_dbi = 0
          try LMDBError.check(mdb_dbi_open(transaction, nil, 0, &database))
          try RawDatabase(transaction: transaction, identifier: database).setValue([2], forKey: "plain")
        }
      }
    }
    #expect(try folder.names == ["old"])
  }

  /// Only a program that does not use LMDB's own library writes such a name.
  @Test(arguments: formats) func `the name of a database that the library cannot open is refused`(
    _ format: DataFileFormat
  ) async throws {
    let image = try await ExaminedImage.make(format)
    try Data(image.bytes).write(to: URL(filePath: old))
    let list = try #require(try DataFileReader(old, store: "old").latestSnapshot().meta.main.root)
    let page = Int(list) * ExaminedImage.pageSize..<(Int(list) + 1) * ExaminedImage.pageSize
    var bytes = Data(image.bytes)
    let name = try #require(bytes.range(of: Data("other".utf8), in: page))
    bytes[name.lowerBound + 3] = 0
    try bytes.write(to: URL(filePath: old))
    let error = await expectStoreError(.unsupported) { try await LMDBEnvironment.migrate(from: old, to: new) }
    #expect(error?.message.contains("name of a database") == true)
    #expect(try folder.names == ["old"])
  }

  /// The lock file shows whether a program has the environment open.
  @Test(arguments: ["data.mdb", "lock.mdb"]) func `a file without permission is refused`(name: String) async throws {
    try await ExaminedImage.create(.linked, at: old)
    #expect(chmod(folder.path, 0o755) == 0 && chmod(old, 0o755) == 0)
    for file in ["data.mdb", "lock.mdb"] { #expect(chmod("\(old)/\(file)", file == name ? 0 : 0o644) == 0) }
    await #expect(processExitsWith: .success) { [old = old as String, new = new as String, name = name as String] in
      try await withoutRootPrivileges {
        let error = await expectStoreError(.notPermitted) { try await LMDBEnvironment.migrate(from: old, to: new) }
        #expect(error?.message.contains(name == "data.mdb" ? "data file" : "lock file") == true)
      }
    }
    #expect(try folder.names == ["old"])
    #expect(chmod("\(old)/\(name)", 0o644) == 0)
    _ = try await LMDBEnvironment.migrate(from: old, to: new)
    try await expectEntries(at: new)
  }

  @Test(
    .enabled(if: TemporaryFileSystem.obstacle == nil, "\(TemporaryFileSystem.obstacle ?? "")"),
    arguments: [16, 64, 100, 128, 250, 500])
  func `a disk without room for the copy is full`(kilobytes: Int) async throws {
    try await ExaminedImage.create(.linked, at: old)
    let disk = try TemporaryFileSystem(size: "\(kilobytes)k")
    let error = await expectStoreError(.full) { try await LMDBEnvironment.migrate(from: old, to: disk.path + "/new") }
    #expect(error?.outcome == .nothingChanged && error?.isRetryable == true)
    #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path) == [])
  }

  /// As if the disk of the old environment were lost.
  ///
  /// A descriptor that cannot be read takes the place of that of its file.
  @Test func `an environment that cannot be read any more is named`() async throws {
    try await ExaminedImage.create(.linked, at: old)
    await #expect(processExitsWith: .success) { [old = old as String, new = new as String] in
      let error = await expectStoreError(.ioFailed) {
        try await LMDBEnvironment.migrate(from: old, to: new) { _ in
          var file = stat()
          #expect(stat(old + "/data.mdb", &file) == 0)
          let unreadable = open("/dev/null", O_WRONLY | O_CLOEXEC)
          for descriptor in 3..<unreadable {
            var other = stat()
            guard fstat(descriptor, &other) == 0, other.st_ino == file.st_ino, other.st_dev == file.st_dev else {
              continue
            }
            #expect(dup2(unreadable, descriptor) == descriptor)
          }
        }
      }
      #expect(error?.message == "the data file cannot be read" && error?.store == "old")
    }
    #expect(try folder.names == ["old"])
    _ = try await LMDBEnvironment.migrate(from: old, to: new)
    try await expectEntries(at: new)
  }

  /// The comparison notices each kind of difference.
  @Test func `a different copy is noticed`() async throws {
    func listing(_ name: String, _ changes: ChangeBatch<[UInt8]>) async throws -> DatabaseListing {
      try await ExaminedImage.create(.linked, at: folder.path(name))
      let store = try await LMDBStore<[UInt8]>(path: folder.path(name), codec: .raw)
      try await store.apply(changes)
      try await store.close()
      return DatabaseListing(
        try DataFileReader(folder.path(name) + "/data.mdb", store: name).latestSnapshot(), store: name)
    }
    let keys = ExaminedImage.entries.keys.sorted()
    let whole = try await listing("whole", [])
    try whole.compare(with: try await listing("same", []))
    let differences: [ChangeBatch<[UInt8]>] = [
      [.set(keys[20], [7])], [.remove(keys[0])], [.remove(keys[599])], [.set("a", [1])], [.set("z", [1])],
      [.remove(keys[3]), .set("k", [])],
    ]
    for (number, changes) in differences.enumerated() {
      let other = try await listing("\(number)", changes)
      expectStoreError(.ioFailed) { try whole.compare(with: other) }
    }
    _ = try await LMDBStore<[UInt8]>(path: folder.path("same"), name: "third", codec: .raw).close()
    let third = DatabaseListing(
      try DataFileReader(folder.path("same") + "/data.mdb", store: "third").latestSnapshot(), store: "third")
    expectStoreError(.ioFailed) { try whole.compare(with: third) }
  }
}
#endif
