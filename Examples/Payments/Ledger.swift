import Larder
import LarderPostgres

/// A payment that is to be booked.
struct Payment: Codable, Sendable, Equatable {
  var account: String
  var cents: Int
}

/// The steps of a worker, at which it may die.
enum Step: String, CaseIterable, Sendable {
  /// It has not received a payment yet.
  case waiting
  case received
  /// The booking and the balance are written, but not committed.
  case written
  /// The payment is acknowledged, but not committed.
  case acknowledged
  case committed
}

/// The accounts of a bank in a PostgreSQL database: a table of bookings, a store of balances, and a queue of payments.
///
/// A worker writes the booking and the balance, and acknowledges the payment, in one transaction. So each payment is booked
/// exactly once, whenever a worker dies.
struct Ledger: Sendable {
  let database: PostgresDatabase

  /// The payments that are not booked yet.
  let payments: PostgresQueue<Payment>

  /// The balances in cents, by the names of accounts.
  let balances: PostgresStore<Int>

  /// Opens the ledger, or creates it.
  init(_ connection: String, schema: String) async throws {
    database = try await PostgresDatabase(connection, schema: schema)
    payments = try await PostgresQueue(in: database, name: "payments", codec: .json())
    balances = try await PostgresStore(in: database, name: "balances", codec: .json())
    try await database.write { transaction in
      try await transaction.execute(
        """
        CREATE TABLE IF NOT EXISTS bookings(
          id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, account text NOT NULL, cents bigint NOT NULL)
        """)
    }
  }

  /// Hands a payment to the workers, once for each id.
  ///
  /// - Returns: A Boolean value that indicates whether it is new.
  func pay(_ payment: Payment, id: StoreKey) async throws -> Bool {
    try await !payments.enqueue(payment, id: id).isDuplicate
  }

  /// Books payments until the task is cancelled or the ledger is closed.
  ///
  /// If a payment cannot be booked, the error ends the worker, and the payment is delivered again when its lease ends.
  ///
  /// - Parameters:
  ///   - lease: The time after which another worker takes over the payment of one that has died.
  ///   - reach: A closure that is called at each step.
  func work(lease: Duration, _ reach: @escaping @Sendable (Step) async throws -> Void = { _ in }) async throws {
    try await reach(.waiting)
    for try await result in payments.deliveries(lease: lease) {
      try await reach(.received)
      // A payment that cannot be decoded becomes a dead letter.
      if case .success(let delivery) = result { try await book(delivery, reach) }
      try await reach(.committed)
    }
  }

  private func book(
    _ delivery: QueueDelivery<Payment>, _ reach: @escaping @Sendable (Step) async throws -> Void
  ) async throws {
    let payment = delivery.value
    do {
      try await database.write { transaction in
        try await transaction.execute(
          "INSERT INTO bookings(account, cents) VALUES($1, $2)", [payment.account, "\(payment.cents)"])
        try await transaction.update([StoreKey(payment.account)], in: balances) { values in
          values[0] = (values[0] ?? 0) + payment.cents
        }
        try await reach(.written)
        try await transaction.acknowledge(delivery.receipt, in: payments)
        try await reach(.acknowledged)
      }
    } catch StoreError.Code.staleReceipt {
      // The lease has ended, so another worker books the payment. Nothing was changed here.
    }
  }

  /// Closes the database with its store and its queue.
  func close() async {
    await database.close()
  }
}
