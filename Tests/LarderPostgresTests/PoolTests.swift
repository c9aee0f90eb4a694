#if Postgres
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderPostgres

/// Connections that are locked, refused, silent or slow.
@Suite(.timeLimit(.minutes(60))) struct PoolTests {
  /// Runs a closure while another program holds the strongest lock of a table.
  private static func withLock(on table: String, of setting: Setting, _ body: () async throws -> Void) async throws {
    let other = try await PostgresDatabase(setting.server.connectionString, schema: setting.schema)
    let (isLocked, mayEnd) = (Gate(), Gate())
    async let lock: Void = other.write { transaction in
      try await transaction.execute("LOCK TABLE \(table) IN ACCESS EXCLUSIVE MODE")
      isLocked.open()
      try await mayEnd.wait()
    }
    try await isLocked.wait()
    try await body()
    mayEnd.open()
    try await lock
    await other.close()
  }

  @Test func `a lock of one table delays no call of another store`() async throws {
    try await Setting.run(connections: 3) { setting in
      let locked = try await PostgresStore<Int>(in: setting.database, name: "locked")
      let other = try await PostgresStore<Int>(in: setting.database, name: "other")
      let queue = try await PostgresQueue<Int>(in: setting.database, name: "queue")
      try await locked.setValue(1, forKey: "k")
      try await PoolTests.withLock(on: "locked", of: setting) {
        try await withThrowingTaskGroup(of: Int?.self) { group in
          for _ in 0..<50 { group.addTask { try await locked.value(forKey: "k") } }
          try await setting.waitForBlocked(3)
          // These would not return before the lock ends, which is after them.
          try await other.setValue(2, forKey: "k")
          for _ in 0..<10 { #expect(try await other.value(forKey: "k") == 2) }
          try await queue.enqueue([QueueInput(3)])
          #expect(try await queue.receive(max: 1, lease: .seconds(9)).map(\.value) == [3])
          try await setting.database.write { try await $0.setValue(4, forKey: "k", in: other) }
          group.cancelAll()
          while let result = await group.nextResult() {
            #expect(throws: CancellationError.self) { try result.get() }
          }
        }
      }
      #expect(try await locked.value(forKey: "k") == 1)
    }
  }

  @Test func `calls that wait for a lock end at their own deadlines`() async throws {
    try await Setting.run(connections: 2, timeout: .seconds(3)) { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "locked")
      try await PoolTests.withLock(on: "locked", of: setting) {
        let duration = await shortest(below: .seconds(15)) {
          await withTaskGroup(of: StoreError.Code?.self) { group in
            for number in 0..<20 {
              group.addTask {
                do {
                  if number % 2 == 0 {
                    _ = try await store.value(forKey: "k")
                  } else {
                    try await store.setValue(1, forKey: "k")
                  }
                  return nil
                } catch {
                  return (error as? StoreError)?.code
                }
              }
            }
            for await code in group { #expect(code == .timedOut) }
          }
        }
        // One after another, they would take ten times as long.
        #expect(duration < .seconds(15))
      }
    }
  }

  @Test func `a read that is cancelled ends on the server too`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database, name: "locked")
      try await PoolTests.withLock(on: "locked", of: setting) {
        let read = Task { try await store.value(forKey: "k") }
        try await setting.waitForBlocked(1)
        read.cancel()
        await #expect(throws: CancellationError.self) { try await read.value }
        let count =
          "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = '\(setting.schema)'"
        try await waitUntil { try await setting.psql(count) == "0" }
        let transaction = Task { try await setting.database.read { try await $0.execute("SELECT pg_sleep(3600)") } }
        let sleeping =
          "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND application_name = '\(setting.schema)'"
        try await waitUntil { try await setting.psql(sleeping) != "0" }
        transaction.cancel()
        await #expect(throws: CancellationError.self) { try await transaction.value }
        try await waitUntil { try await setting.psql(sleeping) == "0" }
      }
      #expect(try await store.value(forKey: "k") == nil)
    }
  }

  @Test func `at a limit of connections calls use those that exist`() async throws {
    try await Setting.run(on: PostgresServer.local) { setting in
      let role = "limited_\(setting.schema)"
      try await setting.psql(
        "CREATE ROLE \(role) LOGIN CONNECTION LIMIT 2; GRANT ALL ON SCHEMA \(setting.schema) TO \(role)")
      let database = try await PostgresDatabase(
        "\(setting.server.connectionString) user=\(role)", schema: setting.schema, connections: 16)
      let stores = [
        try await PostgresStore<Int>(in: database, name: "a"), try await PostgresStore<Int>(in: database, name: "b"),
      ]
      try await withThrowingTaskGroup(of: Void.self) { group in
        for task in 0..<16 {
          group.addTask {
            for number in 0..<20 {
              let store = stores[(task + number) % 2]
              try await store.setValue(number, forKey: StoreKey(integer: task))
              _ = try await store.value(forKey: StoreKey(integer: task))
            }
          }
        }
        try await group.waitForAll()
      }
      let statistics = database.statistics()
      #expect(statistics.connected <= 2)
      #expect(statistics.failures > 0)
      #expect((statistics.busy, statistics.waiting) == (0, 0))
      await database.close()
    }
  }

  @Test func `an opening that is cancelled is no failure of the server`() async throws {
    let server = try await PostgresServer.local
    let opening = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      _ = try await PostgresDatabase(server.connectionString)
    }
    await #expect(throws: CancellationError.self) { try await opening.value }
  }

  @Test func `connections are made on demand and counted`() async throws {
    try await Setting.run(connections: 5) { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      for number in 0..<20 { try await store.setValue(number, forKey: "k") }
      #expect(setting.database.statistics().connected == 1, "one call after another needs one")
      let mayEnd = Gate()
      let running = (0..<5).map { _ in Gate() }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for gate in running {
          group.addTask {
            try await setting.database.read { _ in
              gate.open()
              try await mayEnd.wait()
            }
          }
        }
        for gate in running { try await gate.wait() }
        let statistics = setting.database.statistics()
        #expect((statistics.connected, statistics.busy, statistics.waiting) == (5, 5, 0))
        mayEnd.open()
        try await group.waitForAll()
      }
      try await setting.psql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '\(setting.schema)'")
      for _ in 0..<10 { #expect(try await store.value(forKey: "k") == 19) }
      #expect(setting.database.statistics().connects > 5)
    }
  }

  /// The thread that receives is held while a deadline passes and another connection is added.
  @Test func `a deadline of a connection that was just added is kept`() async throws {
    let server = try await PostgresServer.local
    let configuration = SessionConfiguration(
      connection: server.connectionString, schema: "public", durability: .synced, isolation: .readCommitted,
      access: .readOnly, timeout: .seconds(30))
    let poller = try Poller()
    let (isHeld, mayContinue) = (Flag(), Flag())
    let channel = "c\(UInt32.random(in: 0 ... .max))"
    let first = try await Session.connect(
      configuration, poller, until: .now + .seconds(30),
      onNotification: { _ in
        isHeld.set()
        while !mayContinue.isSet { usleep(1000) }
      }, onLoss: { _, _ in })
    _ = await first.run(Request(statements: [.command("LISTEN \(channel)")]))
    // Its answer comes, and the look at its deadline is planned all the same.
    let deadline = ContinuousClock.now + .seconds(10)
    _ = await first.run(Request(statements: [.command("SELECT 1")], deadline: deadline))
    try await server.run(psql: "NOTIFY \(channel)")
    try await waitUntil { isHeld.isSet }
    let second = Session(
      try Connection.connect(configuration, until: .now + .seconds(30)), configuration, poller,
      onNotification: { _ in },
      onLoss: { _, _ in })
    let request = Request(
      statements: [.command("SELECT pg_sleep(300)")], deadline: deadline + .milliseconds(100), isCancellable: true)
    let start = ContinuousClock.now
    async let response = second.run(request)
    try await Task.sleep(until: deadline + .milliseconds(50))
    mayContinue.set()
    guard case .refused(let error) = await response.failure else {
      Issue.record("the statement was not cancelled")
      return
    }
    #expect(error.sqlState == "57014")
    #expect(start.duration(to: .now) < .seconds(250))
    for session in [first, second] { session.close() }
  }

  // MARK: Events

  /// The events of connections, in order.
  private final class Events: Sendable {
    private let events = Locked<[PostgresConnectionEvent]>([])

    func note(_ event: PostgresConnectionEvent) { events.withLock { $0.append(event) } }

    /// The first words of the descriptions.
    var words: [String] {
      events.withLock { $0 }.map { $0.description.split(separator: " ").prefix(2).joined(separator: " ") }
    }
  }

  @Test func `connects and losses are reported`() async throws {
    try await Setting.run { setting in
      let events = Events()
      let name = "events_\(setting.schema)"
      let database = try await PostgresDatabase(
        "\(setting.server.connectionString) application_name=\(name)", schema: setting.schema,
        onConnectionEvent: events.note)
      let store = try await PostgresStore<Int>(in: database)
      try await store.setValue(1, forKey: "k")
      #expect(events.words == ["connected to"])
      try await setting.psql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '\(name)'")
      // It is noticed without a call.
      try await waitUntil { events.words.count >= 2 }
      #expect(database.statistics().connected == 0)
      #expect(try await store.value(forKey: "k") == 1)
      await database.close()
      #expect(events.words == ["connected to", "lost a", "connected to"], "closing is not reported")
      await expectStoreError(.ioFailed) {
        _ = try await PostgresDatabase("host=/nowhere dbname=none", onConnectionEvent: events.note)
      }
      #expect(events.words.last == "cannot connect")
    }
  }

  @Test func `a call that waits long for a connection is reported`() async throws {
    let server = try await PostgresServer.local
    let events = Events()
    let configuration = SessionConfiguration(
      connection: server.connectionString, schema: "public", durability: .synced, isolation: .readCommitted,
      access: .readOnly, timeout: .seconds(30))
    let pool = try SessionPool(configuration, limit: 1, reportedWait: .zero, onEvent: events.note)
    let owner = ObjectIdentifier(events)
    let deadline = ContinuousClock.now + .seconds(30)
    try await withThrowingTaskGroup(of: Void.self) { group in
      try await pool.withSession(for: owner, until: deadline) { _ in
        group.addTask { try await pool.withSession(for: owner, until: deadline) { _ in } }
        try await waitUntil { pool.statistics.waiting > 0 }
        #expect(events.words == ["connected to"])
      }
      try await group.waitForAll()
    }
    #expect(events.words == ["connected to", "a call"])
    pool.close()
  }

  // MARK: Hosts

  #if canImport(Darwin)
  fileprivate static let streamType = SOCK_STREAM
  #else
  fileprivate static let streamType = Int32(SOCK_STREAM.rawValue)
  #endif

  /// A socket that accepts connections and never answers.
  private static func silentPort() throws -> (descriptor: Int32, port: UInt16) {
    let descriptor = socket(AF_INET, streamType, 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    try withUnsafeMutablePointer(to: &address) { pointer in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        try #require(bind(descriptor, pointer, length) == 0)
        try #require(listen(descriptor, 100) == 0)
        try #require(getsockname(descriptor, pointer, &length) == 0)
      }
    }
    return (descriptor, UInt16(bigEndian: address.sin_port))
  }

  @Test func `a silent host leaves time for the next however it is named`() async throws {
    let server = try await PostgresServer.local
    let (descriptor, silent) = try PoolTests.silentPort()
    defer { close(descriptor) }
    let folder = try server.folder
    try await Setting.run(on: server) { setting in
      let service = "\(NSTemporaryDirectory())/larder-service-\(setting.schema).conf"
      try "[two]\nhost=127.0.0.1,\(folder)\nport=\(silent),5432\nuser=larder\ndbname=postgres\n"
        .write(toFile: service, atomically: true, encoding: .utf8)
      defer { try? FileManager.default.removeItem(atPath: service) }
      let listed = try await PostgresDatabase(
        "host=127.0.0.1,\(folder) port=\(silent),5432 user=larder dbname=postgres", schema: setting.schema,
        timeout: .seconds(6))
      await listed.close()
      // In a process of its own, whose environment no other test reads.
      await #expect(processExitsWith: .success) { [service = service as String, schema = setting.schema as String] in
        setenv("PGSERVICEFILE", service, 1)
        let database = try await PostgresDatabase("service=two", schema: schema, timeout: .seconds(6))
        await database.close()
      }
      let duration = await shortest(below: .seconds(20)) {
        await expectStoreError(.ioFailed) {
          _ = try await PostgresDatabase("host=127.0.0.1 port=\(silent) user=larder dbname=postgres connect_timeout=1")
        }
      }
      #expect(duration < .seconds(20), "the limit of the connection, not that of the call")
    }
  }

  // MARK: Slow lines

  @Test func `a slow line that moves bytes is not a dead one`() async throws {
    try await Setting.run(on: PostgresServer.local) { setting in
      let line = try SlowLine(to: setting.server.folder, bytesPerSecond: 1_000_000)
      defer { line.close() }
      let database = try await PostgresDatabase(
        "host=\(line.folder) user=larder dbname=postgres", schema: setting.schema, timeout: .seconds(4))
      let store = try await PostgresStore<[UInt8]>(in: database, name: "large", codec: .raw)
      let value = (0..<6_000_000).map { UInt8(truncatingIfNeeded: $0) }
      // Each takes longer than the limit of a call.
      try await store.setValue(value, forKey: "k")
      #expect(try await store.value(forKey: "k") == value)
      await database.close()
    }
  }
}

