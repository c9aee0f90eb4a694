#if Postgres
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderPostgres

/// A store of a database of its own, as another host has it, and the events that it has reported.
struct FeedHost: Sendable {
  let database: PostgresDatabase
  let store: PostgresStore<Int>
  let events: StoreEvents
  private let observation: StoreObservation

  /// Opens a store, and observes it.
  init(
    _ setting: Setting, connection: String? = nil, name: String = "users", access: StoreAccess = .readWrite
  ) async throws {
    database = try await PostgresDatabase(
      connection ?? setting.server.connectionString, schema: setting.schema, access: access, connections: 4)
    store = try await PostgresStore<Int>(in: database, name: name, reportsChanges: access == .readWrite)
    events = StoreEvents()
    observation = events.observe(store)
  }

  /// Starts a transaction that has written a key, and stays open until its gate is opened.
  func startTransaction(writing key: StoreKey) async throws -> (task: Task<Void, any Error>, end: Gate) {
    let (begun, end) = (Gate(), Gate())
    let task = Task {
      try await database.write { transaction in
        try await transaction.setValue(1, forKey: key, in: store)
        begun.open()
        try await end.wait()
      }
    }
    try await begun.wait()
    return (task, end)
  }

  /// The age from which on every commit has been reported.
  var lag: Duration { observation.lag }

  /// Waits until changes are reported that cover a key, and returns all that were reported until then.
  ///
  /// The changes of others, which are reported as ranges, are returned as keys if they are of one key. Reports of one reader come in the order of the commits, so what was committed before and is not among them is not
  /// reported.
  @discardableResult
  func changes(until key: StoreKey) async throws -> [StoreChange] {
    let changes = Locked<[StoreChange]>([])
    try await waitUntil {
      changes.withLock { changes in
        changes += events.take().flatMap { event -> [StoreChange] in
          guard case .changed(let changes) = event else { return [] }
          return changes.map { change in
            change.range == .only(change.range.lowerBound) ? .key(change.range.lowerBound) : change
          }
        }
        return changes.contains { $0.range.contains(key) }
      }
    }
    return changes.withLock(\.self)
  }

  /// Runs a closure with two hosts that have the same store open.
  static func two(
    on server: PostgresServer? = nil,
    _ body: (_ setting: Setting, _ first: FeedHost, _ second: FeedHost) async throws -> Void
  ) async throws {
    try await Setting.run(on: server) { setting in
      let (first, second) = (try await FeedHost(setting), try await FeedHost(setting))
      do {
        try await body(setting, first, second)
      } catch {
        await first.database.close()
        await second.database.close()
        throw error
      }
      await first.database.close()
      await second.database.close()
    }
  }
}

