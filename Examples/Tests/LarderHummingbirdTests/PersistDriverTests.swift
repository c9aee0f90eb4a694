import Foundation
import Hummingbird
import Larder
import LarderHummingbird
import LarderHummingbirdTesting
import LarderLMDB
import LarderPostgres
import LarderSQLite
import LarderTesting
import PostgresServers
import ServiceLifecycleTestKit
import Testing

/// A folder for the files of all cases, which a test program removes at its end.
private let folder = FileManager.default.temporaryDirectory.appending(path: "larder-hummingbird-\(UUID().uuidString)")
  .path

/// Passes a driver over a store to a check, and closes the store.
private func check(
  _ store: some DataStore<[UInt8]>, _ location: PersistDriverLocation,
  _ check: (any PersistDriver) async throws -> Void
) async throws {
  let clock = location.clock
  let driver = try StorePersistDriver(store, prefix: "persist/", clock: clock) { clock.date }
  do {
    try await check(driver)
  } catch {
    try await store.close()
    throw error
  }
  try await store.close()
}

@Suite("Persist drivers", .timeLimit(.minutes(5)))
struct PersistDriverTests {
  static let memory = PersistDriverSuite(named: "MemoryStore") { location, body in
    try await check(MemoryStore<[UInt8]>(), location, body)
  }

  static let sqlite = PersistDriverSuite(named: "SQLiteStore", isPersistent: true) { location, body in
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let path = folder + "/\(location.name).sqlite"
    try await check(try await SQLiteStore(path: path, codec: .raw), location, body)
  }

  static let lmdb = PersistDriverSuite(named: "LMDBStore", isPersistent: true) { location, body in
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try await check(try await LMDBStore(path: folder + "/\(location.name)", codec: .raw), location, body)
  }

  static let postgres = PersistDriverSuite(named: "PostgresStore", isPersistent: true) { location, body in
    let server = try await PostgresServer.shared
    let database = try await PostgresDatabase(server.connectionString)
    let store = try await PostgresStore(in: database, name: location.name, codec: .raw)
    do {
      try await check(store, location, body)
    } catch {
      await database.close()
      throw error
    }
    await database.close()
  }

  @Test(arguments: memory.cases) func `a memory store conforms`(_ driverCase: PersistDriverCase) async throws {
    try await driverCase.run()
  }

  @Test(arguments: sqlite.cases) func `an SQLite store conforms`(_ driverCase: PersistDriverCase) async throws {
    try await driverCase.run()
  }

  @Test(arguments: lmdb.cases) func `an LMDB store conforms`(_ driverCase: PersistDriverCase) async throws {
    try await driverCase.run()
  }

  @Test(.enabled(if: PostgresServer.isExternal || PostgresServer.isInstalled), arguments: postgres.cases)
  func `a Postgres store conforms`(_ driverCase: PersistDriverCase) async throws {
    try await driverCase.run()
  }
}

/// Hummingbird's own driver, which is the example of the page.
@Suite("MemoryPersistDriver of Hummingbird", .timeLimit(.minutes(5)))
struct MemoryPersistDriverTests {
  // snippet.a-driver-of-your-own
  static let suite = PersistDriverSuite(named: "MemoryPersistDriver") { location, check in
    try await check(MemoryPersistDriver(location.clock))
  }
  // snippet.end

  /// It keeps expired entries until it tidies up, and they still count for `create` and `set`.
  @Test func `fails these cases`() async throws {
    let failures = try await Self.suite.run()
    for failure in failures { print(failure) }
    #expect(failures.map(\.driverCase.id) == [11, 12, 14, 18, 20])
  }
}

/// Promises of the driver that Hummingbird does not demand, so that the suite has no cases of them.
@Suite("StorePersistDriver", .timeLimit(.minutes(5)))
struct StorePersistDriverTests {
  private let clock = ManualClock()
  private let bytes = MemoryStore<[UInt8]>()

  private func driver(purgeInterval: Duration = .seconds(60)) throws -> StorePersistDriver {
    try StorePersistDriver(
      bytes, prefix: "persist/", purgeInterval: purgeInterval, clock: clock, now: { [clock] in clock.date })
  }

