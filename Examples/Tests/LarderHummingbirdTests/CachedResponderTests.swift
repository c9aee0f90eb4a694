import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Larder
import LarderHTTPCache
import LarderHummingbird
import LarderTesting
import NIOCore
import Testing

@Suite("Cached responses", .timeLimit(.minutes(5)))
final class CachedResponderTests: Sendable {
  private let clock = ManualClock()

  /// The requests that reached the handler, as their paths.
  private let calls = Locked<[String]>([])

  private func cache() async throws -> HTTPCache {
    var configuration = HTTPCacheConfiguration.shared
    configuration.clock = clock
    configuration.now = { [clock] in clock.date }
    return try await HTTPCache(MemoryStore<[UInt8]>(), configuration: configuration)
  }

  /// Returns a responder whose context is a name of the request.
  private func responder(
    _ handler: @escaping @Sendable (Request, String) async throws -> Response
  ) async throws -> CachedResponder<CallbackResponder<String>> {
    try CachedResponder(
      CallbackResponder { [self] request, context in
        calls.withLock { $0.append(request.head.path ?? "") }
        return try await handler(request, context)
      }, cache: try await cache())
  }

  /// Returns a responder whose responses have these fields.
  private func responder(fields: HTTPFields) async throws -> CachedResponder<CallbackResponder<String>> {
    try await responder { _, _ in text("hello", fields) }
  }

  private var callCount: Int { calls.withLock { $0.count } }

  /// Waits until exactly so many tasks sleep, and no other task changes that.
  private func waitForSleepers(_ count: Int) async {
    var quiet = 0
    while quiet < 200 {
      quiet = clock.sleeperCount == count ? quiet + 1 : 0
      await Task.yield()
    }
  }

  // MARK: Storing

  @Test func `a stored response answers later requests`() async throws {
    let responder = try await responder(fields: [.cacheControl: "max-age=60"])
    let first = try await responder.send("/a")
    #expect(first.body == "hello")
    #expect(first.cacheStatus == "Larder;fwd=uri-miss;fwd-status=200;stored")
    clock.advance(by: .seconds(10))
    let second = try await responder.send("/a")
    #expect(second.body == "hello")
    #expect(second.fields[.age] == "10")
    #expect(second.fields[.contentLength] == "5")
    #expect(second.cacheStatus == "Larder;hit;ttl=50")
    #expect(callCount == 1)
    clock.advance(by: .seconds(50))
    #expect(try await responder.send("/a").cacheStatus?.hasPrefix("Larder;fwd=stale") == true)
    #expect(try await responder.send("/b").body == "hello")
    #expect(calls.withLock { $0 } == ["/a", "/a", "/b"])
  }

