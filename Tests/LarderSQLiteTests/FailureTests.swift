#if SQLite
import CSQLite
import Foundation
import Larder
import LarderFiles
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

/// Locks, refusals, full disks, moved, damaged and foreign files.
@Suite(.timeLimit(.minutes(60))) struct FailureTests {
  private let folder: TemporaryFolder
  private var path: String { folder.path("app.sqlite") }

  init() throws {
    folder = try TemporaryFolder()
  }

  @Test(.enabled(if: ForeignSQLite.obstacle == nil)) func `another writer is waited for until the timeout`()
    async throws
  {
    let store = try await SQLiteStore(path: path, codec: .raw, busyTimeout: .milliseconds(20))
    try await store.setValue([1], forKey: "a")
    // A connection of this process, but not of Larder, holds the lock.
    let other = try await OtherConnection(path)
    try other.run("BEGIN IMMEDIATE")
    let error = await expectStoreError(.timedOut) { try await store.setValue([2], forKey: "a") }
    #expect(error?.isRetryable == true && error?.outcome == .nothingChanged)
    await expectStoreError(.timedOut) { try await store.update("a") { $0 = [3] } }
    #expect(try store.value(forKey: "a") == [1])
    try other.run("ROLLBACK")
    try await store.setValue([4], forKey: "a")
    #expect(try store.value(forKey: "a") == [4])
    other.close()
    try await store.close()
  }

  @Test(.enabled(if: ForeignSQLite.obstacle == nil)) func `triggers and constraints of the user refuse`() async throws {
    let database = try await SQLiteDatabase(path: path)
    let store = try await SQLiteStore(in: database, name: "s", codec: .json(Int.self))
    try await store.setValue(1, forKey: "a")
    try ForeignSQLite.run(
      path,
      """
      CREATE TABLE log(text TEXT);
      CREATE TRIGGER refuse BEFORE UPDATE ON s WHEN NEW.value = '13' BEGIN SELECT RAISE(ABORT, 'unlucky'); END;
      CREATE TRIGGER end BEFORE UPDATE ON s WHEN NEW.value = '14' BEGIN SELECT RAISE(ROLLBACK, 'over'); END;
      CREATE TRIGGER note AFTER UPDATE ON s BEGIN INSERT INTO log VALUES(NEW.value); END;
      CREATE UNIQUE INDEX distinct_values ON s(value);
      CREATE INDEX half ON s(json_extract(value, '$') / 2);
      """)
    for value in [13, 14] {
      let error = await expectStoreError(.notPermitted) { try await store.apply([.set("b", 5), .set("a", value)]) }
      #expect(error.map { "\($0)".contains(value == 13 ? "unlucky" : "over") } == true)
      #expect(error?.outcome == .nothingChanged)
    }
    await expectStoreError(.notPermitted) { try await store.apply([.set("b", 1)]) }
    // The closure that catches the error does not save the transaction.
    await expectStoreError(.notPermitted) {
      try await database.write { transaction in
        try transaction.setValue(7, forKey: "c", in: store)
        try? transaction.setValue(13, forKey: "a", in: store)
      }
    }
    #expect(try store.keys(in: .all, limit: 9, order: .ascending) == ["a"])
    try await store.setValue(2, forKey: "a")
    #expect(try ForeignSQLite.run(path, "SELECT text FROM log") == ["2"])
    try await database.close()
  }

  @Test func `files that were moved are not written`() async throws {
    for suffix in ["", "-wal", "-shm"] {
      let path = folder.path("moved\(suffix).sqlite")
      let store = try await SQLiteStore(path: path, codec: .raw)
      try await store.setValue([1], forKey: "a")
      try FileManager.default.moveItem(atPath: path + suffix, toPath: path + suffix + ".old")
      let error = await expectStoreError(.conflict) { try await store.setValue([2], forKey: "a") }
      #expect(error?.message.contains("moved or removed") == true)
      try FileManager.default.moveItem(atPath: path + suffix + ".old", toPath: path + suffix)
      // Also after it came back, because others may have used what stood there.
      await expectStoreError(.conflict) { try await store.setValue([3], forKey: "a") }
      await expectStoreError(.conflict) { try await store.close() }
      let again = try await SQLiteStore(path: path, codec: .raw)
      #expect(try again.value(forKey: "a") == [1])
      try await again.close()
    }
  }

  @Test(arguments: Obstruction.allCases) func `files that cannot be examined are not written`(
    _ obstruction: Obstruction
  ) async throws {
    let inner = folder.path("inner")
    try FileManager.default.createDirectory(atPath: inner, withIntermediateDirectories: false)
    let database = try await SQLiteDatabase(path: inner + "/app.sqlite", durability: .buffered)
    let store = try await SQLiteStore(in: database, codec: .json(Int.self))
    try await store.setValue(1, forKey: "k")
    try await obstruction.replacing(inner) {
      for error in [
        await expectStoreError(.ioFailed) { try await store.setValue(2, forKey: "k") },
        await expectStoreError(.ioFailed) { try await store.update("k") { $0 = 2 } },
        await expectStoreError(.ioFailed) { try await database.write { try $0.removeAll(of: store) } },
        await expectStoreError(.ioFailed) { try await database.synchronize() },
      ] {
        #expect(error?.outcome == .nothingChanged && error?.message.contains("could not be checked") == true)
      }
      let error = await expectStoreError(.ioFailed) { try await database.statistics() }
      #expect(error?.operation == .statistics)
      let value = try store.value(forKey: "k")
      #expect(value == 1)
    }
    // The same files are there again.
    try await store.setValue(3, forKey: "k")
    try await obstruction.replacing(inner) {
      await expectStoreError(.ioFailed) { try await database.close() }
    }
    let again = try await SQLiteStore(path: inner + "/app.sqlite", codec: .json(Int.self))
    #expect(try again.value(forKey: "k") == 3)
    try await again.close()
  }

  @Test func `paths that lead to no database are refused`() async throws {
    try Data("x".utf8).write(to: URL(filePath: folder.path("file")))
    try FileManager.default.createSymbolicLink(atPath: folder.path("circle"), withDestinationPath: "circle")
    for name in ["file/below", "circle", "a\0b", String(repeating: "n", count: 300)] {
      let error = await expectStoreError(.invalidArgument) { try await SQLiteDatabase(path: folder.path(name)) }
      #expect(error?.operation == .open && error?.outcome == .nothingChanged)
    }
    #expect(mkfifo(folder.path("fifo"), 0o600) == 0)
    await expectStoreError(.unrecognizedFormat) { try await SQLiteDatabase(path: folder.path("fifo")) }
    #expect(try folder.names == ["circle", "fifo", "file"])
  }

  /// Files can be created in its folder, but the folder cannot be opened.
  @Test func `a folder that cannot be synced fails what must be durable`() async throws {
    let inner = folder.path("inner")
    try FileManager.default.createDirectory(atPath: inner, withIntermediateDirectories: false)
    let path = inner + "/app.sqlite"
    let store = try await SQLiteStore(path: path, codec: .json(Int.self))
    try await store.setValue(1, forKey: "k")
    try await store.close()
    if geteuid() == 0 { for path in [inner, path] { #expect(chown(path, 65534, 65534) == 0) } }
    #expect(chmod(folder.path, 0o755) == 0 && chmod(inner, 0o300) == 0)
    await #expect(processExitsWith: .success) { [path = path as String] in
      try await withoutRootPrivileges {
        let store = try await SQLiteStore(path: path, codec: .json(Int.self), durability: .buffered)
        try await store.setValue(2, forKey: "k")
        for _ in 0..<2 {
          let error = await expectStoreError(.notPermitted) { try await store.synchronize() }
          #expect(error?.outcome == .unknown && error?.message.contains("made durable") == true)
        }
        #expect(try store.value(forKey: "k") == 2)
        try await store.setValue(3, forKey: "k")
        await expectStoreError(.notPermitted) { try await store.close() }
        // Also the names of the files must be durable before a write returns.
        let synced = try await SQLiteStore(path: path, codec: .json(Int.self))
        #expect(try synced.value(forKey: "k") == 3)
        for _ in 0..<2 {
          let error = await expectStoreError(.notPermitted) { try await synced.setValue(4, forKey: "k") }
          #expect(error?.outcome == .nothingChanged && error?.message.contains("synced") == true)
        }
        #expect(try synced.value(forKey: "k") == 3)
        try await synced.close()
        // As for a new database, which is in place all the same.
        let new = path + "-new"
        let error = await expectStoreError(.notPermitted) { try await SQLiteStore(path: new, codec: .json(Int.self)) }
        #expect(error?.outcome == .unknown)
        await expectStoreError(.notPermitted) { try await SQLiteStore(path: new, codec: .json(Int.self)) }
      }
    }
    #expect(chmod(inner, 0o700) == 0)
    let again = try await SQLiteStore(path: path, codec: .json(Int.self))
    #expect(try again.value(forKey: "k") == 3)
    try await again.close()
  }

  /// A program that registers a file system without shared memory as SQLite's default, as for a disk on a network.
  @Test func `a file system that cannot have a log is refused`() async throws {
    let store = try await SQLiteStore(path: path, codec: .json(Int.self))
    try await store.setValue(1, forKey: "k")
    try await store.close()
    let other = try await OtherConnection(path)
    try other.run("PRAGMA journal_mode = DELETE")
    other.close()
    await #expect(processExitsWith: .success) { [path = path as String, new = folder.path("new") as String] in
      #expect(sqlite3_vfs_register(sqlite3_vfs_find("unix-none"), 1) == SQLITE_OK)
      let store = try await SQLiteStore(path: path, codec: .json(Int.self))
      #expect(try store.value(forKey: "k") == 1)
      for error in [
        await expectStoreError(.unsupported) { try await store.setValue(2, forKey: "k") },
        await expectStoreError(.unsupported) { try await SQLiteDatabase(path: new) },
      ] {
        #expect(error?.outcome == .nothingChanged && error?.message.contains("write-ahead log") == true)
      }
      #expect(try store.value(forKey: "k") == 1)
      try await store.close()
    }
    #expect(try folder.names == ["app.sqlite"])
    let again = try await SQLiteStore(path: path, codec: .json(Int.self))
    try await again.setValue(2, forKey: "k")
    try await again.close()
  }

  @Test func `foreign files are refused and left`() async throws {
    for content in ["", "not a database, but long enough to have a header of one", "x"] {
      try Data(content.utf8).write(to: URL(filePath: path))
      await expectStoreError(.unrecognizedFormat) { try await SQLiteDatabase(path: path) }
      #expect(try Data(contentsOf: URL(filePath: path)) == Data(content.utf8))
      #expect(try folder.names == ["app.sqlite"])
    }
    await expectStoreError(.unrecognizedFormat) { try await SQLiteDatabase(path: folder.path) }
    await expectStoreError(.notFound) { try await SQLiteDatabase(path: folder.path("b"), createsIfMissing: false) }
    await expectStoreError(.notFound) { try await SQLiteDatabase(path: folder.path("b"), access: .readOnly) }
    #expect(try folder.names == ["app.sqlite"])
  }

  @Test func `several hard links are refused`() async throws {
    try await SQLiteDatabase(path: path).close()
    try FileManager.default.linkItem(atPath: path, toPath: folder.path("other"))
    await expectStoreError(.unsupported) { try await SQLiteDatabase(path: path) }
  }

  @Test func `an immutable database has no log`() async throws {
    let odd = folder.path("ä b?c#d%.sqlite")
    let store = try await SQLiteStore(path: odd, codec: .raw)
    try await store.setValue([1], forKey: "a")
    let copy = folder.path("copy.sqlite")
    for suffix in ["", "-wal"] { try FileManager.default.copyItem(atPath: odd + suffix, toPath: copy + suffix) }
    try await store.close()
    let reader = try await SQLiteStore(path: odd, codec: .raw, access: .immutable)
    #expect(try reader.value(forKey: "a") == [1])
    await expectStoreError(.notPermitted) { try await reader.setValue([2], forKey: "a") }
    try await reader.close()
    // The only commit of the copy is in its log, which such a reader would not see.
    await expectStoreError(.unsupported) { try await SQLiteStore(path: copy, codec: .raw, access: .immutable) }
    let whole = try await SQLiteStore(path: copy, codec: .raw)
    #expect(try whole.value(forKey: "a") == [1])
    try await whole.close()
  }

  @Test func `a damaged file gives the right values or an error`() async throws {
    let seed = SeededGenerator.seedOfProcess
    print("seed \(seed)")
    var random = SeededGenerator(seed: seed)
    let store = try await SQLiteStore(path: path, codec: .raw.checksummed())
    let expected = (0..<400).map { (StoreKey("key:\($0)"), [UInt8](repeating: UInt8($0 & 0xFF), count: $0 * 3)) }
    try await store.apply(ChangeBatch(expected.map { .set($0.0, $0.1) }))
    try await store.close()
    let original = try Data(contentsOf: URL(filePath: path))
    let pageCount = original.count / 4096
    #expect(pageCount > 40)
    var damages = (0..<pageCount).map { original.prefix($0 * 4096) }
    for _ in 0..<150 {
      var damaged = original
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        damaged[Int.random(in: 0..<damaged.count, using: &random)] ^= UInt8.random(in: 1...255, using: &random)
      }
      damages.append(damaged)
    }
    var refused = 0
    for (number, damage) in damages.enumerated() {
      let path = folder.path("damaged-\(number)")
      try damage.write(to: URL(filePath: path))
      do {
        let store = try await SQLiteStore(path: path, codec: .raw.checksummed(), createsIfMissing: false)
        var (hasFailed, isWrong) = (false, false)
        for (key, value) in expected {
          do {
            // A flipped bit in the index of the keys leads to no entry or to another one.
            if try store.value(forKey: key) != value { isWrong = true }
          } catch {
            hasFailed = true
          }
        }
        if hasFailed { refused += 1 }
        do {
          let report = try await store.verify()
          #expect(!isWrong || !report.findings.isEmpty, "damage \(number)")
          try await store.setValue([1], forKey: "new")
        } catch is StoreError {
          // Damage is a typed error.
        }
        try await store.close()
      } catch let error as StoreError {
        refused += 1
        #expect(
          [.corrupted, .unrecognizedFormat, .unsupported, .notFound, .ioFailed, .versionMismatch, .conflict]
            .contains(error.code), "damage \(number): \(error)")
      }
      try FileManager.default.removeItem(atPath: path)
    }
    #expect(refused > pageCount)
  }

  @Test func `a truncated log loses only its last commits`() async throws {
    let store = try await SQLiteStore(path: path, codec: .raw, durability: .buffered)
    for number in 0..<50 { try await store.setValue([UInt8](repeating: 7, count: 500), forKey: "\(100 + number)") }
    let (file, log) = (try Data(contentsOf: URL(filePath: path)), try Data(contentsOf: URL(filePath: path + "-wal")))
    try await store.close()
    for size in stride(from: 0, to: log.count, by: 1500) {
      let copy = folder.path("copy-\(size)")
      try file.write(to: URL(filePath: copy))
      try log.prefix(size).write(to: URL(filePath: copy + "-wal"))
      do {
        let store = try await SQLiteStore(path: copy, codec: .raw, createsIfMissing: false)
        let keys = try store.keys(in: .all, limit: 99, order: .ascending)
        #expect(keys == (0..<keys.count).map { StoreKey("\(100 + $0)") })
        #expect(try await store.verify().findings.isEmpty)
        try await store.close()
      } catch let error as StoreError {
        // The beginning of the log creates the store.
        #expect(error.code == .notFound && size < 20 * 4096)
      }
    }
  }
}

