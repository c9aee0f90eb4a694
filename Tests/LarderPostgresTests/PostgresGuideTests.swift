#if Postgres
import Foundation
import Larder
import LarderPostgres
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Stores/LarderPostgres/LarderPostgres.docc/UsingPostgresStore.md`.
///
/// `Scripts/guide-code` writes it into the guide. The address of the server stands for that of the test.
@Suite struct PostgresGuideTests {
  struct User: Codable, Equatable {
    var name: String
  }

  struct Order: Codable, Equatable {
    var item: String
  }

  /// Opens the database of a guide's address in the schema of a test.
  private func PostgresDatabase(
    _ address: String, onConnectionEvent: @escaping @Sendable (PostgresConnectionEvent) -> Void = { _ in }
  ) async throws -> LarderPostgres.PostgresDatabase {
    #expect(address == "host=db.example dbname=app")
    let server = try await PostgresServer.shared
    return try await LarderPostgres.PostgresDatabase(
      server.connectionString, schema: server.newSchema(), onConnectionEvent: onConnectionEvent)
  }

  @Test func `a store alone`() async throws {
    // snippet.overview
    let database = try await PostgresDatabase("host=db.example dbname=app")
    let users = try await PostgresStore<User>(in: database, name: "users")
    try await users.setValue(User(name: "Ada"), forKey: "user:1")
    let user = try await users.value(forKey: "user:1")
    await database.close()
    // snippet.end
    #expect(user == User(name: "Ada"))
  }

  @Test func `changes of other hosts`() async throws {
    let database = try await PostgresDatabase("host=db.example dbname=app")
    func show(_ price: Int?) { #expect(price == nil) }
    let following = Task {
      // snippet.changes-of-other-hosts
      let prices = try await PostgresStore<Int>(in: database, name: "prices", reportsChanges: true)
      for try await price in prices.updates(forKey: "lamp") { show(price) }  // now, and after each change of any host
      // snippet.end
    }
    await database.close()
    // It ends with the database, before or after the store was opened.
    _ = await following.result
  }

  @Test func transactions() async throws {
    try await Setting.run { setting in
      try await setting.psql("CREATE TABLE stock(item text, pieces int); INSERT INTO stock VALUES('lamp', 5)")
      let database = setting.database
      // snippet.transactions-3
      let orders = try await PostgresStore<Order>(in: database, name: "orders", codec: .json())
      try await database.write { transaction in
        try await transaction.setValue(Order(item: "lamp"), forKey: "7/1", in: orders)
        try await transaction.execute("UPDATE stock SET pieces = pieces - 1 WHERE item = $1", ["lamp"])
      }
      // snippet.end
      #expect(try await setting.psql("SELECT pieces FROM stock") == "4")

      let counters = try await PostgresStore<Int>(in: database, name: "counters")
      // snippet.transactions-2
      let pieces = try await database.write { transaction in
        try await transaction.update(["lamp"], in: counters) { values in
          values[0] = (values[0] ?? 0) + 1
          return values[0]
        }
      }
      // snippet.end
      #expect(pieces == 1)

      // snippet.the-connection-2
      let connections = database.statistics()
      print("\(connections.busy) of \(connections.connected) are busy, \(connections.waiting) calls wait")
      // snippet.end
      #expect(connections.waiting == 0)

      // snippet.the-connection
      let logged = try await PostgresDatabase("host=db.example dbname=app") { event in
        print("\(event)")
      }
      // snippet.end
      await logged.close()

      // snippet.transactions
      let (count, first) = try await database.read { transaction in
        (try await transaction.count(of: orders), try await transaction.entries(limit: 1, of: orders).first?.value)
      }
      // snippet.end
      #expect(count == 1)
      #expect(first == Order(item: "lamp"))
      #expect(try await setting.psql("SELECT value->>'item' FROM orders") == "lamp")
    }
  }
}
#endif
