#if SQLite
import Foundation
import Larder
import LarderCBOR
import LarderFiles
import LarderSQLite
import LarderSQLiteFormat
import LarderTesting
import TestSupport
import Testing

/// Waiting for the locks of others, reports of their commits, the log, and the reasons of the system.
@Suite(.timeLimit(.minutes(60))) struct LockTests {
  private let folder: TemporaryFolder
  private var path: String { folder.path("app.sqlite") }

  init() throws {
    folder = try TemporaryFolder()
  }

  struct Refused: Error {}

  @Test func `the timeout of a write counts from its call`() async throws {
    let store = try await SQLiteStore(path: path, codec: .raw, busyTimeout: .seconds(1))
    let other = try await OtherConnection(path)
    try other.run("BEGIN IMMEDIATE")
    let elapsed = await shortest(below: .seconds(12)) {
      await withTaskGroup(of: Void.self) { group in
        for number in 0..<16 {
          group.addTask {
            await expectStoreError(.timedOut) { try await store.setValue([1], forKey: "\(number)") }
          }
        }
      }
    }
    // One after another, they would take 16 seconds.
    #expect(elapsed >= .seconds(1) && elapsed < .seconds(12))
    try other.run("ROLLBACK")
    other.close()
    try await store.setValue([1], forKey: "a")
    try await store.close()
  }

  @Test func `encoding does not use up the timeout`() async throws {
    struct SlowCodec: Codec {
      let name = "slow"
      let format = CodecFormat.binary
      func encode(_ value: Int, into bytes: inout [UInt8], context: ValueContext) {
        Thread.sleep(forTimeInterval: 0.6)
        bytes.append(1)
      }
      func decode(_ bytes: RawSpan, context: ValueContext) -> Int { 1 }
    }
    let store = try await SQLiteStore(path: path, codec: SlowCodec(), busyTimeout: .milliseconds(300))
    let other = try await OtherConnection(path)
    try other.run("BEGIN IMMEDIATE")
    let elapsed = await ContinuousClock().measure {
      await expectStoreError(.timedOut) { try await store.setValue(1, forKey: "a") }
    }
    #expect(elapsed >= .milliseconds(900))
    try other.run("ROLLBACK")
    other.close()
    try await store.close()
  }

  @Test func `waiting writes are cancelled and hold up nothing`() async throws {
    let database = try await SQLiteDatabase(path: path, busyTimeout: .seconds(100_000))
    let store = try await SQLiteStore(in: database, codec: .raw)
    let events = StoreEvents()
    let observation = events.observe(store)
    let other = try await OtherConnection(path)
    try other.run("BEGIN IMMEDIATE; DELETE FROM \"default\"")
    let writes = (0..<4).map { number in Task { try await store.setValue([1], forKey: "\(number)") } }
    let last = Task { try await store.setValue([2], forKey: "last") }
    // Other calls do not wait for the lock.
    #expect(try await database.storeNames() == ["default"])
    _ = try await SQLiteStore(in: database, codec: .raw, createsIfMissing: false)
    for write in writes { write.cancel() }
    for write in writes {
      await #expect(throws: CancellationError.self) { try await write.value }
    }
    try other.run("COMMIT")
    try await last.value
    #expect(try store.keys(in: .all, limit: 9, order: .ascending) == ["last"])
    observation.cancel()
    other.close()
    try await database.close()
  }

  /// A database in the mode of the rollback journal, which a transaction of another connection excludes from reading.
  @Test func `synchronizing waits for a locked database`() async throws {
    let other = try await OtherConnection(path)
    try other.run("CREATE TABLE t(x)")
    let hasty = try await SQLiteDatabase(path: path, busyTimeout: .milliseconds(300))
    try other.run("BEGIN EXCLUSIVE")
    let elapsed = await ContinuousClock().measure {
      await expectStoreError(.timedOut) { try await hasty.synchronize() }
    }
    #expect(elapsed >= .milliseconds(300))
    try other.run("COMMIT")
    try await hasty.close()
    let patient = try await SQLiteDatabase(path: path, busyTimeout: .seconds(100_000))
    try other.run("BEGIN EXCLUSIVE")
    let synchronizing = Task { try await patient.synchronize() }
    try await Task.sleep(for: .milliseconds(100))
    try other.run("COMMIT")
    try await synchronizing.value
    other.close()
    try await patient.close()
  }

  @Test func `a locked database holds up no other`() async throws {
    let locked = folder.path("locked.sqlite")
    let other = try await OtherConnection(locked)
    try other.run("CREATE TABLE t(x); BEGIN EXCLUSIVE")
    await expectStoreError(.timedOut) { try await SQLiteDatabase(path: locked, busyTimeout: .milliseconds(20)) }
    let openings = (0..<2).map { _ in
      Task { try await SQLiteDatabase(path: locked, busyTimeout: .seconds(100_000)) }
    }
    try await SQLiteDatabase(path: path).close()
    openings[0].cancel()
    await #expect(throws: CancellationError.self) { try await openings[0].value }
    try other.run("COMMIT")
    try await openings[1].value.close()
    other.close()
  }

  /// A commit of another process is noticed once, so a call that fails afterward must not swallow it.
  @Test func `a failing call reports the commits of others`() async throws {
    let store = try await SQLiteStore(path: path, codec: .cbor(Int.self))
    try await store.setValue(1, forKey: "a")
    let events = StoreEvents()
    let observation = events.observe(store)
    let other = try await OtherConnection(path)
    try other.run(
      "CREATE TRIGGER t BEFORE INSERT ON \"default\" WHEN NEW.key = x'7A' BEGIN SELECT RAISE(ABORT, 'no'); END")
    while events.take().last != .changed([.range(.all)]) { try await Task.sleep(for: .milliseconds(5)) }
    for round in 0..<20 {
      try other.run("UPDATE \"default\" SET value = x'\(round % 2 == 0 ? "02" : "03")' WHERE key = x'61'")
      if round % 2 == 0 {
        await #expect(throws: Refused.self) { try await store.update("b") { _ in throw Refused() } }
      } else {
        await expectStoreError(.notPermitted) { try await store.setValue(1, forKey: "z") }
      }
      #expect(events.take().contains(.changed([.range(.all)])), "round \(round)")
    }
    observation.cancel()
    other.close()
    try await store.close()
  }

  /// Triggers of full-text search, for example, are in many databases.
  @Test func `triggers of other tables do not matter`() async throws {
    let database = try await SQLiteDatabase(path: path)
    let store = try await SQLiteStore(in: database, name: "s", codec: .cbor(Int.self))
    let child = try await SQLiteStore(in: database, name: "parents", codec: .cbor(Int.self))
    let other = try await OtherConnection(path)
    try other.run(
      """
      CREATE TABLE t(x); CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM s; END;
      CREATE TABLE children(key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL,
        FOREIGN KEY(key) REFERENCES parents(key) ON DELETE CASCADE) STRICT;
      """)
    let children = try await SQLiteStore(in: database, name: "children", codec: .cbor(Int.self))
    try await child.setValue(1, forKey: "a")
    try await children.setValue(2, forKey: "a")
    let (events, childEvents) = (StoreEvents(), StoreEvents())
    let observations = [events.observe(store), childEvents.observe(children)]
    try await store.setValue(1, forKey: "a")
    _ = events.take()
    try await store.setValue(2, forKey: "a")
    #expect(events.take() == [.changed([.key("a")])])
    // An entry that another one takes along is reported too.
    _ = childEvents.take()
    try await child.removeValue(forKey: "a")
    #expect(childEvents.take() == [.changed([.range(.all)])])
    #expect(try children.count(in: .all) == 0)
    for observation in observations { observation.cancel() }
    other.close()
    try await database.close()
  }

  @Test func `the log shrinks`() async throws {
    let database = try await SQLiteDatabase(
      path: path, durability: .buffered, busyTimeout: .milliseconds(20), logSizeLimit: 1 << 20)
    let store = try await SQLiteStore(in: database, codec: .raw)
    let values = ChangeBatch((0..<1000).map { .set(StoreKey(integer: $0), [UInt8](repeating: 1, count: 10_000)) })
    try await store.apply(values)
    #expect(try await database.statistics().logSize > 8 << 20)
    // The log begins anew, and is cut, after everything in it was moved.
    for number in 0..<1000 where try await database.statistics().logSize > 1 << 20 {
      try await store.setValue([UInt8(number & 0xFF)], forKey: "a")
    }
    #expect(try await database.statistics().logSize <= 1 << 20)
    try await store.apply(values)
    let (size, isTimedOut) = try await withSnapshot(of: database, store) {
      // The file is rewritten. Only the log stays until the reader ends.
      try await store.compact()
      let error = await expectStoreError(.timedOut) { try await database.checkpoint() }
      return (try await database.statistics().logSize, error?.isRetryable == true)
    }
    #expect(size > 0 && isTimedOut)
    try await database.checkpoint()
    #expect(try await database.statistics().logSize == 0)
    #expect(try store.count(in: .all) == 1001)
    try await database.close()
  }

  /// Runs a closure while another thread reads from a snapshot.
  private func withSnapshot<Result: Sendable>(
    of database: SQLiteDatabase, _ store: SQLiteStore<[UInt8]>, _ body: () async throws -> Result
  ) async throws -> Result {
    let (begun, end) = (AsyncStream<Void>.makeStream(), DispatchSemaphore(value: 0))
    let reader = Task.detached {
      try await DispatchQueueExecutor(label: "reader").run { () throws -> Void in
        try database.read { transaction in
          _ = try transaction.count(of: store)
          begun.continuation.yield()
          end.wait()
        }
      }
    }
    for await _ in begun.stream { break }
    do {
      let result = try await body()
      end.signal()
      try await reader.value
      return result
    } catch {
      end.signal()
      throw error
    }
  }

  @Test func `reasons of the system are kept`() {
    // SQLITE_CANTOPEN, SQLITE_IOERR_WRITE and SQLITE_IOERR_FSYNC.
    let (cannotOpen, write, synchronization): (Int32, Int32, Int32) = (14, 10 | 3 << 8, 10 | 4 << 8)
    for (code, number, expected, isTransient) in [
      (cannotOpen, EMFILE, StoreError.Code.ioFailed, true), (cannotOpen, ENFILE, .ioFailed, true),
      (cannotOpen, EACCES, .notPermitted, false), (cannotOpen, 0, .notPermitted, false),
      (cannotOpen, ENOSPC, .full, true), (write, EDQUOT, .full, true), (write, ENOSPC, .full, true),
      (write, EIO, .ioFailed, false), (synchronization, EDQUOT, .full, true), (write, 0, .ioFailed, false),
    ] {
      #expect(SQLiteResultCode.storeErrorCode(code, errorNumber: number, isWrite: true) == expected)
      #expect(SQLiteResultCode.isTransient(code, errorNumber: number) == isTransient)
    }
    // Without room for the last page of a commit, there is no commit.
    #expect(!SQLiteResultCode.leavesCommitInDoubt(write, errorNumber: EDQUOT))
    #expect(SQLiteResultCode.leavesCommitInDoubt(write, errorNumber: EIO))
    #expect(SQLiteResultCode.leavesCommitInDoubt(synchronization, errorNumber: EDQUOT))
  }
}
#endif