/// Tests that need a real file system that is full or read-only.
@Suite(.enabled(if: TemporaryFileSystem.obstacle == nil, "\(TemporaryFileSystem.obstacle ?? "")"))
struct FullDiskTests {
  @Test(arguments: [8_000, 300_000]) func `a full disk loses nothing and the store continues once there is room`(
    valueSize: Int
  ) async throws {
    let disk = try TemporaryFileSystem(size: "4m")
    let path = "\(disk.path)/store.sqlite"
    try await expectAFullDiskToLoseNothing(disk, valueSize: valueSize) {
      try await SQLiteStore<[UInt8]>(path: path, codec: .raw)
    } writingInAnotherWay: { store, value in
      let database = try await SQLiteDatabase(path: path)
      try await database.write { try $0.setValue(value, forKey: "d", in: store) }
    }
  }

  /// The advice of the guide: the latest entries are in the log only, and the file must become larger for them.
  @Test func `entries are removed once there is room for the log`() async throws {
    let disk = try TemporaryFileSystem(size: "16m")
    let path = "\(disk.path)/store.sqlite"
    let filler = try POSIXFileSystem().open("\(disk.path)/filler", .createNew)
    try filler.writeAll([UInt8](repeating: 1, count: 6 << 20), at: 0)
    let store = try await SQLiteStore<[UInt8]>(path: path, codec: .raw)
    let value = [UInt8](repeating: 1, count: 3000)
    var count = 0
    let error = await expectStoreError(.full) {
      while true {
        try await store.setValue(value, forKey: StoreKey(integer: count))
        count += 1
      }
    }
    #expect(error?.outcome == .nothingChanged && count > 400)
    let log = try #require(try POSIXFileSystem().attributes(at: path + "-wal")).size
    try filler.truncate(to: (6 << 20) - (128 << 10) - log)
    for start in stride(from: 0, to: count, by: 8) {
      try await store.apply(ChangeBatch((start..<min(start + 8, count)).map { .remove(StoreKey(integer: $0)) }))
    }
    #expect(try store.count(in: .all) == 0)
    for number in 0..<count / 2 { try await store.setValue(value, forKey: StoreKey(integer: number)) }
    #expect(try await store.verify().findings == [])
    try await store.close()
    try filler.close()
  }