/// A line to a server that carries some bytes in a second.
private final class SlowLine: Sendable {
  let folder: String
  private let listener: Int32

  init(to server: String, bytesPerSecond: Int) throws {
    folder = "\(server)/line-\(UInt32.random(in: 0 ... .max))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    chmod(folder, 0o755)
    let listener = try SlowLine.socket(bind, "\(folder)/.s.PGSQL.5432")
    self.listener = listener
    chmod("\(folder)/.s.PGSQL.5432", 0o777)
    try #require(listen(listener, 10) == 0)
    Thread.detachNewThread {
      while case let client = accept(listener, nil, nil), client >= 0 {
        guard let other = try? SlowLine.socket(connect, "\(server)/.s.PGSQL.5432") else { continue }
        for (source, sink) in [(client, other), (other, client)] {
          Thread.detachNewThread { SlowLine.copy(from: source, to: sink, bytesPerSecond) }
        }
      }
    }
  }

  func close() { shutdown(listener, Int32(SHUT_RDWR)) }

  private static func copy(from source: Int32, to sink: Int32, _ rate: Int) {
    var buffer = [UInt8](repeating: 0, count: 16 << 10)
    while case let count = read(source, &buffer, buffer.count), count > 0 {
      usleep(UInt32(count * 1_000_000 / rate))
      var start = 0
      while start < count, case let sent = write(sink, Array(buffer[start..<count]), count - start), sent > 0 {
        start += sent
      }
    }
    shutdown(sink, Int32(SHUT_RDWR))
  }

  private static func socket(
    _ attach: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32, _ path: String
  ) throws -> Int32 {
    let descriptor = Foundation.socket(AF_UNIX, PoolTests.streamType, 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
    let status = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        attach(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(status == 0)
    return descriptor
  }
}
#endif
