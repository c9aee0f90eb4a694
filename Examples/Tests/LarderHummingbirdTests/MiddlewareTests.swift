import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Larder
import LarderCoordination
import LarderHummingbird
import LarderTesting
import NIOCore
import Testing

extension HTTPFields {
  /// The value of a field that has no constant.
  subscript(text name: String) -> String? {
    get { HTTPField.Name(name).flatMap { self[$0] } }
    set { if let name = HTTPField.Name(name) { self[name] = newValue } }
  }
}

@Suite("Rate limits", .timeLimit(.minutes(5)))
struct RateLimitMiddlewareTests {
  private let clock = ManualClock()

  private func application() throws -> some ApplicationProtocol {
    let limiter = try RateLimiter(
      MemoryStore<[UInt8]>(), prefix: "limits/", limit: RateLimit(2, per: .seconds(10), burst: 2), time: .manual(clock),
      clock: clock)
    let router = Router()
    router.add(middleware: RateLimitMiddleware(limiter, policy: "orders") { request, _ in request.headers[.from] })
    router.get("good") { _, _ in "good" }
    router.get("bad") { _, _ -> String in throw HTTPError(.notFound, message: "none") }
    router.get("fault") { _, _ -> String in throw StoreError(.ioFailed, during: .value, store: "s", message: "m") }
    return Application(router: router)
  }

  @Test func `requests above the limit are refused`() async throws {
    try await application().test(.router) { client in
      for remaining in [1, 0] {
        let response = try await client.execute(uri: "/good", method: .get, headers: [.from: "a"])
        #expect(response.status == .ok)
        #expect(response.headers[text: "RateLimit-Policy"] == #""orders";q=2;w=10"#)
        #expect(response.headers[text: "RateLimit"]?.hasPrefix(#""orders";r=\#(remaining);t="#) == true)
        #expect(response.headers[.retryAfter] == nil)
      }
      let refused = try await client.execute(uri: "/good", method: .get, headers: [.from: "a"])
      #expect(refused.status == .tooManyRequests)
      #expect(refused.headers[.retryAfter] == "5")
      #expect(refused.headers[text: "RateLimit"] == #""orders";r=0;t=10"#)
      #expect(try await client.execute(uri: "/good", method: .get, headers: [.from: "b"]).status == .ok)
      #expect(try await client.execute(uri: "/good", method: .get).headers[text: "RateLimit"] == nil)
      clock.advance(by: .seconds(5))
      #expect(try await client.execute(uri: "/good", method: .get, headers: [.from: "a"]).status == .ok)
    }
  }

  /// Other errors mean something to the middleware around the limiter, and to the server.
  @Test func `an error with a response has the fields and others pass unchanged`() async throws {
    try await application().test(.router) { client in
      let bad = try await client.execute(uri: "/bad", method: .get, headers: [.from: "a"])
      #expect(bad.status == .notFound)
      #expect(String(buffer: bad.body).contains("none"))
      #expect(bad.headers[text: "RateLimit"] != nil)
      let fault = try await client.execute(uri: "/fault", method: .get, headers: [.from: "a"])
      #expect(fault.status == .internalServerError)
      #expect(fault.headers[text: "RateLimit"] == nil)
    }
  }

  @Test func `a program can replace the limiter`() async throws {
    let (bytes, clock) = (MemoryStore<[UInt8]>(), clock)
    let count = Locked(1)
    let router = Router()
    router.add(
      middleware: RateLimitMiddleware(
        try RateLimiter(
          bytes, prefix: "limits/",
          limit: RateLimit(count.withLock { $0 }, per: .seconds(1), burst: count.withLock { $0 }), time: .manual(clock),
          clock: clock)
      ) { _, _ in "a" })
    router.get("good") { _, _ in "good" }
    try await Application(router: router).test(.router) { client in
      #expect(try await client.execute(uri: "/good", method: .get).status == .ok)
      #expect(try await client.execute(uri: "/good", method: .get).status == .tooManyRequests)
      count.withLock { $0 = 3 }
      clock.advance(by: .seconds(1))
      for _ in 1...3 {
        let response = try await client.execute(uri: "/good", method: .get)
        #expect(response.status == .ok)
        #expect(response.headers[text: "RateLimit-Policy"] == #""default";q=3;w=1"#)
      }
    }
  }