  @Test func `a store on a full disk is read and backed up`() async throws {
    let disk = try TemporaryFileSystem(size: "1m")
    let path = "\(disk.path)/store.sqlite"
    let store = try await SQLiteStore<[UInt8]>(path: path, codec: .raw)
    try await store.setValue([1], forKey: "a")
    try await store.close()
    let filler = try POSIXFileSystem().open("\(disk.path)/filler", .createNew)
    var (offset, block) = (Int64(0), 65_536)
    while block > 0 {
      do {
        try filler.writeAll([UInt8](repeating: 1, count: block), at: offset)
        offset += Int64(block)
      } catch {
        block /= 2
      }
    }
    try filler.close()
    let folder = try TemporaryFolder()
    for access in [StoreAccess.readOnly, .readWrite] {
      let store = try await SQLiteStore<[UInt8]>(path: path, codec: .raw, access: access)
      #expect(try store.value(forKey: "a") == [1])
      #expect(try await store.verify().findings == [])
      try await store.backup(to: folder.path("\(access)"), compacting: false)
      if access == .readWrite {
        let error = await expectStoreError(.full) { try await store.setValue([2], forKey: "b") }
        #expect(error?.isRetryable == true && error?.outcome == .nothingChanged)
        try POSIXFileSystem().removeFile(at: "\(disk.path)/filler")
        try await store.setValue([2], forKey: "b")
        #expect(try store.keys(in: .all, limit: 9, order: .ascending) == ["a", "b"])
      }
      try await store.close()
    }
    let copy = try await SQLiteStore<[UInt8]>(path: folder.path("readOnly"), codec: .raw)
    #expect(try copy.value(forKey: "a") == [1])
    try await copy.close()
  }
}
#endif
