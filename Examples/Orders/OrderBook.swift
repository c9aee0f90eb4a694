import GRDB
import Larder
import LarderGRDB
import LarderQueue

/// An order, a row of the shop's own table.
struct Order: Codable, Sendable, FetchableRecord, MutablePersistableRecord {
  static let databaseTableName = "orders"

  var id: Int64?
  var item: String
  var count: Int

  mutating func didInsert(_ inserted: InsertionSuccess) {
    id = inserted.rowID
  }
}

/// The event of a new order, which other systems receive.
struct OrderPlaced: Codable, Sendable, Equatable {
  var order: Int64
  var item: String
  var count: Int
}

/// Why an order is refused.
struct OutOfStock: Error, Equatable, CustomStringConvertible {
  var item: String
  var left: Int

  var description: String { "only \(left) of \(item) left" }
}

/// The orders of a shop: rows in its own table, and beside them two stores in the same database.
///
/// An order, the stock that it takes and the event that it causes are one transaction.
struct OrderBook: Sendable {
  let pool: DatabasePool

  /// The number of pieces of each item.
  let stock: GRDBStore<Int>

  /// The events that no queue has yet, by the numbers of their orders.
  let outbox: GRDBStore<OrderPlaced>

  /// Opens the database of the shop, or creates it.
  init(path: String) async throws {
    var configuration = Configuration()
    // GRDB's default is to fail immediately if another process writes.
    configuration.busyMode = .timeout(5)
    pool = try DatabasePool(path: path, configuration: configuration)
    // A pool sets NORMAL, with which power loss may discard the latest orders.
    try await pool.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON")
    }
    var migrator = DatabaseMigrator()
    migrator.registerMigration("orders") { db in
      try db.create(table: Order.databaseTableName) { table in
        table.autoIncrementedPrimaryKey("id")
        table.column("item", .text).notNull()
        table.column("count", .integer).notNull()
      }
    }
    migrator.registerMigration("stores") { db in
      try GRDBStore<Int>.create(named: "stock", in: db)
      try GRDBStore<OrderPlaced>.create(named: "outbox", codec: .json(), in: db)
    }
    try migrator.migrate(pool)
    stock = try await GRDBStore(in: pool, name: "stock", requiresSynced: true)
    outbox = try await GRDBStore(in: pool, name: "outbox", codec: .json(), requiresSynced: true)
  }

  /// Places an order.
  ///
  /// - Returns: The number of the order.
  /// - Throws: `OutOfStock`, with nothing changed.
  func place(_ item: String, count: Int) async throws -> Int64 {
    try await pool.write { db in
      try stock.update(StoreKey(item), in: db) { left in
        guard let available = left, available >= count else { throw OutOfStock(item: item, left: left ?? 0) }
        left = available - count
      }
      var order = Order(item: item, count: count)
      try order.insert(db)
      let id = order.id ?? db.lastInsertedRowID
      try outbox.setValue(OrderPlaced(order: id, item: item, count: count), forKey: StoreKey(integer: id), in: db)
      return id
    }
  }

  /// Moves the events of the outbox into a queue.
  ///
  /// An event is in the queue before it leaves the outbox. If the process dies between the two, the next call finds the
  /// event in both, and the queue ignores an item whose id it has, or has had within its `duplicateWindow`.
  ///
  /// - Returns: The number of events.
  // snippet.an-outbox
  func forward(to queue: QueueStore<OrderPlaced>) async throws -> Int {
    var count = 0
    while true {
      let events = try await outbox.entries(in: .all, limit: 100, order: .ascending)
      guard !events.isEmpty else { return count }
      _ = try await queue.enqueue(events.map { QueueInput($0.value, id: $0.key) })
      try await outbox.apply(ChangeBatch(events.map { .remove($0.key) }))
      count += events.count
    }
  }
  // snippet.end

  /// Closes the stores and the database.
  func close() async throws {
    try await stock.close()
    try await outbox.close()
    try pool.close()
  }
}