  /// The fields of a response and of both requests, and whether the second request is answered from the cache.
  @Test(
    arguments: [
      ([:], [:], false),
      ([.lastModified: "Sat, 01 Jan 2000 00:00:00 GMT"], [:], false),
      ([.eTag: "\"1\""], [:], false),
      ([.cacheControl: "no-store"], [:], false),
      ([.cacheControl: "private, max-age=60"], [:], false),
      ([.cacheControl: "max-age=60"], [:], true),
      ([.cacheControl: "max-age=0, s-maxage=60"], [:], true),
      ([.cacheControl: "max-age=60", .setCookie: "a=b"], [:], false),
      ([.cacheControl: "max-age=60"], [.cookie: "a=b"], false),
      ([.cacheControl: "max-age=60, private"], [.cookie: "a=b"], false),
      ([.cacheControl: "public, max-age=60"], [.cookie: "a=b"], true),
      ([.cacheControl: "s-maxage=60"], [.cookie: "a=b"], true),
      ([.cacheControl: "max-age=60"], [.authorization: "Basic YTpi"], false),
      ([.cacheControl: "public, max-age=60"], [.authorization: "Basic YTpi"], true),
    ] as [(HTTPFields, HTTPFields, Bool)])
  func `only a response for all is stored`(_ response: HTTPFields, _ request: HTTPFields, _ isStored: Bool) async throws
  {
    let responder = try await responder(fields: response)
    for _ in 1...2 { #expect(try await responder.send("/", fields: request).body == "hello") }
    #expect(callCount == (isStored ? 1 : 2))
  }

  @Test func `a targeted field takes the place of Cache-Control`() async throws {
    var configuration = HTTPCacheConfiguration.shared
    let name = try #require(HTTPField.Name("CDN-Cache-Control"))
    configuration.targetedFields = [name]
    let cache = try await HTTPCache(MemoryStore<[UInt8]>(), configuration: configuration)
    let responder = try CachedResponder(
      CallbackResponder<String> { [self] _, _ in
        calls.withLock { $0.append("") }
        return text("hello", [name: "public, max-age=60"])
      }, cache: cache)
    for _ in 1...2 { _ = try await responder.send("/", fields: [.cookie: "a=b"]) }
    #expect(callCount == 1)
  }

  @Test func `a response is selected by the fields that Vary names`() async throws {
    let responder = try await responder { request, _ in
      text(request.headers[.acceptLanguage] ?? "none", [.cacheControl: "max-age=60", .vary: "Accept-Language"])
    }
    for language in ["de", "fr", "de", "fr"] {
      #expect(try await responder.send("/", fields: [.acceptLanguage: language]).body == language)
    }
    #expect(callCount == 2)
  }

  @Test func `a private cache is refused`() async throws {
    let cache = try await HTTPCache(MemoryStore<[UInt8]>(), configuration: .private)
    let error = #expect(throws: StoreError.self) {
      try CachedResponder(CallbackResponder<String> { _, _ in Response(status: .ok) }, cache: cache)
    }
    #expect(error?.code == .invalidArgument)
  }

  // MARK: Requests

  @Test func `conditions and ranges and HEAD are answered from the cache`() async throws {
    let responder = try await responder(fields: [.cacheControl: "max-age=60", .eTag: "\"1\""])
    #expect(try await responder.send("/").body == "hello")
    let unchanged = try await responder.send("/", fields: [.ifNoneMatch: "\"1\""])
    #expect(unchanged.status == .notModified)
    #expect(unchanged.body == "")
    let part = try await responder.send("/", fields: [.range: "bytes=1-2"])
    #expect(part.status == .partialContent)
    #expect(part.body == "el")
    #expect(part.fields[.contentRange] == "bytes 1-2/5")
    let head = try await responder.send("/", method: .head)
    #expect(head.status == .ok)
    #expect(head.body == "")
    #expect(head.fields[.contentLength] == "5")
    #expect(callCount == 1)
  }

  /// The cache validates with its own condition, and the handler with the one of the cache.
  @Test func `a handler can validate a stale response`() async throws {
    let responder = try await responder { request, _ in
      guard request.headers[.ifNoneMatch] == "\"1\"" else {
        return text("hello", [.cacheControl: "max-age=60", .eTag: "\"1\""])
      }
      return Response(status: .notModified, headers: [.eTag: "\"1\""])
    }
    _ = try await responder.send("/")
    clock.advance(by: .seconds(61))
    let validated = try await responder.send("/", fields: [.cookie: "a=b"])
    #expect(validated.status == .ok)
    #expect(validated.body == "hello")
    #expect(try await responder.send("/").cacheStatus == "Larder;hit;ttl=60")
    #expect(callCount == 2)
  }

  @Test func `an unsafe request invalidates its URL and no error does`() async throws {
    let responder = try await responder { request, _ in
      guard request.method != .post else {
        let body = try await request.body.collect(upTo: 100)
        return Response(status: body.readableBytes > 1 ? .badRequest : .created, body: ResponseBody(byteBuffer: body))
      }
      return text("hello", [.cacheControl: "max-age=60"])
    }
    for (sent, status, isInvalidated) in [("long", .badRequest, false), ("x", .created, true)]
      as [(String, HTTPResponse.Status, Bool)]
    {
      _ = try await responder.send("/a")
      _ = try await responder.send("/b")
      let changed = try await responder.send("/a", method: .post, sent: sent)
      #expect(changed.status == status)
      #expect(changed.body == sent)
      #expect(changed.fields[.contentLength] == "\(sent.utf8.count)")
      #expect(try await responder.send("/a").cacheStatus?.contains("hit") == !isInvalidated)
      #expect(try await responder.send("/b").cacheStatus?.contains("hit") == true)
    }
  }