  @Test func `invalid keys are refused with a sentence`() async throws {
    let driver = try driver()
    let limit = StoreKey.maximumLength - 8
    try await driver.set(key: String(repeating: "k", count: limit), value: 1)
    for key in ["", String(repeating: "k", count: limit + 1), String(repeating: "é", count: limit)] {
      for call: @Sendable () async throws -> Void in [
        { try await driver.create(key: key, value: 1) }, { try await driver.set(key: key, value: 1) },
        { try await driver.set(key: key, value: 1, expires: .seconds(1)) },
        { _ = try await driver.get(key: key, as: Int.self) },
        { _ = try await driver.getWithTTL(key: key, as: Int.self) },
        { try await driver.remove(key: key) },
      ] {
        let error = try await #require(throws: StoreError.self) { try await call() }
        #expect(error.code == .invalidKey)
        #expect(error.message.contains("must have 1 to 503 bytes in UTF-8, not \(key.utf8.count)"))
      }
    }
    #expect(try bytes.count(in: .all) == 1)
  }

  @Test func `bad arguments are refused`() async {
    await expectStoreError(.invalidArgument) { try driver(purgeInterval: .zero) }
    await expectStoreError(.invalidArgument) {
      try StorePersistDriver(bytes, prefix: StoreKey(String(repeating: "p", count: StoreKey.maximumLength)))
    }
  }

  @Test func `damaged bytes are not a value of another type`() async throws {
    let driver = try driver()
    try await driver.set(key: "a", value: "text")
    try await bytes.setValue([1, 0x7B, 0x22], forKey: "persist/a")
    await expectStoreError(.corrupted) { try await driver.get(key: "a", as: String.self) }
    await expectStoreError(.corrupted) { try await driver.getWithTTL(key: "a", as: Int.self)?.object }
  }

  @Test func `each call is one operation of the store`() async throws {
    let store = FaultyStore(bytes)
    let driver = try StorePersistDriver(store, prefix: "persist/")
    for round in 1...40 {
      try await driver.create(key: "\(round)", value: round, expires: .seconds(100))
      try await driver.set(key: "\(round)", value: round)
      try await driver.set(key: "\(round)", value: round, expires: .seconds(200))
      #expect(try await driver.get(key: "\(round)", as: Int.self) == round)
      #expect(try await driver.getWithTTL(key: "\(round)", as: Int.self)?.ttl != nil)
      try await driver.remove(key: "\(round)")
    }
    #expect(store.operationCount == 240)
  }

  @Test func `a driver is a service that purges and leaves the store open`() async throws {
    let (driver, clock, bytes) = (try driver(), clock, bytes)
    try await driver.set(key: "short", value: 1, expires: .seconds(30))
    try await driver.set(key: "long", value: 1, expires: .seconds(3000))
    try await testGracefulShutdown { trigger in
      async let result: Void = driver.run()
      try await clock.waitForSleepers(1)
      clock.advance(by: .seconds(60))
      try await clock.waitForSleepers(1)
      #expect(try bytes.count(in: .all) == 1)
      trigger.triggerGracefulShutdown()
      try await result
    }
    #expect(try await driver.get(key: "long", as: Int.self) == 1)
  }

  @Test func `a failed purge is reported and repeated`() async throws {
    let errors = Locked<[String]>([])
    let store = FaultyStore(bytes)
    let driver = try StorePersistDriver(
      store, prefix: "persist/", purgeInterval: .seconds(60), clock: clock,
      now: { [clock] in clock.date },
      onPurgeFailure: { error in
        errors.withLock { $0.append("\((error as? StoreError)?.code.rawValue ?? "other")") }
      })
    try await driver.set(key: "short", value: 1, expires: .seconds(30))
    let run = Task { try await driver.run() }
    try await clock.waitForSleepers(1)
    store.schedule(.error(.ioFailed))
    clock.advance(by: .seconds(60))
    try await clock.waitForSleepers(1)
    #expect(errors.withLock { $0 } == ["ioFailed"])
    clock.advance(by: .seconds(60))
    try await clock.waitForSleepers(1)
    #expect(try bytes.count(in: .all) == 0)
    run.cancel()
    try await run.value
  }

  @Test func `entries beside the prefix are left alone`() async throws {
    let driver = try driver()
    try await bytes.setValue([9], forKey: "persist")
    try await bytes.setValue([9], forKey: "other")
    try await driver.set(key: "a", value: 1, expires: .seconds(1))
    clock.advance(by: .seconds(2))
    #expect(try await driver.purgeExpired() == 1)
    #expect(try bytes.count(in: .all) == 2)
  }
}

/// Expects that a closure throws a `StoreError` with a code.
private func expectStoreError<Result>(
  _ code: StoreError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Result
) async {
  let error = await #expect(throws: StoreError.self, sourceLocation: sourceLocation) { _ = try await body() }
  #expect(error?.code == code, sourceLocation: sourceLocation)
}
