#if LMDB
import CLMDB
import Dispatch
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderLMDB

/// Observers of stores in one or several processes.
@Suite(.timeLimit(.minutes(60))) struct ObservationTests {
  private let folder: TemporaryFolder
  private let events = StoreEvents()

  init() throws {
    folder = try TemporaryFolder()
  }

  private static func open(
    _ folder: String, initialMapSize: Int = 1 << 24, access: StoreAccess = .readWrite
  ) async throws -> LMDBEnvironment {
    try await LMDBEnvironment(
      EnvironmentConfiguration(
        path: "\(folder)/environment", durability: .buffered, access: access, initialMapSize: initialMapSize))
  }

  private func openStore() async throws -> (LMDBEnvironment, LMDBStore<[UInt8]>) {
    let environment = try await Self.open(folder.path)
    return (environment, try await LMDBStore(in: environment, codec: .raw))
  }

  /// Polls for commits of other processes without waiting for the time of the next poll.
  private func poll(_ environment: LMDBEnvironment) {
    _ = environment.handle.environment.reportOtherCommits()
  }

  /// Writes an entry of the store `default` without the lock file.
  ///
  /// LMDB then writes the meta page and does not announce the transaction to readers, which is the state between the last
  /// two steps of a commit.
  private func commitWithoutAnnouncement() throws {
    var environment: OpaquePointer?
    try LMDBError.check(mdb_env_create(&environment))
    let pointer = try #require(environment)
    defer { mdb_env_close(pointer) }
    try LMDBError.check(mdb_env_set_maxdbs(pointer, 1))
    try LMDBError.check(mdb_env_open(pointer, "\(folder.path)/environment", UInt32(MDB_NOLOCK | MDB_NOTLS), 0o600))
    var transaction: OpaquePointer?
    try LMDBError.check(mdb_txn_begin(pointer, nil, 0, &transaction))
    let write = try #require(transaction)
    var database: MDB_dbi = 0
    try LMDBError.check(mdb_dbi_open(write, "default", 0, &database))
    try RawDatabase(transaction: write, identifier: database).setValue([2], forKey: "a")
    try LMDBError.check(mdb_txn_commit(write))
  }

  @Test func `a commit of another process is not reported before readers find it`() async throws {
    let (environment, store) = try await openStore()
    try await store.setValue([1], forKey: "a")
    let observation = events.observe(store)
    let latest = environment.handle.environment.withWriteLock { environment.handle.environment.lastTransaction }
    try commitWithoutAnnouncement()
    #expect(
      environment.handle.environment.withWriteLock { environment.handle.environment.lastTransaction } == latest + 1)
    poll(environment)
    #expect(try store.value(forKey: "a") == [1])
    #expect(events.take() == [])
    try await environment.close()
    withExtendedLifetime(observation) {}
  }

  // MARK: One process

  @Test func `a transaction is reported to the observers of each store`() async throws {
    let (environment, store) = try await openStore()
    let other = try await LMDBStore<[UInt8]>(in: environment, name: "other", codec: .raw)
    // Another object for the same store, opened under the same path.
    let (sameEnvironment, same) = try await openStore()
    let otherEvents = StoreEvents()
    let observations = (events.observe(same, ..<"x"), otherEvents.observe(other))
    try await environment.write { transaction in
      try transaction.setValue([1], forKey: "b", in: store)
      try transaction.setValue([1], forKey: "x", in: store)
      try transaction.removeValue(forKey: "a", in: store)
      try transaction.removeAll(in: "c"..<"d", of: store)
      try transaction.apply([.set("o", [1]), .remove("p")], to: other)
    }
    #expect(events.take() == [.changed([.key("b"), .key("a"), .range("c"..<"d")])])
    #expect(otherEvents.take() == [.changed([.key("o"), .key("p")])])
    await #expect(throws: CancellationError.self) {
      try await environment.write { transaction in
        try transaction.setValue([2], forKey: "b", in: store)
        throw CancellationError()
      }
    }
    try await environment.write { _ in }
    #expect(events.take() == [] && otherEvents.take() == [])
    try await environment.close()
    #expect(events.take() == [] && otherEvents.take() == [.closed])
    // The other object is still open.
    try await same.setValue([3], forKey: "b")
    #expect(events.take() == [.changed([.key("b")])])
    try await sameEnvironment.close()
    #expect(events.take() == [.closed])
    withExtendedLifetime(observations) {}
  }

  @Test func `a discarded update is not reported to an observer that comes during it`() async throws {
    let (environment, store) = try await openStore()
    let begun = Locked<StoreObservation?>(nil)
    let transaction = try await environment.statistics().lastTransaction
    try await store.update(deciding: ["a"]) { [events] slots in
      slots[0] = [1]
      let observation = events.observe(store)
      begun.withLock { $0 = observation }
      return .discard(())
    }
    #expect(events.take() == [])
    #expect(try await environment.statistics().lastTransaction == transaction)
    begun.withLock { $0 = nil }
    try await environment.close()
  }

  @Test func `no commit of this process is taken for one of another`() async throws {
    let (environment, store) = try await openStore()
    let observation = events.observe(store)
    let writes: [(String, [StoreChange], @Sendable () async throws -> Void)] = [
      ("set", [.key("a")], { try await store.setValue([1], forKey: "a") }),
      ("equal set", [.key("a")], { try await store.setValue([1], forKey: "a") }),
      ("equal update", [.key("a")], { try await store.update("a") { _ in } }),
      ("update", [.key("a")], { try await store.update("a") { $0 = [2] } }),
      ("missing removal", [.key("b")], { try await store.removeValue(forKey: "b") }),
      ("removal", [.key("a")], { try await store.removeValue(forKey: "a") }),
      ("empty removal", [.range(.all)], { try await store.removeAll() }),
      (
        "sets", [.key("a"), .key("b"), .key("c")],
        { try await store.apply(ChangeBatch(["a", "b", "c"].map { .set($0, []) })) }
      ),
      ("range", [.range("b"..<"c")], { try await store.removeAll(in: "b"..<"c") }),
      ("empty range", [.range("b"..<"c")], { try await store.removeAll(in: "b"..<"c") }),
      ("transaction", [.key("a")], { try await environment.write { try $0.removeValue(forKey: "a", in: store) } }),
      (
        "transaction of a range", [.range("a"..<"z")],
        {
          try await environment.write { try $0.removeAll(in: "a"..<"z", of: store) }
        }
      ),
      (
        "transaction of a set", [.key("a")],
        { try await environment.write { try $0.setValue([], forKey: "a", in: store) } }
      ),
      ("all", [.range(.all)], { try await store.removeAll() }),
    ]
    for (name, changes, write) in writes {
      try await write()
      poll(environment)
      #expect(events.take() == (changes.isEmpty ? [] : [.changed(changes)]), "\(name)")
    }
    observation.cancel()
    try await store.setValue([1], forKey: "a")
    #expect(events.take() == [])
    try await environment.close()
  }

  @Test func `opening a store is not taken for a commit of another process`() async throws {
    let (environment, store) = try await openStore()
    let observation = events.observe(store)
    let other = try await LMDBStore<Int>(in: environment, name: "other", codec: .json())
    _ = try await LMDBStore<Int>(in: environment, name: "other", codec: .json(), contents: "numbers")
    let codec = try JSONCodec<Int>().versioned(1, ValueMigration(from: 0, .json(Int.self)) { $0 })
    let adopting = try await LMDBStore<Int>(in: environment, name: "other", codec: codec)
    poll(environment)
    #expect(events.take() == [])
    // A removal that finds nothing still records the codec.
    try await adopting.removeValue(forKey: "a")
    poll(environment)
    #expect(events.take() == [])
    await expectStoreError(.versionMismatch) { try await other.setValue(1, forKey: "a") }
    try await environment.close()
    withExtendedLifetime(observation) {}
  }

  @Test func `a commit that follows others reports them too`() throws {
    let (observers, list) = (EnvironmentObservers(), StoreObservers())
    let handle = ObjectIdentifier(list)
    let observation = list.add(.all) { events.add($0) }
    #expect(observers.add(handle, root: handle, 2, list, since: 5))
    #expect(!observers.add(handle, root: handle, 2, list, since: 9))
    var record = CommitRecord<MDB_dbi>(isRecording: true)
    // LMDB gives the number of a transaction without changes to the next one, which another process may commit.
    record.append(["a"], in: 2, hasWritten: false)
    #expect(!record.hasWritten)
    observers.willCommit(6)
    observers.report(record, hasWritten: false)
    #expect(events.take() == [.changed([.key("a")])])
    #expect(observers.reportOthers(upTo: 6))
    #expect(events.take() == [.changed([.range(.all)])])
    record.append(["b"], in: 2, hasWritten: true)
    #expect(record.hasWritten)
    observers.willCommit(7)
    #expect(observers.reportOthers(upTo: 7))
    #expect(events.take() == [])
    observers.report(record, hasWritten: true)
    #expect(events.take() == [.changed([.key("a"), .key("b")])])
    #expect(observers.reportOthers(upTo: 7))
    #expect(events.take() == [])
    // Transaction 8 is one of another process.
    observers.willCommit(9)
    observers.report(record, hasWritten: true)
    #expect(events.take() == [.changed([.range(.all)])])
    #expect(observers.reportOthers(upTo: 9))
    #expect(events.take() == [])
    // The number of a failed transaction is taken by another process.
    observers.willCommit(10)
    observers.didNotCommit()
    #expect(observers.reportOthers(upTo: 10))
    #expect(events.take() == [.changed([.range(.all)])])
    // Polling ends without an observer, and begins again with the next one.
    observation.cancel()
    #expect(!observers.reportOthers(upTo: 11))
    let second = list.add(.all) { events.add($0) }
    #expect(observers.add(handle, root: handle, 2, list, since: 12))
    #expect(observers.reportOthers(upTo: 12))
    #expect(events.take() == [])
    observers.remove(handle)
    #expect(events.take() == [.closed])
    withExtendedLifetime(second) {}
  }

  @Test func `an observation that begins during a long transaction misses nothing`() async throws {
    let (environment, store) = try await openStore()
    let (begun, observed) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    async let written: Void = environment.write { transaction in
      try transaction.setValue([1], forKey: "a", in: store)
      begun.signal()
      observed.wait()
      try transaction.setValue([1], forKey: "b", in: store)
    }
    await withCheckedContinuation { continuation in
      DispatchQueue(label: "ObservationTests").async {
        begun.wait()
        continuation.resume()
      }
    }
    let observation = events.observe(store, ..<"b")
    var values = store.updates(forKey: "a").makeAsyncIterator()
    #expect(try await values.next() == .some(nil))
    #expect(events.take() == [])
    observed.signal()
    try await written
    // The changes before the beginning of the observation were not recorded.
    #expect(events.take() == [.changed([.range(..<"b")])])
    #expect(try await values.next() == .some([1]))
    poll(environment)
    #expect(events.take() == [])
    withExtendedLifetime(observation) {}
    try await environment.close()
    #expect(try await values.next() == nil)
  }

  @Test func `an observation of a closed store ends`() async throws {
    let (environment, store) = try await openStore()
    let second = try await LMDBStore<[UInt8]>(in: environment, name: "second", codec: .raw)
    // A store without an observer is closed together with its environment too.
    let third = try await LMDBStore<[UInt8]>(in: environment, name: "third", codec: .raw)
    try await second.close()
    let observations = (events.observe(second), events.observe(store))
    #expect(events.take() == [.closed])
    try await environment.close()
    #expect(events.take() == [.closed])
    // A poll that was about to begin finds the environment closed.
    #expect(!environment.handle.environment.reportOtherCommits())
    let late = (events.observe(store), events.observe(third))
    #expect(events.take() == [.closed, .closed])
    var changes = third.changes().makeAsyncIterator()
    #expect(await changes.next() == nil)
    var values = third.updates(forKey: "a").makeAsyncIterator()
    #expect(try await values.next() == nil)
    withExtendedLifetime((observations, late)) {}
  }

  @Test func `observers keep neither a store nor its environment open`() async throws {
    func changes() async throws -> (StoreChanges, StoreStates<[UInt8]?>.Iterator) {
      let store = try await LMDBStore<[UInt8]>(path: folder.path("environment"), codec: .raw, durability: .buffered)
      var values = store.updates(forKey: "a").makeAsyncIterator()
      #expect(try await values.next() == .some(nil))
      return (store.changes(), values)
    }
    var observers = try await changes()
    #expect(try await observers.1.next() == nil)
    for await change in observers.0 { Issue.record("\(change)") }
    // An open environment could not be opened with another access.
    try await Self.open(folder.path, access: .readOnly).close()
  }

  /// Observers come and go during writes, so the search for other commits ends and begins again.
  @Test func `observers come and go while the store is written`() async throws {
    let (environment, store) = try await openStore()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<3 {
        group.addTask {
          for number in 1...60 {
            let isReported = Flag()
            let observation = store.observe(.only("\(task)")) { _ in isReported.set() }
            try await store.setValue([UInt8(number)], forKey: "\(task)")
            #expect(isReported.isSet, "write \(number) of task \(task) was missed")
            var values = store.updates(forKey: "\(task)").makeAsyncIterator()
            #expect(try await values.next() == .some([UInt8(number)]))
            observation.cancel()
            if number.isMultiple(of: 20) { poll(environment) }
          }
        }
      }
      try await group.waitForAll()
    }
    try await environment.close()
  }

  // MARK: Several processes

  @Test func `a commit of another process is reported while a write waits for its lock`() async throws {
    let (environment, store) = try await openStore()
    try await store.setValue([1], forKey: "a")
    let observation = events.observe(store)
    let shared = environment.handle.environment
    let other = HeldRead()
    // The writer and the observers do not know these transactions, as if they were those of another process.
    async let held: Void = other.run {
      for number: UInt8 in 2...3 {
        var transaction: OpaquePointer?
        try LMDBError.check(mdb_txn_begin(shared.pointer, nil, 0, &transaction))
        let write = try #require(transaction)
        try store.database(in: write).setValue([number], forKey: "a")
        if number == 3 { other.hold() }
        try LMDBError.check(mdb_txn_commit(write))
      }
    }
    await other.isHeld()
    async let written: Void = store.setValue([1], forKey: "b")
    while shared.withWriteLockIfAvailable({}) != nil { await Task.yield() }
    poll(environment)
    #expect(events.take() == [.changed([.range(.all)])])
    #expect(try store.value(forKey: "a") == [2])
    other.release()
    try await held
    try await written
    // The other commit is reported, by a poll before or behind the report of the own one, or together with it.
    let last = events.take()
    #expect(last.filter { $0 != .changed([.key("b")]) } == [.changed([.range(.all)])] && last.count <= 2)
    poll(environment)
    #expect(events.take() == [])
    try await environment.close()
    withExtendedLifetime(observation) {}
  }

  @Test(arguments: [StoreAccess.readWrite, .readOnly])
  func `a commit of another process is seen`(_ access: StoreAccess) async throws {
    let (first, _) = try await openStore()
    try await first.close()
    let environment = try await Self.open(folder.path, access: access)
    let store = try await LMDBStore<[UInt8]>(in: environment, codec: .raw)
    for number: UInt8 in 1...2 {
      // The second round begins without an observer, so that the search begins again.
      let changes = store.changes(in: .prefix("a"))
      var values = store.updates(forKey: "a").makeAsyncIterator()
      #expect(try await values.next() == .some(number == 1 ? nil : [1]))
      // Nothing of this process takes the number of the commit below.
      if access == .readWrite { try await store.update("a") { _ in } }
      await #expect(processExitsWith: .success) { [path = folder.path as String, number = number as UInt8] in
        let environment = try await ObservationTests.open(path)
        let store = try await LMDBStore<[UInt8]>(in: environment, codec: .raw)
        try await store.setValue([number], forKey: "a")
        try await environment.close()
      }
      #expect(try await values.next() == .some([number]))
      // The change is not among those of this process.
      for await change in changes where change == .range(.prefix("a")) { break }
    }
    try await environment.close()
  }

  @Test func `observers follow a map that another process enlarges`() async throws {
    let environment = try await Self.open(folder.path, initialMapSize: 1 << 18)
    let store = try await LMDBStore<[UInt8]>(in: environment, codec: .raw)
    let isDone = Flag()
    var entries = store.entries(observing: .all, limit: 1, order: .descending).makeAsyncIterator()
    #expect(try await entries.next() == [])
    async let read: Void = Threads.run(2) { _ in
      while !isDone.isSet { _ = try store.count(in: ..<"3") }
    }
    await #expect(processExitsWith: .success) { [path = folder.path as String] in
      let environment = try await ObservationTests.open(path, initialMapSize: 1 << 18)
      let store = try await LMDBStore<[UInt8]>(in: environment, codec: .raw)
      for number in 0..<30 {
        try await store.setValue([UInt8](repeating: 9, count: 200_000), forKey: StoreKey("\(100 + number)"))
      }
      try await store.setValue([1], forKey: "z")
      try await environment.close()
    }
    while let state = try await entries.next(), state.first?.key != "z" {}
    isDone.set()
    try await read
    #expect(try store.count(in: .all) == 31)
    try await environment.close()
  }
}
#endif
