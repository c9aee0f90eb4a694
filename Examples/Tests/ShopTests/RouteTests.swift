import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Testing

@testable import Shop

/// The answers of the shop to single requests.
@Suite("The routes of the shop", .timeLimit(.minutes(2)))
final class RouteTests: Sendable {
  private let folder = FileManager.default.temporaryDirectory.appending(path: "larder-shop-\(UUID().uuidString)").path

  deinit {
    // The folder of a test is of no use afterward.
    try? FileManager.default.removeItem(atPath: folder)
  }

  private func withShop(_ body: (_ address: String) async throws -> Void) async throws {
    let instance = try ShopInstance(
      folder: folder, arguments: ["--store", "sqlite:\(folder)/shop.sqlite", "--limit", "3"])
    try await instance.start()
    defer { instance.signal(SIGKILL) }
    try await body(instance.address)
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

  @Test func requestsWithoutASessionOrAKeyAreRefused() async throws {
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

  @Test func ordersAreLimitedAndAKeyBelongsToOneOrder() async throws {
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

  @Test func aProductComesFromTheCacheTheSecondTime() async throws {
    try await withShop { address in
      let first = try await send(.GET, "\(address)/products/3")
      #expect(first.text == #"{"id":3,"name":"Tea 3"}"#)
      #expect(first.headers.first(name: "Cache-Status")?.contains("fwd=uri-miss") == true)
      let second = try await send(.GET, "\(address)/products/3")
      #expect(second.text == first.text)
      #expect(second.headers.first(name: "Cache-Status")?.contains("hit") == true)
    }
  }

  @Test func theMetricsAreTextForPrometheus() async throws {
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
    }
  }
}
