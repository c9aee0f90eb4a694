import AsyncHTTPClient
import Foundation
import Larder
import LarderSQLite
import NIOCore
import NIOHTTP1
import Testing

@testable import Shop

/// The answers of the shop to single requests.
@Suite("The routes of the shop", .timeLimit(.minutes(5)))
final class RouteTests: Sendable {
  private let folder = FileManager.default.temporaryDirectory.appending(path: "larder-shop-\(UUID().uuidString)").path

  deinit {
    // The folder of a test is of no use afterward.
    try? FileManager.default.removeItem(atPath: folder)
  }

  private var url: String { "sqlite:\(folder)/shop.sqlite" }

  private func withShop(_ body: (_ address: String) async throws -> Void) async throws {
    let instance = try ShopInstance(folder: folder, variables: ["STORES_SHOP_URL": url, "LIMITS_ORDERS_RATE": "3"])
    try await instance.start()
    do {
      try await body(instance.address)
    } catch {
      try instance.signal(SIGKILL)
      throw error
    }
    try await instance.end()
  }

  private struct Answer {
    let status: UInt
    let headers: HTTPHeaders
    let text: String
  }

  private func send(
    _ method: HTTPMethod, _ url: String, _ headers: HTTPHeaders = [:], _ body: String? = nil
  ) async throws -> Answer {
    var request = HTTPClientRequest(url: "http://\(url)")
    (request.method, request.headers) = (method, headers)
    request.headers.add(name: "Content-Type", value: "application/json")
    if let body { request.body = .bytes(Array(body.utf8)) }
    let response = try await HTTPClient.shared.execute(request, timeout: .seconds(30))
    let bytes = try await response.body.collect(upTo: 1 << 20)
    return Answer(status: response.status.code, headers: response.headers, text: String(buffer: bytes))
  }