  @Test func `names of any length are keys`() async throws {
    try await application().test(.router) { client in
      let (long, other) = (String(repeating: "x", count: 5000), String(repeating: "x", count: 4999) + "y")
      for name in [long, long, other, "", " "] {
        #expect(try await client.execute(uri: "/good", method: .get, headers: [.from: name]).status == .ok)
      }
      let refused = try await client.execute(uri: "/good", method: .get, headers: [.from: long])
      #expect(refused.status == .tooManyRequests)
    }
  }
}

@Suite("Idempotency keys", .timeLimit(.minutes(5)))
final class IdempotencyMiddlewareTests: Sendable {
  private let bytes = MemoryStore<[UInt8]>()
  private let calls = Locked(0)

  private func keys(_ interruptions: InterruptionPolicy = .refuse) throws -> IdempotencyKeys<StoredHTTPResponse> {
    try IdempotencyKeys(
      bytes, prefix: "requests/", codec: .json(StoredHTTPResponse.self), interruptions: interruptions)
  }

  private func application(isRequired: Bool = false) throws -> some ApplicationProtocol {
    let router = Router()
    router.add(
      middleware: IdempotencyMiddleware(try keys(), isRequired: isRequired, maximumBodySize: 100) { request, _ in
        request.headers[.from]
      })
    @Sendable func count() -> Int {
      calls.withLock { calls in
        calls += 1
        return calls
      }
    }
    router.post("pay") { request, _ in
      let body = try await request.body.collect(upTo: 1000)
      let number = count()
      var response = Response(
        status: .created, headers: [.location: "/payments/\(number)", .from: "x"],
        body: ResponseBody(contentsOf: [ByteBuffer(string: "payment "), ByteBuffer(string: "\(number) of "), body]))
      response.headers.append(HTTPField(name: .from, value: "y"))
      return response
    }
    router.post("refuse") { _, _ -> Response in
      _ = count()
      throw HTTPError(.badRequest, message: "no")
    }
    router.post("fail") { _, _ in
      Response(status: .badGateway, body: ResponseBody(byteBuffer: ByteBuffer(string: "\(count())")))
    }
    router.post("large") { _, _ in
      Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(repeating: UInt8(count()), count: 101)))
    }
    router.get("list") { _, _ in "\(count())" }
    router.post("cookie") { _, _ in
      _ = count()
      return Response(status: .ok, headers: [.setCookie: "session=secret"])
    }
    router.post("conflict") { _, _ -> Response in
      _ = count()
      throw StoreError(.otherRequest, during: .update, store: "s", message: "of the handler")
    }
    return Application(router: router)
  }

  private static func fields(_ key: String, client: String = "ada") -> HTTPFields {
    var fields: HTTPFields = [.from: client]
    fields[text: "Idempotency-Key"] = key
    return fields
  }

  @Test func `a repetition gets the response of the first`() async throws {
    try await application().test(.router) { client in
      var bodies: [String] = []
      for key in ["\"k1\"", "k1", "\"k1\""] {
        let response = try await client.execute(
          uri: "/pay", method: .post, headers: Self.fields(key), body: ByteBuffer(string: "5"))
        #expect(response.status == .created)
        #expect(response.headers[.location] == "/payments/1")
        #expect(response.headers[values: .from] == ["x", "y"])
        bodies.append(String(buffer: response.body))
      }
      #expect(bodies == Array(repeating: "payment 1 of 5", count: 3))
      let other = try await client.execute(
        uri: "/pay", method: .post, headers: Self.fields("k2"), body: ByteBuffer(string: "5"))
      #expect(String(buffer: other.body) == "payment 2 of 5")
    }
  }

  @Test func `a cookie is not stored`() async throws {
    try await application().test(.router) { client in
      let first = try await client.execute(uri: "/cookie", method: .post, headers: Self.fields("k"))
      #expect(first.headers[.setCookie] == "session=secret")
      let second = try await client.execute(uri: "/cookie", method: .post, headers: Self.fields("k"))
      #expect(second.status == .ok)
      #expect(second.headers[.setCookie] == nil)
    }
    #expect(calls.withLock { $0 } == 1)
  }

  @Test func `a request without a user is refused`() async throws {
    var fields = Self.fields("k")
    fields[.from] = nil
    try await application().test(.router) { [fields] client in
      let response = try await client.execute(uri: "/pay", method: .post, headers: fields)
      #expect(response.status == .unauthorized)
    }
    #expect(calls.withLock { $0 } == 0)
  }

  /// The codes of the middleware are not those of a handler.
  @Test func `an error of the handler is its own`() async throws {
    try await application().test(.router) { client in
      for _ in 1...2 {
        let response = try await client.execute(uri: "/conflict", method: .post, headers: Self.fields("k"))
        #expect(response.status == .internalServerError)
      }
    }
    #expect(calls.withLock { $0 } == 2)
  }

  @Test func `repetitions at the same time run once`() async throws {
    try await application().test(.router) { client in
      let bodies = try await withThrowingTaskGroup(of: String.self) { group in
        for _ in 0..<10 {
          group.addTask {
            let response = try await client.execute(
              uri: "/pay", method: .post, headers: Self.fields("k"), body: ByteBuffer(string: "5"))
            return String(buffer: response.body)
          }
        }
        return try await group.reduce(into: Set<String>()) { $0.insert($1) }
      }
      #expect(bodies == ["payment 1 of 5"])
    }
  }

  @Test func `no user gets the response of another`() async throws {
    try await application().test(.router) { client in
      for (index, user) in ["ada", "bob", "", "adb"].enumerated() {
        let response = try await client.execute(
          uri: "/pay", method: .post, headers: Self.fields("k", client: user), body: ByteBuffer(string: "5"))
        #expect(String(buffer: response.body) == "payment \(index + 1) of 5")
      }
    }
  }

  @Test func `a repetition does not wait for longer than the limit`() async throws {
    let clock = ManualClock()
    let keys = try IdempotencyKeys(
      bytes, prefix: "requests/", codec: .json(StoredHTTPResponse.self),
      configuration: StoreLockConfiguration(lease: .seconds(1000)), clock: clock)
    let router = Router()
    router.add(middleware: IdempotencyMiddleware(keys, waitLimit: .seconds(5)) { _, _ in "Ada" })
    let (mayEnd, end) = AsyncStream.makeStream(of: Void.self)
    let hasBegun = Locked(false)
    router.post("pay") { _, _ -> String in
      hasBegun.withLock { $0 = true }
      for await _ in mayEnd {}
      return "paid"
    }
    try await Application(router: router).test(.router) { client in
      async let first = client.execute(uri: "/pay", method: .post, headers: Self.fields("k"))
      while !hasBegun.withLock({ $0 }) { await Task.yield() }
      // The renewal of the first request, and then the limit of the second one.
      try await clock.waitForSleepers(1)
      async let second = client.execute(uri: "/pay", method: .post, headers: Self.fields("k"))
      try await clock.waitForSleepers(2)
      clock.advance(by: .seconds(5))
      let refused = try await second
      #expect(refused.status == .conflict)
      #expect(refused.headers[.retryAfter] == "1")
      end.finish()
      #expect(try await String(buffer: first.body) == "paid")
      let repeated = try await client.execute(uri: "/pay", method: .post, headers: Self.fields("k"))
      #expect(String(buffer: repeated.body) == "paid")
    }
  }

  @Test func `the caller decides which responses are stored`() async throws {
    let router = Router()
    router.add(middleware: IdempotencyMiddleware(try keys(), storing: { _ in true }) { _, _ in "Ada" })
    router.post("fail") { [self] _, _ in
      calls.withLock { $0 += 1 }
      return Response(status: .badGateway)
    }
    try await Application(router: router).test(.router) { client in
      for _ in 1...2 {
        let response = try await client.execute(uri: "/fail", method: .post, headers: Self.fields("k"))
        #expect(response.status == .badGateway)
      }
    }
    #expect(calls.withLock { $0 } == 1)
  }

  @Test func `another request with the key is refused`() async throws {
    try await application().test(.router) { client in
      _ = try await client.execute(uri: "/pay", method: .post, headers: Self.fields("k"), body: ByteBuffer(string: "5"))
      for (uri, body) in [("/pay", "6"), ("/pay?a=b", "5"), ("/refuse", "5"), ("/pay", "")] {
        let response = try await client.execute(
          uri: uri, method: .post, headers: Self.fields("k"), body: ByteBuffer(string: body))
        #expect(response.status == .unprocessableContent)
      }
      #expect(calls.withLock { $0 } == 1)
    }
  }

  @Test func `bad keys and bodies are refused`() async throws {
    try await application(isRequired: true).test(.router) { client in
      for key in ["", "\"\"", String(repeating: "k", count: 256)] {
        let response = try await client.execute(uri: "/pay", method: .post, headers: Self.fields(key))
        #expect(response.status == .badRequest)
      }
      #expect(try await client.execute(uri: "/pay", method: .post).status == .badRequest)
      let large = try await client.execute(
        uri: "/pay", method: .post, headers: Self.fields("k"), body: ByteBuffer(repeating: 0x61, count: 101))
      #expect(large.status == .contentTooLarge)
      // A method that changes nothing needs no key.
      #expect(try await client.execute(uri: "/list", method: .get).status == .ok)
      #expect(try await client.execute(uri: "/list", method: .get, headers: Self.fields("k")).status == .ok)
      #expect(calls.withLock { $0 } == 2)
    }
  }

  @Test func `failures are not stored`() async throws {
    try await application().test(.router) { client in
      for number in 1...2 {
        let response = try await client.execute(uri: "/fail", method: .post, headers: Self.fields("k"))
        #expect(response.status == .badGateway)
        #expect(String(buffer: response.body) == "\(2 * number - 1)")
        #expect(
          try await client.execute(uri: "/refuse", method: .post, headers: Self.fields("r")).status == .badRequest)
      }
      #expect(calls.withLock { $0 } == 4)
    }
  }

  @Test func `a response that is too large runs once`() async throws {
    try await application().test(.router) { client in
      for _ in 1...2 {
        let response = try await client.execute(uri: "/large", method: .post, headers: Self.fields("k"))
        #expect(response.status == .internalServerError)
      }
      #expect(calls.withLock { $0 } == 1)
    }
  }

  @Test func `an interrupted request is refused or repeated`() async throws {
    // A closure that throws a `CancellationError` leaves it unknown whether it had its effect.
    for policy in [InterruptionPolicy.refuse, .runAgain] {
      let router = Router()
      router.add(middleware: IdempotencyMiddleware(try keys(policy)) { _, _ in "\(policy)" })
      router.post("pay") { [self] _, _ -> String in
        guard
          calls.withLock({
            $0 += 1; return $0 % 2 == 0
          })
        else { throw CancellationError() }
        return "paid"
      }
      try await Application(router: router).test(.router) { client in
        let interrupted = try await client.execute(uri: "/pay", method: .post, headers: Self.fields("k"))
        #expect(interrupted.status == .internalServerError)
        let again = try await client.execute(uri: "/pay", method: .post, headers: Self.fields("k"))
        #expect(again.status == (policy == .refuse ? .conflict : .ok))
      }
      calls.withLock { $0 = 0 }
    }
  }
}