/// Reports of the changes that other hosts have made.
@Suite(.limitedParallelism, .timeLimit(.minutes(60))) struct ChangeFeedTests {
  @Test func `changes of another host are reported`() async throws {
    try await FeedHost.two { setting, first, second in
      #expect(first.store.information.reportsAllCommits)
      try await first.store.setValue(1, forKey: "a")
      #expect(try await second.changes(until: "a") == [.key("a")])
      try await first.store.apply([.set("b", 1), .remove("a"), .set("c", 2)])
      #expect(Set(try await second.changes(until: "c")) == [.key("a"), .key("b"), .key("c")])
      try await first.store.update(["c", "d"]) { slots in slots[1] = 4 }
      #expect(try await second.changes(until: "d") == [.key("d")])
      try await first.store.apply([.removeAll("b"..<"d"), .set("e", 1)])
      #expect(Set(try await second.changes(until: "e")) == [.range("b"..<"d"), .key("e")])
      try await first.store.removeAll()
      #expect(try await second.changes(until: "x") == [.range(.all)])
      // And in the other direction.
      _ = first.events.take()
      try await second.store.setValue(7, forKey: "back")
      #expect(try await first.changes(until: "back") == [.key("back")])
    }
  }

  @Test func `own changes are reported once and before the call returns`() async throws {
    try await FeedHost.two { setting, first, second in
      try await first.store.setValue(1, forKey: "a")
      #expect(first.events.take() == [.changed([.key("a")])])
      try await first.store.update("b") { $0 = 1 }
      #expect(first.events.take() == [.changed([.key("b")])])
      try await first.database.write { try await $0.setValue(1, forKey: "c", in: first.store) }
      #expect(first.events.take() == [.changed([.key("c")])])
      try await second.store.setValue(1, forKey: "z")
      #expect(try await first.changes(until: "z") == [.key("z")])
    }
  }

  /// The range is never taken for the report of an own write.
  @Test func `a key of another host is reported as a range`() async throws {
    try await FeedHost.two { setting, first, second in
      try await first.store.setValue(1, forKey: "a")
      try await waitUntil { second.events.take() == [.changed([.range(.only("a"))])] }
    }
  }

  /// A commit whose outcome is unknown may come later, so its row is not left out.
  @Test func `a commit after an unknown outcome is reported`() async throws {
    try await FeedHost.two { setting, first, second in
      let feed = first.store.handle.feed
      let origin = feed.origin
      func commitLate(_ key: String) async throws {
        try await setting.psql(
          "INSERT INTO larder_changes(origin, store, keys) VALUES (\(origin), 'users', ARRAY['\(key)'::bytea])")
      }
      try await commitLate("own")
      try await second.store.setValue(1, forKey: "z")
      #expect(try await first.changes(until: "z") == [.key("z")])
      feed.noteCommit([first.store.committed { BoundedChanges([.key("late")]) }], isCertain: false)
      #expect(first.events.take() == [.changed([.key("late")])])
      try await commitLate("late")
      try await first.changes(until: "late")
    }
  }

  /// Another object of the same database may not have the report of a commit yet.
  @Test func `the lag counts from the beginning of a commit that is not reported`() async throws {
    try await FeedHost.two { setting, first, second in
      try await waitUntil { first.lag < .milliseconds(600) }
      let feed = first.store.handle.feed
      let commit = feed.beginCommit()
      try await waitUntil { first.lag > .seconds(1) && second.lag < .seconds(1) }
      feed.endCommit(commit)
      try await waitUntil { first.lag < .seconds(1) }
      // Nothing stays after commits, with whatever outcome.
      try await first.store.setValue(1, forKey: "a")
      try await first.store.update("a") { $0 = 2 }
      try await first.database.write { try await $0.setValue(3, forKey: "a", in: first.store) }
      try await waitUntil { second.lag > .seconds(1) || first.lag < .milliseconds(100) }
    }
  }

  @Test func `a transaction reports the changes of its stores`() async throws {
    try await FeedHost.two { setting, first, second in
      let (orders, others) = (try await FeedHost(setting, name: "orders"), try await FeedHost(setting, name: "orders"))
      let store = try await PostgresStore<Int>(in: first.database, name: "orders")
      try await first.database.write { transaction in
        try await transaction.setValue(1, forKey: "a", in: first.store)
        try await transaction.update(["b"], in: store) { $0[0] = 2 }
        try await transaction.removeAll(in: .prefix("p"), of: store)
      }
      #expect(try await second.changes(until: "a") == [.key("a")])
      #expect(Set(try await orders.changes(until: "b")) == [.key("b"), .range(.prefix("p"))])
      await orders.database.close()
      await others.database.close()
    }
  }

  @Test func `what is rolled back is not reported`() async throws {
    struct Abandoned: Error {}
    try await FeedHost.two { setting, first, second in
      await #expect(throws: Abandoned.self) {
        try await first.database.write { transaction in
          try await transaction.setValue(1, forKey: "a", in: first.store)
          throw Abandoned()
        }
      }
      try await first.store.update(deciding: ["b"]) { slots in
        slots[0] = 1
        return .discard(())
      }
      try await first.store.setValue(1, forKey: "z")
      #expect(try await second.changes(until: "z") == [.key("z")])
    }
  }

  @Test func `a long transaction delays only its own changes`() async throws {
    try await FeedHost.two { setting, first, second in
      let (long, end) = try await first.startTransaction(writing: "long")
      for number in 0..<20 {
        let key = StoreKey(integer: number)
        try await first.store.setValue(number, forKey: key)
        #expect(try await second.changes(until: key) == [.key(key)])
      }
      #expect(try await second.store.value(forKey: "long") == nil)
      end.open()
      try await long.value
      #expect(try await second.changes(until: "long") == [.key("long")])
    }
  }

  @Test func `a write of many keys is reported as a range`() async throws {
    try await FeedHost.two { setting, first, second in
      let keys = (0...1000).map { StoreKey("k\(1000 + $0)") }
      try await first.store.apply(ChangeBatch(keys.dropLast().map { .set($0, 1) }))
      #expect(Set(try await second.changes(until: "k1999")).count == 1000)
      try await first.store.apply(ChangeBatch(keys.map { .set($0, 2) }))
      let changes = try await second.changes(until: "k1500")
      #expect(changes.count == 1 && keys.allSatisfy { changes[0].range.contains($0) })
      #expect(changes[0].range.contains("l") == false)
    }
  }

  @Test func `a lost notification delays a report`() async throws {
    try await Setting.runBehindProxy { proxy, database, setting in
      proxy.refuseNotifications()
      let writer = try await PostgresStore<Int>(in: database, name: "users", reportsChanges: true)
      let reader = try await FeedHost(setting)
      for number in 0..<4 {
        try await writer.setValue(number, forKey: StoreKey(integer: number))
        try await reader.changes(until: StoreKey(integer: number))
      }
      await reader.database.close()
    }
  }

  @Test func `own notifications are ignored`() async throws {
    try await FeedHost.two { setting, first, second in
      let (listener, others) = (first.store.handle.listener, second.store.handle.listener)
      let own = Locked(0)
      let all = Locked(0)
      let observations = [
        listener.observe("channel", ignoresOwn: true) { own.withLock { $0 += 1 } },
        listener.observe("channel") { all.withLock { $0 += 1 } },
      ]
      // Both are called whenever the session begins to listen to a channel, which is a few times at most.
      try await waitUntil { all.withLock(\.self) > 0 }
      for _ in 0..<30 {
        let before = all.withLock(\.self)
        listener.notify("channel")
        try await waitUntil { all.withLock(\.self) > before }
      }
      let before = own.withLock(\.self)
      #expect(before < 15)
      others.notify("channel")
      try await waitUntil { own.withLock(\.self) > before }
      withExtendedLifetime(observations) {}
    }
  }

  /// A look in a serializable transaction would take locks that writes run into.
  @Test func `looks are read only and not serializable`() async throws {
    try await Setting.run(isolation: .serializable) { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "users", reportsChanges: true)
      let results = await store.handle.listener.run([
        .command("SHOW transaction_isolation"), .command("SHOW transaction_read_only"),
      ])
      #expect(results?.map { $0.text(0, 0) } == ["read committed", "on"])
      let events = StoreEvents()
      let observation = events.observe(store)
      try await waitUntil { observation.lag < .seconds(1) }
    }
  }

  /// A reader without rights to write reports too.
  @Test func `a reader reports changes`() async throws {
    try await FeedHost.two { setting, first, second in
      let reader = try await FeedHost(setting, access: .readOnly)
      #expect(reader.store.information.reportedCommits == .ofAllHosts)
      try await first.store.setValue(1, forKey: "a")
      #expect(try await reader.changes(until: "a") == [.key("a")])
      await reader.database.close()
    }
  }

  // MARK: Records

  @Test func `every writer learns from the record`() async throws {
    try await FeedHost.two { setting, first, second in
      // Opened without the argument.
      let database = try await PostgresDatabase(setting.server.connectionString, schema: setting.schema)
      let store = try await PostgresStore<Int>(in: database, name: "users", createsIfMissing: false)
      #expect(store.information.reportedCommits == .ofAllHosts)
      try await store.setValue(1, forKey: "a")
      #expect(try await first.changes(until: "a") == [.key("a")])
      await database.close()
      // Version 1 of the format stays that of other stores.
      _ = try await PostgresStore<Int>(in: first.database, name: "plain")
      let formats = try await setting.psql("SELECT string_agg(name || format, ',' ORDER BY name) FROM larder_stores")
      #expect(formats == "plain1,users2")
    }
  }

  @Test func `a store that does not report stays so`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "plain")
      #expect(store.information.reportedCommits == .ofObject && !store.information.reportsAllCommits)
      await expectStoreError(.unsupported) {
        _ = try await PostgresStore<Int>(in: setting.database, name: "plain", reportsChanges: true)
      }
      // Commits of the same database are reported nevertheless.
      let other = try await PostgresStore<Int>(in: setting.database, name: "plain")
      let events = StoreEvents()
      let observation = events.observe(other)
      try await store.setValue(1, forKey: "a")
      #expect(events.take() == [.changed([.key("a")])])
      observation.cancel()
      #expect(
        try await setting.psql(
          "SELECT count(*) FROM pg_class WHERE relname = 'larder_changes' "
            + "AND relnamespace = '\(setting.schema)'::regnamespace") == "0")
    }
  }

  @Test func `a newer format is refused`() async throws {
    try await FeedHost.two { setting, first, second in
      try await setting.psql("UPDATE larder_stores SET format = 3")
      await expectStoreError(.versionMismatch) { _ = try await PostgresStore<Int>(in: first.database, name: "users") }
    }
  }
}
#endif
