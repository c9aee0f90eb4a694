#if LMDB
import CLMDB
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderLMDB

@Suite struct TransactionTests {
  struct Stop: Error {}

  private let folder: TemporaryFolder
  private let environment: LMDBEnvironment
  private let names: LMDBStore<String>
  private let ages: LMDBStore<Int>

  init() async throws {
    folder = try TemporaryFolder()
    environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    names = try await LMDBStore(in: environment, name: "names", codec: .json())
    ages = try await LMDBStore(in: environment, name: "ages", codec: .json())
    let (names, ages) = (names, ages)
    try await environment.write { transaction in
      try transaction.apply([.set("2", "Bob"), .set("1", "Ada")], to: names)
      try transaction.setValue(36, forKey: "1", in: ages)
    }
  }

  @Test func `a transaction reads its own writes`() async throws {
    let (names, ages) = (names, ages)
    let seen = try await environment.write { transaction in
      try transaction.setValue(1, forKey: "new", in: ages)
      try transaction.removeValue(forKey: "1", in: names)
      try transaction.removeValue(forKey: "missing", in: names)
      let inside = (
        try transaction.value(forKey: "new", in: ages), try transaction.keys(of: names),
        try transaction.count(of: ages), try transaction.entries(order: .descending, of: ages).map(\.key)
      )
      // Outside of the transaction, a store shows committed entries.
      #expect(try ages.value(forKey: "new") == nil)
      #expect(try names.count(in: .all) == 2)
      return inside
    }
    #expect(seen.0 == 1)
    #expect(seen.1 == ["2"])
    #expect(seen.2 == 2)
    #expect(seen.3 == ["new", "1"])
    #expect(try ages.value(forKey: "new") == 1)
    #expect(try names.keys(in: .all, limit: 9, order: .ascending) == ["2"])
  }

