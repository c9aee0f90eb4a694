import AsyncHTTPClient
import Foundation
import Larder
import NIOCore
import NIOHTTP1

@testable import Shop

/// A user who orders until told to stop, and repeats each request with the same key until it is answered.
struct ShopUser: Sendable {
  let name: String

  /// The address of the instance, or of the proxy of several ones.
  let address: String

  /// Orders until the closure returns `true`.
  ///
  /// - Returns: The orders that were answered, by their keys.
  /// - Throws: ``ShopFailure`` if an answer is wrong.
  func order(until isOver: @Sendable () -> Bool) async throws -> [String: Order] {
    var cookie: String?
    while cookie == nil {
      let login = try await request(.POST, "/login", body: try JSONEncoder().encode(Session(user: name)))
      cookie = login.cookie
    }
    let session = HTTPHeaders([("Cookie", cookie ?? "")])
    var orders: [String: Order] = [:]
    while !isOver() || orders.isEmpty {
      let key = "\(name)-\(orders.count)"
      let item = "item \(orders.count) of \(name)"
      var headers = session
      headers.add(name: "Idempotency-Key", value: key)
      let body = try JSONEncoder().encode(OrderRequest(item: item))
      let order = try await decoded(Order.self, request(.POST, "/orders", headers, body: body))
      guard order.user == name, order.item == item else { throw ShopFailure("\(key) got the order \(order)") }
      if orders.count % 3 == 0 {
        // The client behaves as if it had not got the answer.
        let again = try await decoded(Order.self, request(.POST, "/orders", headers, body: body))
        guard again == order else { throw ShopFailure("\(key) got \(order), and then \(again)") }
        let me = try await decoded(Session.self, request(.GET, "/me", session))
        guard me.user == name else { throw ShopFailure("\(name) has the session of \(me.user)") }
        let list = try await decoded([Order].self, request(.GET, "/orders", session))
        guard list.allSatisfy({ $0.user == name }) else { throw ShopFailure("\(name) sees the orders of others") }
        _ = try await request(.GET, "/products/\(orders.count % 5)")
      }
      orders[key] = order
    }
    return orders
  }

  private func decoded<Value: Decodable>(_ type: Value.Type, _ answer: Answer) throws -> Value {
    try JSONDecoder().decode(type, from: answer.body)
  }

  struct Answer {
    let body: Data
    let cookie: String?
  }

  /// Sends a request until an instance answers it with success.
  ///
  /// - Throws: ``ShopFailure`` if it is refused.
  private func request(
    _ method: HTTPMethod, _ path: String, _ headers: HTTPHeaders = [:], body: Data? = nil
  ) async throws -> Answer {
    let end = ContinuousClock.now + .seconds(120)
    var problem = "no answer"
    while ContinuousClock.now < end {
      var request = HTTPClientRequest(url: "http://\(address)\(path)")
      (request.method, request.headers) = (method, headers)
      request.headers.add(name: "Content-Type", value: "application/json")
      if let body { request.body = .bytes(Array(body)) }
      do {
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(5))
        let body = Data((try await response.body.collect(upTo: 1 << 24)).readableBytesView)
        switch response.status.code {
        case 200..<300:
          let cookie = response.headers.first(name: "Set-Cookie")?.split(separator: ";").first.map(String.init)
          return Answer(body: body, cookie: cookie)
        case 400..<500:
          throw ShopFailure(
            "\(name): \(method) \(path) was refused: \(response.status) \(String(decoding: body, as: UTF8.self))")
        default: problem = "\(response.status)"
        }
      } catch let failure as ShopFailure {
        throw failure
      } catch {
        // The instance is dead or frozen.
        problem = "\(error)"
      }
      try await Task.sleep(for: .milliseconds(20))
    }
    throw ShopFailure("\(name): \(method) \(path) was not answered: \(problem)")
  }
}
