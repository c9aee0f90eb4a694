#if Postgres
import Foundation
import Larder
import LarderCBOR
import LarderPostgres
import TestSupport
import Testing

/// Opens a committed dump of every table of the module, and compares its content.
///
/// With `LARDER_WRITE_GOLDENS=1`, a missing dump is written; see `GoldenTests`.
@Suite struct PostgresGoldenTests {
  private static let dump = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../FormatTests/Goldens/postgres.sql").standardizedFileURL
  private static let schemaOfDump = "larder_golden"

  private static let content = [
    "users": "1: Ada, 2: Bob ☃", "reported": "1: -1, 2: 300", "feed": "true", "queue": "waiting: 1, 7: 2",
    "dead": "gone: 3",
  ]

  private static let configuration = PostgresQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1))

  private static func write(_ database: PostgresDatabase) async throws {
    let users = try await PostgresStore<String>(in: database, name: "users", codec: .json())
    try await users.apply([.set("1", "Ada"), .set("2", "Bob ☃"), .set("3", "removed")])
    try await users.removeValue(forKey: "3")
    let reported = try await PostgresStore<Int>(in: database, name: "reported", reportsChanges: true)
    try await reported.apply([.set("1", -1), .set("2", 300)])
    let queue = try await PostgresQueue<Int>(in: database, name: "jobs", codec: .json(), configuration: configuration)
    try await queue.enqueue(3, id: "gone")
    let delivery = try #require(try await queue.receive(lease: .seconds(60)))
    try await queue.release(delivery.receipt)
    try await queue.enqueue([QueueInput(1, id: "waiting"), QueueInput(2, id: "7", priority: -1, group: "g")])
  }

  private static func read(_ database: PostgresDatabase) async throws -> [String: String] {
    func text(_ entries: [(StoreKey, some Any)]) -> String {
      entries.map { "\($0.0.string ?? ""): \($0.1)" }.joined(separator: ", ")
    }
    let users = try await PostgresStore<String>(in: database, name: "users", codec: .json(), createsIfMissing: false)
    let reported = try await PostgresStore<Int>(in: database, name: "reported", createsIfMissing: false)
    let queue = try await PostgresQueue<Int>(
      in: database, name: "jobs", codec: .json(), configuration: configuration, createsIfMissing: false)
    return [
      "users": text(try await users.entries(in: .all, limit: 9, order: .ascending).map { ($0.key, $0.value) }),
      "reported": text(try await reported.entries(in: .all, limit: 9, order: .ascending).map { ($0.key, $0.value) }),
      "feed": "\(reported.information.sharing == .betweenHosts && AnyDataStore(reported).observation != nil)",
      "queue": text(try await queue.peek(max: 9).map { ($0.key, $0.value) }),
      "dead": text(try await queue.deadLetters().map { ($0.key, try $0.value.get()) }),
    ]
  }

  /// Both the committed dump and one that this version writes.
  @Test(arguments: [true, false]) func `a dump opens`(isCommitted: Bool) async throws {
    let server = try await PostgresServer.local
    let isMissing = !FileManager.default.fileExists(atPath: Self.dump.path(percentEncoded: false))
    let writesMissing = isMissing && ProcessInfo.processInfo.environment["LARDER_WRITE_GOLDENS"] != nil
    var text = ""
    if !isCommitted || writesMissing {
      try await Setting.run(on: server) { setting in
        try await Self.write(setting.database)
        text = try await server.dump(schema: setting.schema).replacing(setting.schema, with: Self.schemaOfDump)
      }
    }
    if isCommitted {
      if writesMissing { try text.write(to: Self.dump, atomically: true, encoding: .utf8) }
      text = try String(contentsOf: Self.dump, encoding: .utf8)
    }
    let schema = "larder_test_golden_" + String(UInt64.random(in: 0 ... .max), radix: 36)
    try await server.run(psql: text.replacing(Self.schemaOfDump, with: schema))
    let database = try await PostgresDatabase(server.connectionString, schema: schema)
    let found = try await Self.read(database)
    await database.close()
    #expect(found == Self.content)
  }
}
#endif