  @Test func `a closure that throws changes nothing`() async throws {
    let (names, ages) = (names, ages)
    await #expect(throws: Stop.self) {
      try await environment.write { transaction in
        try transaction.removeAll(of: names)
        try transaction.apply([.set("3", 3), .removeAll("1"..<"2")], to: ages)
        throw Stop()
      }
    }
    #expect(try names.count(in: .all) == 2)
    #expect(try ages.keys(in: .all, limit: 9, order: .ascending) == ["1"])
  }

  @Test func `an error of LMDBs type passes through`() async throws {
    let (names, ages) = (names, ages)
    for code: Int32 in [-30792, 5, -30782] {
      let mine = LMDBError(code: code)
      await #expect(throws: mine) { try await environment.write { _ in throw mine } }
      await #expect(throws: mine) { try await ages.update("1") { (_: inout Int?) throws -> Void in throw mine } }
    }
    try await names.setValue("Cleo", forKey: "3")
    #expect(try ages.value(forKey: "1") == 36)
  }

  @Test func `argument errors name their store and leave the transaction usable`() async throws {
    let names = names
    try await environment.write { transaction in
      var codes: [StoreError.Code] = []
      for key in ["", StoreKey(String(repeating: "k", count: 512))] {
        do {
          try transaction.setValue("x", forKey: key, in: names)
        } catch let error as StoreError {
          codes.append(error.code)
        }
        do {
          _ = try transaction.withBytes(forKey: key, in: names) { $0?.byteCount }
        } catch let error as StoreError {
          codes.append(error.code)
        }
      }
      #expect(codes == [.invalidKey, .invalidKey, .invalidKey, .invalidKey])
      try transaction.setValue("Cleo", forKey: "3", in: names)
    }
    #expect(try names.value(forKey: "3") == "Cleo")
    expectStoreError(.invalidArgument) { try environment.read { try $0.entries(limit: -1, of: names) } }
  }

  @Test func `a failed change fails the transaction even if caught`() async throws {
    let folder = try TemporaryFolder()
    // The map cannot hold the values. It has to grow even if the error is caught.
    let environment = try await LMDBEnvironment(
      EnvironmentConfiguration(path: folder.path("environment"), durability: .buffered, initialMapSize: 1 << 17))
    let store = try await LMDBStore<[UInt8]>(in: environment, codec: .raw)
    let runs = Tally()
    let value = [UInt8](repeating: 7, count: 100_000)
    let caught = try await environment.write { transaction in
      runs.add()
      var caught = 0
      for number in 0..<10 {
        do {
          try transaction.setValue(value, forKey: "\(number)", in: store)
        } catch let error as StoreError {
          #expect(error.code == .full)
          caught += 1
        }
      }
      return caught
    }
    #expect(runs.count > 1)
    #expect(caught == 0)
    #expect(try store.count(in: .all) == 10)
    // The body's own error counts only if the map was large enough.
    await #expect(throws: Stop.self) {
      try await environment.write { transaction in
        try transaction.removeAll(of: store)
        throw Stop()
      }
    }
    try await store.setValue([1], forKey: "afterward")
    #expect(try store.count(in: .all) == 11)
    try await environment.close()
  }

  @Test func `a read is a snapshot`() async throws {
    let (names, ages) = (names, ages)
    let reader = HeldRead()
    let environment = environment
    let reading = Task {
      try await reader.run {
        try environment.read { transaction in
          let before = try transaction.value(forKey: "1", in: names)
          reader.hold()
          #expect(try transaction.value(forKey: "1", in: names) == before)
          #expect(try transaction.value(forKey: "1", in: ages) == 36)
          #expect(try transaction.count(of: names) == 2)
          // A store's own reads see the current entries.
          #expect(try names.value(forKey: "1") == "changed")
        }
      }
    }
    await reader.isHeld()
    try await environment.write { transaction in
      try transaction.setValue("changed", forKey: "1", in: names)
      try transaction.removeAll(of: ages)
    }
    reader.release()
    try await reading.value
  }

  @Test func `readers see all of a transaction or nothing`() async throws {
    let environment = environment
    let left = try await LMDBStore<Int>(in: environment, name: "left", codec: .json())
    let right = try await LMDBStore<Int>(in: environment, name: "right", codec: .json())
    let isDone = Flag()
    let readers = Task {
      try await Threads.run(3) { _ in
        for _ in 0..<1_000_000 where !isDone.isSet {
          let (one, other) = try environment.read { transaction in
            (try transaction.value(forKey: "n", in: left), try transaction.value(forKey: "n", in: right))
          }
          #expect(one == other)
        }
      }
    }
    for number in 0..<60 {
      try await environment.write { transaction in
        try transaction.setValue(number, forKey: "n", in: left)
        try transaction.setValue(number, forKey: "n", in: right)
      }
    }
    isDone.set()
    try await readers.value
  }

  /// LMDB itself notices the damage.
  @Test func `a cursor that meets a damaged page throws and other entries are read`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("damaged.mdb")
    var image = try await DataFileImage.filled()
    try image.write(to: path)
    let snapshot = try DataFileReader(path, store: "store").latestSnapshot()
    let record = try snapshot.database(named: "default", store: "store", during: .read)
    let root = try snapshot.page(try #require(record?.root))
    guard case .child(let first) = root.node(0)?.content else {
      Issue.record("the tree has one page")
      return
    }
    // Neither a branch page nor a leaf.
    image.set(0 as UInt16, at: Int(first) * DataFileImage.pageSize + 10 + DataFileFormat.linked.shift)
    try image.write(to: path)
    let damaged = try await LMDBEnvironment(path: path)
    let store = try await LMDBStore<[UInt8]>(in: damaged, codec: .raw)
    for _ in 0..<2 {
      try damaged.read { transaction in
        try transaction.withCursor(of: store) { cursor in
          let isThere = try cursor.moveToLast()
          #expect(isThere)
          do {
            _ = try cursor.moveToFirst()
            Issue.record("the damage was not noticed")
          } catch let error as StoreError {
            #expect(error.code == .corrupted && error.operation == .entries)
          }
          #expect(cursor.key == nil)
        }
      }
      let error = expectStoreError(.corrupted) { try store.value(forKey: DataFileImage.entries[0].key) }
      #expect(error?.operation == .value && error?.underlying as? LMDBError == LMDBError(code: MDB_CORRUPTED))
      let last = try #require(DataFileImage.entries.last)
      #expect(try store.value(forKey: last.key) == last.value)
    }
    try await damaged.close()
  }

  @Test func `a cursor walks in both directions`() async throws {
    let store = try await LMDBStore<[UInt8]>(in: environment, name: "bytes", codec: .raw)
    let keys = (0..<500).map { StoreKey("k\(1000 + $0)") }
    try await store.apply(ChangeBatch(keys.enumerated().map { .set($1, [UInt8](repeating: 1, count: $0)) }))
    try environment.read { transaction in
      try transaction.withCursor(of: store) { cursor in
        #expect(cursor.key == nil)
        #expect(cursor.withEntryBytes { key, _ in key.byteCount } == nil)
        var forward: [StoreKey] = []
        var sizes: [Int?] = []
        while try cursor.moveToNext() {
          forward += cursor.key.map { [$0] } ?? []
          sizes.append(cursor.withEntryBytes { $1.byteCount })
        }
        #expect(forward == keys)
        #expect(sizes == Array(0..<500))
        #expect(cursor.key == nil)
        var backward: [StoreKey] = []
        var isThere = try cursor.moveToLast()
        while isThere {
          backward += cursor.key.map { [$0] } ?? []
          isThere = try cursor.moveToPrevious()
        }
        #expect(backward == keys.reversed())
        /// Returns the key after a move of the cursor, or `nil` if the move found none.
        func key(_ isThere: Bool, _ cursor: borrowing LMDBCursor) -> StoreKey? {
          #expect(isThere == (cursor.key != nil))
          return cursor.key
        }
        let bounds: [(above: StoreKey, below: StoreKey, expected: [StoreKey?])] = [
          ("k1200", "k1200", ["k1200", "k1199"]), ("k12005", "k12005", ["k1201", "k1200"]), ("", "", ["k1000", nil]),
          ("k1000", "k1000", ["k1000", nil]), ("l", "l", [nil, "k1499"]),
        ]
        for (above, below, expected) in bounds {
          let up = key(try cursor.move(upTo: above), cursor)
          let down = key(try cursor.move(below: below), cursor)
          #expect([up, down] == expected)
        }
        _ = try cursor.moveToFirst()
        let second = key(try cursor.moveToNext(), cursor)
        #expect(second == "k1001")
      }
    }
    try await store.removeAll()
    try environment.read { transaction in
      try transaction.withCursor(of: store) { cursor in
        let moves = [
          try cursor.moveToFirst(), try cursor.moveToLast(), try cursor.moveToNext(), try cursor.moveToPrevious(),
          try cursor.move(upTo: "a"), try cursor.move(below: "z"),
        ]
        #expect(moves == [false, false, false, false, false, false])
      }
    }
  }

  @Test func `bytes are shown without a copy`() async throws {
    let store = try await LMDBStore<[UInt8]>(in: environment, name: "bytes", codec: .raw)
    let values: [StoreKey: [UInt8]] = ["empty": [], "short": [1, 2, 3], "long": [UInt8](repeating: 9, count: 100_000)]
    try await store.apply(ChangeBatch(values.map { .set($0.key, $0.value) }))
    try environment.read { transaction in
      for (key, value) in values {
        let bytes = try transaction.withBytes(forKey: key, in: store) { $0?.withUnsafeBytes { Array($0) } }
        #expect(bytes == value)
      }
      let isMissing = try transaction.withBytes(forKey: "missing", in: store) { $0 == nil }
      #expect(isMissing)
      #expect(throws: Stop.self) { try transaction.withBytes(forKey: "short", in: store) { _ in throw Stop() } }
    }
    // A write transaction shows its own writes.
    let count = try await environment.write { transaction in
      try transaction.setValue([1, 2], forKey: "short", in: store)
      return try transaction.withBytes(forKey: "short", in: store) { $0?.byteCount }
    }
    #expect(count == 2)
  }

  @Test func `writers take turns`() async throws {
    let (environment, ages) = (environment, ages)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<20 {
        group.addTask {
          for _ in 0..<5 {
            try await environment.write { transaction in
              let count = try transaction.value(forKey: "count", in: ages) ?? 0
              try transaction.setValue(count + 1, forKey: "count", in: ages)
            }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try ages.value(forKey: "count") == 100)
  }

  @Test func `a task cancelled while it waits changes nothing`() async throws {
    let (environment, ages) = (environment, ages)
    let writer = HeldRead()
    let shared = environment.handle.environment
    // Holds LMDB's lock, as another process would.
    let holding = Task { try await writer.run { shared.withWriteLock { writer.hold() } } }
    await writer.isHeld()
    let task = Task { try await environment.write { try $0.setValue(1, forKey: "cancelled", in: ages) } }
    for _ in 0..<10_000 { await Task.yield() }
    task.cancel()
    writer.release()
    try await holding.value
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try ages.value(forKey: "cancelled") == nil)
  }

  @Test func `a cancelled task does not start`() async throws {
    let (environment, ages) = (environment, ages)
    let task = Task {
      try await environment.write { try $0.setValue(1, forKey: "cancelled", in: ages) }
    }
    task.cancel()
    do {
      try await task.value
      #expect(try ages.value(forKey: "cancelled") == 1)
    } catch is CancellationError {
      #expect(try ages.value(forKey: "cancelled") == nil)
    }
  }
}
#endif