  /// The effect of the request has happened.
  @Test func `a cancelled request invalidates`() async throws {
    let isPosting = Locked(false)
    let responder = try await responder { request, _ in
      guard request.method == .post else { return text("hello", [.cacheControl: "max-age=60"]) }
      isPosting.withLock { $0 = true }
      while !Task.isCancelled { await Task.yield() }
      return text("done")
    }
    _ = try await responder.send("/a")
    let posting = Task { try await responder.send("/a", method: .post).body }
    while !isPosting.withLock({ $0 }) { await Task.yield() }
    posting.cancel()
    #expect(try await posting.value == "done")
    #expect(try await responder.send("/a").cacheStatus?.contains("hit") == false)
  }

  @Test func `requests that have no URL or a body pass unchanged`() async throws {
    let responder = try await responder { request, _ in
      text(String(buffer: try await request.body.collect(upTo: 100)), [.cacheControl: "max-age=60"])
    }
    for _ in 1...2 {
      #expect(try await responder.send("/", authority: nil).cacheStatus == nil)
      #expect(try await responder.send("/", method: .post, authority: nil, sent: "x").body == "x")
      #expect(try await responder.send("/", sent: "body").body == "body")
      #expect(try await responder.send("/", method: .options).cacheStatus == nil)
    }
    #expect(callCount == 8)
  }

  // MARK: Sharing

