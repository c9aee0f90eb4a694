#if SQLite
import Foundation
import Larder
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Stores/LarderSQLite/LarderSQLite.docc/UsingSQLiteStore.md`.
///
/// `Scripts/guide-code` writes it into the guide.
@Suite(.timeLimit(.minutes(60))) struct SQLiteGuideTests {
  struct User: Codable, Equatable {
    var name: String
  }

  struct Customer: Codable {
    var name: String
    var orderCount = 0
  }

  struct Order: Codable {
    var item: String
  }

  struct NoSuchCustomer: Error {}

  @Test func `a store alone`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    // snippet.overview
    let users = try await SQLiteStore<User>(path: folder + "/users.sqlite")
    try await users.setValue(User(name: "Ada"), forKey: "user:1")
    let user = try users.value(forKey: "user:1")
    try await users.close()
    // snippet.end
    #expect(user == User(name: "Ada"))
    try location.remove()
  }

  @Test func connections() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    // snippet.databases-of-an-application
    let database = try await SQLiteDatabase(path: folder + "/notes.sqlite") { setup in
      try setup.run("PRAGMA cache_size = -8000")
    }
    // snippet.end
    #expect(try await database.storeNames() == [])
    try await database.close()
    try location.remove()
  }

  @Test func transactions() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    // snippet.databases-and-transactions-3
    let database = try await SQLiteDatabase(path: folder + "/shop.sqlite")
    let customers = try await SQLiteStore(in: database, name: "customers", codec: .json(Customer.self))
    let orders = try await SQLiteStore<Order>(in: database, name: "orders", layout: .clustered)
    // snippet.end
    try await customers.setValue(Customer(name: "Ada"), forKey: "7")
    // snippet.databases-and-transactions-2
    let orderCount = try await database.write { transaction in
      guard var customer = try transaction.value(forKey: "7", in: customers) else { throw NoSuchCustomer() }
      customer.orderCount += 1
      try transaction.setValue(customer, forKey: "7", in: customers)
      try transaction.setValue(Order(item: "lamp"), forKey: "7/\(customer.orderCount)", in: orders)
      return customer.orderCount
    }
    // snippet.end
    // snippet.databases-and-transactions
    let (name, ordersOf7) = try database.read { transaction in
      (
        try transaction.value(forKey: "7", in: customers)?.name,
        try transaction.count(in: .prefix("7/"), of: orders)
      )
    }
    // snippet.end
    #expect(orderCount == 1 && name == "Ada" && ordersOf7 == 1)
    try await database.close()
    try location.remove()
  }
}
#endif
