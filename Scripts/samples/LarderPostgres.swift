import LarderCBOR

struct Mail: Codable, Sendable {
  var text = ""
}

struct LeaseLost: Error {}

var database: PostgresDatabase { standIn() }
var customers: PostgresStore<Customer> { standIn() }
var orders: PostgresStore<Order> { standIn() }
var events: PostgresQueue<Event> { standIn() }
var outbox: PostgresQueue<Mail> { standIn() }
var delivery: QueueDelivery<Mail> { standIn() }
var deliveries: [QueueDelivery<Mail>] { standIn() }

extension PostgresDatabase_ClockSamples {
  static var store: AnyDataStore<[UInt8]> { standIn() }
  static var limits: LimiterConfiguration { standIn() }
}

extension PostgresQueue_EnqueuingSamples {
  static var outbox: PostgresQueue<OrderPlaced> { standIn() }
}

extension PostgresTransactionSamples {
  static var transaction: PostgresTransaction { standIn() }
}