  @Test func `requests at the same time share a call that outlives the first client`() async throws {
    let (mayEnd, end) = AsyncStream.makeStream(of: Void.self)
    let responder = try await responder { _, _ in
      for await _ in mayEnd {}
      try Task.checkCancellation()
      return text("hello", [.cacheControl: "max-age=60"])
    }
    let first = Task { try await responder.send("/").body }
    while callCount < 1 { await Task.yield() }
    let others = (1...5).map { _ in Task { try await responder.send("/").body } }
    await waitForSleepers(5)
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    end.finish()
    for other in others { #expect(try await other.value == "hello") }
    #expect(callCount == 1)
  }

  @Test func `a call without clients is cancelled`() async throws {
    let isCancelled = Locked(false)
    let responder = try await responder { _, _ in
      while !Task.isCancelled { await Task.yield() }
      isCancelled.withLock { $0 = true }
      return text("hello")
    }
    let only = Task { try await responder.send("/").body }
    while callCount < 1 { await Task.yield() }
    only.cancel()
    await #expect(throws: CancellationError.self) { try await only.value }
    while !isCancelled.withLock({ $0 }) { await Task.yield() }
  }

  /// The refresh has neither the body nor the task of the request that caused it, but its context.
  @Test func `a stale response is refreshed after the request`() async throws {
    let contexts = Locked<[String]>([])
    let (mayEnd, end) = AsyncStream.makeStream(of: Void.self)
    let responder = try await responder { request, context in
      let number = contexts.withLock { contexts in
        contexts.append(context)
        return contexts.count
      }
      if number == 2 { for await _ in mayEnd {} }
      let body = try await request.body.collect(upTo: 100)
      return text("\(number)\(String(buffer: body))", [.cacheControl: "max-age=60, stale-while-revalidate=60"])
    }
    #expect(try await responder.send("/", context: "first").body == "1")
    clock.advance(by: .seconds(70))
    #expect(try await responder.send("/", context: "second").body == "1")
    while contexts.withLock({ $0.count }) < 2 { await Task.yield() }
    end.finish()
    while try await responder.send("/", context: "later").body != "2" { await Task.yield() }
    #expect(contexts.withLock { $0 } == ["first", "second"])
  }

  // MARK: Errors

  private struct Fault: Error, Equatable {
    var number: Int
  }

  @Test func `the error of a handler is thrown and stored responses need stale-if-error`() async throws {
    for (control, answers) in [("max-age=60", false), ("max-age=60, stale-if-error=600", true)] {
      let isFailing = Locked(false)
      let responder = try await responder { _, _ in
        if isFailing.withLock({ $0 }) { throw Fault(number: 7) }
        return text("hello", [.cacheControl: control])
      }
      _ = try await responder.send("/")
      isFailing.withLock { $0 = true }
      // A fresh response needs no handler.
      #expect(try await responder.send("/").body == "hello")
      await #expect(throws: Fault(number: 7)) { try await responder.send("/new") }
      clock.advance(by: .seconds(61))
      for _ in 1...2 {
        if answers {
          #expect(try await responder.send("/").body == "hello")
        } else {
          await #expect(throws: Fault(number: 7)) { try await responder.send("/") }
        }
      }
      isFailing.withLock { $0 = false }
      #expect(try await responder.send("/new").body == "hello")
    }
  }

  @Test func `an error with a response is the response of the router`() async throws {
    let router = Router()
    router.get("none") { _, _ -> String in throw HTTPError(.notFound, message: "none") }
    router.get("fault") { _, _ -> String in throw Fault(number: 1) }
    let responder = try CachedResponder(router.buildResponder(), cache: try await cache())
    try await Application(responder: responder).test(.router) { client in
      let none = try await client.execute(uri: "/none", method: .get)
      #expect(none.status == .notFound)
      #expect(String(buffer: none.body).contains("none"))
      #expect(try await client.execute(uri: "/fault", method: .get).status == .internalServerError)
    }
  }

  // MARK: Bodies

  @Test func `a body without an end is not stored`() async throws {
    let responder = try await responder { _, _ in
      Response(
        status: .ok, headers: [.cacheControl: "max-age=60"],
        body: ResponseBody { writer in try await writer.write(ByteBuffer(string: "part")) })
    }
    for _ in 1...2 { await #expect(throws: (any Error).self) { try await responder.send("/") } }
    #expect(callCount == 2)
  }

  @Test func `trailer fields are dropped and empty chunks are no end`() async throws {
    let responder = try await responder { _, _ in
      Response(
        status: .ok, headers: [.cacheControl: "max-age=60"],
        body: ResponseBody { writer in
          for part in ["a", "", "b"] { try await writer.write(ByteBuffer(string: part)) }
          try await writer.finish([.eTag: "\"1\""])
        })
    }
    for _ in 1...2 { #expect(try await responder.send("/").body == "ab") }
    #expect(callCount == 1)
  }

  /// The memory of a body that is not stored is bounded, and the handler ends with its client.
  @Test func `a large body is streamed with back-pressure`() async throws {
    let written = Locked(0)
    let isCancelled = Locked(false)
    let chunk = ByteBuffer(repeating: 7, count: 65_536)
    let responder = try await responder { _, _ in
      Response(
        status: .ok,
        body: ResponseBody { writer in
          do {
            while true {
              try await writer.write(chunk)
              written.withLock { $0 += chunk.readableBytes }
            }
          } catch {
            isCancelled.withLock { $0 = error is CancellationError }
            throw error
          }
        })
    }
    await #expect(throws: Collected.Full.self) {
      let reader = Collected(limit: 10_000_000) {
        // The handler is ahead of the client by the window of the cache at most.
        #expect(written.withLock { $0 } < $0 + 3_000_000)
      }
      try await responder.respond(to: request("/"), context: "").body.write(reader)
    }
    while !isCancelled.withLock({ $0 }) { await Task.yield() }
  }

  // MARK: A server

  @Test func `a server answers from the cache over a socket`() async throws {
    let router = Router()
    let body = ByteBuffer(repeating: 7, count: 1_000_000)
    router.get("page") { [self] _, _ in
      calls.withLock { $0.append("page") }
      return text("hello", [.cacheControl: "max-age=60"])
    }
    router.head("page") { _, _ in Response(status: .ok, headers: [.cacheControl: "max-age=60", .contentLength: "5"]) }
    router.get("large") { [self] _, _ in
      calls.withLock { $0.append("large") }
      return Response(
        status: .ok, headers: [.cacheControl: "max-age=60"],
        body: ResponseBody { writer in
          for _ in 1...4 { try await writer.write(body) }
          try await writer.finish(nil)
        })
    }
    router.head("large") { _, _ in Response(status: .ok, body: ResponseBody { writer in try await writer.finish(nil) })
    }
    router.post("page") { request, _ in String(buffer: try await request.body.collect(upTo: 100)) }
    let responder = try CachedResponder(router.buildResponder(), cache: try await cache())
    try await Application(responder: responder, services: [responder]).test(.live) { client in
      // All requests have one connection, so that a response with a wrong end would spoil the next one.
      for round in 1...2 {
        #expect(try await client.execute(uri: "/large", method: .head).body.readableBytes == 0)
        let head = try await client.execute(uri: "/page", method: .head)
        #expect(head.headers[.contentLength] == "5")
        let page = try await client.execute(uri: "/page", method: .get)
        #expect(String(buffer: page.body) == "hello")
        #expect(page.headers[values: .date].count == 1)
        let large = try await client.execute(uri: "/large", method: .get)
        #expect(large.body.readableBytes == 4_000_000)
        #expect(large.headers[text: "Cache-Status"]?.contains("hit") == (round == 2))
      }
      #expect(self.calls.withLock { $0 } == ["page", "large"])
      let posted = try await client.execute(uri: "/page", method: .post, body: ByteBuffer(string: "new"))
      #expect(String(buffer: posted.body) == "new")
      _ = try await client.execute(uri: "/page", method: .get)
      #expect(self.calls.withLock { $0 } == ["page", "large", "page"])
    }
  }
}

// MARK: Requests of the tests

private func text(_ text: String, _ fields: HTTPFields = [:]) -> Response {
  Response(status: .ok, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
}

private func request(
  _ path: String, method: HTTPRequest.Method = .get, fields: HTTPFields = [:], authority: String? = "shop.example",
  sent: String? = nil
) -> Request {
  var fields = fields
  if let sent { fields[.contentLength] = "\(sent.utf8.count)" }
  return Request(
    head: HTTPRequest(method: method, scheme: "http", authority: authority, path: path, headerFields: fields),
    // A request without a body must not pass on what the connection has.
    body: RequestBody(buffer: ByteBuffer(string: sent ?? "the next request")))
}

/// A response that a client has received.
private struct Received {
  var status: HTTPResponse.Status
  var fields: HTTPFields
  var body: String

  var cacheStatus: String? { fields[text: "Cache-Status"] }
}

/// A client that reads a body up to a limit.
private final class Collected: ResponseBodyWriter {
  struct Full: Error {}

  private let limit: Int
  private let onBytes: (Int) -> Void
  private(set) var bytes = ByteBuffer()
  private(set) var hasEnded = false

  init(limit: Int = .max, onBytes: @escaping (Int) -> Void = { _ in }) {
    self.limit = limit
    self.onBytes = onBytes
  }

  func write(_ buffer: ByteBuffer) async throws {
    #expect(!hasEnded && buffer.readableBytes > 0)
    bytes.writeImmutableBuffer(buffer)
    onBytes(bytes.readableBytes)
    guard bytes.readableBytes < limit else { throw Full() }
  }

  func finish(_ trailingHeaders: HTTPFields?) async throws {
    #expect(trailingHeaders == nil)
    hasEnded = true
  }
}

extension CachedResponder where Base.Context == String {
  @concurrent fileprivate func send(
    _ path: String, method: HTTPRequest.Method = .get, fields: HTTPFields = [:],
    authority: String? = "shop.example", sent: String? = nil, context: String = ""
  ) async throws -> Received {
    let response = try await respond(
      to: request(path, method: method, fields: fields, authority: authority, sent: sent), context: context)
    let body = Collected()
    try await response.body.write(body)
    #expect(body.hasEnded)
    return Received(status: response.status, fields: response.headers, body: String(buffer: body.bytes))
  }
}
