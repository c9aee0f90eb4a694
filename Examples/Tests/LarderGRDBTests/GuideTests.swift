import Foundation
import GRDB
import Larder
import LarderGRDB
import LarderQueue
import Testing

/// The Swift code of the guide `UsingGRDBStore.md`.
///
/// That of the outbox is in `Examples/Orders`.
@Suite(.timeLimit(.minutes(5))) struct GuideTests {
  struct User: Codable, Sendable {
    var name: String
    var orderCount = 0
  }

  struct Order: Codable, PersistableRecord {
    static let databaseTableName = "orders"
    var id: Int
    var total: Int
  }

  struct OrderPlaced: Codable, Sendable {
    var order: Int
  }

  @Test func `the code of the guide runs`() async throws {
    let file = try TestDatabase()
    _ = try file.pool()
    let path = file.path
    let order = Order(id: 1, total: 5)

    // snippet.overview
    let pool = try DatabasePool(path: path)
    let users = try await GRDBStore<User>(in: pool, name: "users")
    try await users.setValue(User(name: "Ada"), forKey: "user:7")
    // snippet.end

    let outbox = try await GRDBStore<OrderPlaced>(in: pool, name: "outbox")
    // snippet.transactions-of-the-application
    try await pool.write { db in
      try order.insert(db)
      try users.update("user:7", in: db) { $0?.orderCount += 1 }
      try outbox.setValue(OrderPlaced(order: order.id), forKey: StoreKey(integer: order.id), in: db)
    }
    // snippet.end
    #expect(try await users.value(forKey: "user:7")?.orderCount == 1)
    #expect(try await outbox.count(in: .all) == 1)

    // snippet.observation
    let observation = ValueObservation.tracking { db in try users.value(forKey: "user:7", in: db) }
    for try await user in observation.values(in: pool) {
      print(user?.name ?? "no user")
      break
    }
    // snippet.end

    try await durable(pool)
  }

  @Test func `the migration of the guide runs`() async throws {
    let file = try TestDatabase()
    let pool = try DatabasePool(path: file.path)

    // snippet.migrations
    var migrator = DatabaseMigrator()
    #if DEBUG
    migrator.eraseDatabaseOnSchemaChange = true
    #endif
    migrator.registerMigration("v1") { db in
      try db.create(table: "orders") { table in
        table.primaryKey("id", .integer)
        table.column("total", .integer).notNull()
      }
      try GRDBStore<User>.create(named: "users", in: db)
    }
    try migrator.migrate(pool)
    let users = try await GRDBStore<User>(in: pool, name: "users")
    // snippet.end

    try await users.setValue(User(name: "Ada"), forKey: "user:7")
    try migrator.migrate(pool)
    #expect(try await users.count() == 1)
  }

  private func durable(_ pool: DatabasePool) async throws {
    // snippet.durability-and-locks
    try await pool.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON")
    }
    let users = try await GRDBStore<User>(in: pool, name: "users", requiresSynced: true)
    // snippet.end
    #expect(users.information.durability == .synced)
  }

  @Test func `the code is in the tests or the example`() throws {
    let repository = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..")
    func text(_ path: String) throws -> String {
      try String(contentsOf: repository.appending(path: path), encoding: .utf8)
        .split(separator: "\n", omittingEmptySubsequences: false).map { $0.trimmingCharacters(in: .whitespaces) }
        .filter { !$0.hasPrefix("///") }.joined(separator: "\n")
    }
    let code = try text("Examples/Tests/LarderGRDBTests/GuideTests.swift") + text("Examples/Orders/OrderBook.swift")
    let guide = try text("Modules/Stores/LarderGRDB/LarderGRDB.docc/UsingGRDBStore.md")
    let pieces = guide.components(separatedBy: "```swift\n").dropFirst().map { $0.components(separatedBy: "```")[0] }
    #expect(pieces.count == 6)
    for piece in pieces { #expect(code.contains(piece), "\(piece)") }
  }
}