  @Test func `requests without a session or a key are refused`() async throws {
    try await withShop { address in
      for cookie in ["", "session=", "session=x", "session=" + String(repeating: "x", count: 600)] {
        #expect(try await send(.GET, "\(address)/me", ["Cookie": cookie]).status == 401)
        #expect(try await send(.POST, "\(address)/orders", ["Cookie": cookie], #"{"item":"tea"}"#).status == 401)
      }
      #expect(try await send(.POST, "\(address)/login", [:], #"{"user":""}"#).status == 400)
      #expect(try await send(.GET, "\(address)/products/..").status == 400)
      let login = try await send(.POST, "\(address)/login", [:], #"{"user":"Ada"}"#)
      let cookie = login.headers.first(name: "Set-Cookie") ?? ""
      #expect(try await send(.POST, "\(address)/orders", ["Cookie": cookie], #"{"item":"tea"}"#).status == 400)
    }
  }

  @Test func `orders are limited and a key belongs to one order`() async throws {
    try await withShop { address in
      let login = try await send(.POST, "\(address)/login", [:], #"{"user":"Ada"}"#)
      let headers: HTTPHeaders = ["Cookie": login.headers.first(name: "Set-Cookie") ?? "", "Idempotency-Key": "k"]
      #expect(try await send(.POST, "\(address)/orders", headers, #"{"item":"tea"}"#).status == 200)
      #expect(try await send(.POST, "\(address)/orders", headers, #"{"item":"milk"}"#).status == 422)
      let statuses = try await withThrowingTaskGroup(of: UInt.self) { group in
        for _ in 0..<20 {
          group.addTask { try await self.send(.POST, "\(address)/orders", headers, #"{"item":"tea"}"#).status }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(Set(statuses).isSubset(of: [200, 429]))
      #expect(statuses.contains(429))
      let orders = try JSONDecoder().decode(
        [Order].self, from: Data(try await send(.GET, "\(address)/orders", headers).text.utf8))
      #expect(orders == [Order(number: 1, user: "Ada", item: "tea")])
    }
  }

  /// Sends orders, each with a key of its own, and returns the number of those that are refused by the limit.
  private func refused(of count: Int, _ address: String, _ cookie: String, _ name: String) async throws -> Int {
    var refused = 0
    for number in 1...count {
      let headers: HTTPHeaders = ["Cookie": cookie, "Idempotency-Key": "\(name)-\(number)"]
      let answer = try await send(.POST, "\(address)/orders", headers, #"{"item":"tea"}"#)
      if answer.status == 429 { refused += 1 } else { #expect(answer.status == 200, "\(answer.text)") }
    }
    return refused
  }

  /// An operator changes the setting in another process, here with another store over the file.
  @Test func `a limit changes while the shop runs`() async throws {
    try await withShop { address in
      let login = try await send(.POST, "\(address)/login", [:], #"{"user":"Ada"}"#)
      let cookie = login.headers.first(name: "Set-Cookie") ?? ""
      #expect(try await send(.GET, "\(address)/me", ["Cookie": cookie]).status == 200)
      // Two at a time, or a slow disk makes them fewer than the limit.
      async let others = refused(of: 20, address, cookie, "a")
      #expect(try await refused(of: 20, address, cookie, "c") + others > 0)
      let bytes = try await SQLiteStore(path: "\(folder)/shop.sqlite", codec: .raw)
      let settings = bytes.typed(JSONText.self, prefix: "settings/", codec: .jsonText)
      try await settings.setValue(JSONText("100000"), forKey: "limits.orders.rate")
      // The policy in the response shows when the instance has seen the change.
      let end = ContinuousClock.now + .seconds(300)
      var (policy, number) = ("", 0)
      while ContinuousClock.now < end, !policy.contains("q=100000;") {
        number += 1
        let headers: HTTPHeaders = ["Cookie": cookie, "Idempotency-Key": "p-\(number)"]
        let answer = try await send(.POST, "\(address)/orders", headers, #"{"item":"tea"}"#)
        policy = answer.headers.first(name: "RateLimit-Policy") ?? ""
      }
      #expect(policy.contains("q=100000;"))
      #expect(try await refused(of: 20, address, cookie, "b") == 0)
      try await settings.removeValue(forKey: "limits.orders.rate")
      try await bytes.close()
    }
  }

  @Test func `sizes are limited`() async throws {
    try await withShop { address in
      let login = try await send(.POST, "\(address)/login", [:], #"{"user":"Ada"}"#)
      let headers: HTTPHeaders = ["Cookie": login.headers.first(name: "Set-Cookie") ?? "", "Idempotency-Key": "k"]
      for (item, status) in [
        ("", 400), (String(repeating: "x", count: 201), 400), (String(repeating: "x", count: 5000), 413),
      ] {
        #expect(try await send(.POST, "\(address)/orders", headers, #"{"item":"\#(item)"}"#).status == status)
      }
      let name = String(repeating: "x", count: 5000)
      #expect(try await send(.POST, "\(address)/login", [:], #"{"user":"\#(name)"}"#).status == 413)
    }
  }

  @Test func `a product comes from the cache the second time`() async throws {
    try await withShop { address in
      let first = try await send(.GET, "\(address)/products/3")
      #expect(first.text == #"{"id":3,"name":"Tea 3"}"#)
      #expect(first.headers.first(name: "Cache-Status")?.contains("fwd=uri-miss") == true)
      let second = try await send(.GET, "\(address)/products/3")
      #expect(second.text == first.text)
      #expect(second.headers.first(name: "Cache-Status")?.contains("hit") == true)
    }
  }

  /// Returns the values of a text for Prometheus, by their names with labels.
  private func samples(of text: String) -> [Substring: Double] {
    let lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { $0.split(separator: " ") }
    return Dictionary(lines.map { ($0[0], Double($0[1]) ?? -1) }) { $1 }
  }

  @Test func `the metrics are text for Prometheus`() async throws {
    try await withShop { address in
      for path in ["health", "health/ready", "health/live"] {
        #expect(try await send(.GET, "\(address)/\(path)").status == 200)
      }
      _ = try await send(.POST, "\(address)/login", [:], #"{"user":"a secret name"}"#)
      let text = try await send(.GET, "\(address)/metrics").text
      let sample = #/[a-z_]+\{([a-z]+="[A-Za-z0-9.]+",?)+\} -?[0-9.e-]+/#
      for line in text.split(separator: "\n") {
        #expect(line.hasPrefix("# HELP ") || line.hasPrefix("# TYPE ") || line.wholeMatch(of: sample) != nil, "\(line)")
      }
      #expect(text.contains(#"larder_operation_duration_seconds_count{store="shop",operation="update"}"#))
      #expect(!text.contains("secret"))
      // Counters and sums do not decrease, and what was there once stays.
      _ = try await send(.GET, "\(address)/products/1")
      let (before, after) = (samples(of: text), samples(of: try await send(.GET, "\(address)/metrics").text))
      #expect(!before.isEmpty)
      for (name, value) in before where name.contains("_total{") || name.contains("_sum{") || name.contains("_count{") {
        #expect(after[name, default: -1] >= value, "\(name)")
      }
    }
  }
}
