import AsyncHTTPClient
import Foundation
import Hummingbird
import Larder
import LarderCoordination
import LarderHTTPCache
import LarderHTTPClient
import LarderHummingbird
import LarderStoreQueue
import LarderWorker

/// An order of a user, whose number no other order has.
struct Order: ResponseCodable, Sendable, Equatable {
  var number: Int
  var user: String
  var item: String
}

/// The order that a client sends.
struct OrderRequest: Codable, Sendable {
  var item: String
}

/// A session of a user.
struct Session: ResponseCodable, Sendable {
  var user: String
}

/// The confirmation of an order, which the worker sends.
struct Mail: Codable, Sendable {
  var user: String
  var text: String
}

/// The data of the shop, which are parts of one store.
struct Shop: Sendable {
  typealias Bytes = ShopStore.Bytes

  let bytes: Bytes

  /// The sessions.
  let persist: StorePersistDriver

  /// The orders of each user, and the logins from each address, in a second.
  let limits: ShopLimits

  /// The requests for orders, each with its order.
  let requests: IdempotencyKeys<Order>

  /// The number of the last order.
  let numbers: TypedView<Bytes, Int>

  /// The orders, by user and number.
  let orders: TypedView<Bytes, Order>

  /// The orders that are not confirmed yet.
  let outbox: StoreQueue<Bytes, Order>

  /// The mails that were sent, by the number of the order.
  let mails: TypedView<Bytes, Mail>

  /// A client that caches the responses of the upstream server in the store.
  let http: CachedHTTPClient

  /// The settings of the worker that confirms orders.
  private let mailWorker: LayerSettings

  /// Creates the parts in an open store.
  init(_ bytes: Bytes, of store: ShopStore) async throws {
    self.bytes = bytes
    mailWorker = store.settings.mailWorker
    persist = try StorePersistDriver(bytes, prefix: "persist/")
    limits = try await ShopLimits(bytes, of: store)
    requests = try Self.requests(in: bytes)
    numbers = bytes.typed(Int.self, prefix: "numbers/", codec: .json())
    orders = bytes.typed(Order.self, prefix: "orders/", codec: .json())
    outbox = try await bytes.queue(of: Order.self, prefix: "outbox/", codec: .json())
    mails = bytes.typed(Mail.self, prefix: "mails/", codec: .json())
    http = CachedHTTPClient(cache: try await HTTPCache(bytes, configuration: .shared))
  }

  /// Returns the requests for orders.
  static func requests(in bytes: Bytes) throws -> IdempotencyKeys<Order> {
    try IdempotencyKeys(bytes, prefix: "requests/", codec: .json(Order.self))
  }

  // MARK: Orders

  /// Takes an order once for each key of a user, in one commit with its number, its place in the outbox and its request.
  func order(_ request: OrderRequest, user: String, key: String) async throws -> Order {
    try await bytes.transaction { tx in
      .commit(
        try await tx.perform(StoreKey(components: user, key), fingerprint: request.item.utf8, with: requests) {
          let number = try await tx.update("order", in: numbers) { number in
            number = (number ?? 0) + 1
            return number ?? 0
          }
          let order = Order(number: number, user: user, item: request.item)
          try await tx.setValue(order, forKey: StoreKey(components: user, number), in: orders)
          try await tx.enqueue(order, in: outbox)
          return order
        })
    }
  }

  /// Returns the orders of a user.
  func orders(of user: String) async throws -> [Order] {
    try await orders.entries(in: .prefix(components: user), limit: 1000, order: .ascending).map(\.value)
  }

  /// Creates the worker that confirms orders.
  ///
  /// An order whose worker dies is delivered again. A mail has the number of its order, so that it is sent once.
  func makeWorker() -> QueueWorker {
    QueueWorker(
      [
        QueueHandler(outbox, batch: 20, lease: mailWorker.duration("lease") ?? .seconds(10)) { deliveries in
          for order in deliveries.map(\.value) {
            let mail = Mail(user: order.user, text: "Order \(order.number): \(order.item)")
            try await mails.insertValue(mail, forKey: StoreKey(integer: order.number))
          }
        }
      ], settings: mailWorker)
  }

  // MARK: Sessions

  /// Begins a session of a user, and returns its id.
  func logIn(_ user: String) async throws -> String {
    while true {
      let id = (0..<4).map { _ in String(UInt64.random(in: 0 ... .max), radix: 36) }.joined(separator: "-")
      do {
        try await persist.create(key: "session/\(id)", value: Session(user: user), expires: .seconds(3600))
        return id
      } catch let error as PersistError where error == .duplicate {
        continue
      }
    }
  }
}
