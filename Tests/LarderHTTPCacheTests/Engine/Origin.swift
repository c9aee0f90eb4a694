#if HTTPCache
import Foundation
import HTTPTypes
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

/// An origin for tests: a closure that answers forwarded requests, and records them.
final class Origin: Sendable {
  typealias Answer = @Sendable (HTTPRequest, Int) async throws -> HTTPForwardedResponse

  private let requests = Locked<[HTTPRequest]>([])
  private let answer: Locked<Answer>

  /// Creates an origin.
  ///
  /// - Parameter answer: A closure that receives a request and its number, from 1.
  init(_ answer: @escaping Answer) {
    self.answer = Locked(answer)
  }

  /// Creates an origin that always gives the same answer.
  convenience init(_ head: HTTPResponse, _ body: String = "body") {
    self.init { _, _ in HTTPForwardedResponse(head: head, body: Array(body.utf8)) }
  }

  /// The requests so far.
  var received: [HTTPRequest] { requests.withLock { $0 } }

  var count: Int { received.count }

  /// Replaces the answers.
  func set(_ answer: @escaping Answer) {
    self.answer.withLock { $0 = answer }
  }

  func callAsFunction(_ request: HTTPRequest) async throws -> HTTPForwardedResponse {
    let number = requests.withLock { requests in
      requests.append(request)
      return requests.count
    }
    return try await answer.withLock { $0 }(request, number)
  }
}

/// A cache, its store and its clock.
struct CacheUnderTest {
  let clock: ManualClock
  let store: FaultyStore<MemoryStore<[UInt8]>>
  let cache: HTTPCache

  init(
    _ configuration: HTTPCacheConfiguration = .private, clock: ManualClock = ManualClock(),
    store: FaultyStore<MemoryStore<[UInt8]>>? = nil
  ) async throws {
    self.clock = clock
    let store = store ?? MemoryStore<[UInt8]>().faulty(clock: clock)
    self.store = store
    var configuration = configuration
    configuration.clock = clock
    configuration.now = { clock.date }
    cache = try await HTTPCache(store, configuration: configuration)
  }

  /// Returns the response to a request, with its whole body.
  func get(
    _ path: String = "/", _ fields: HTTPFields = [:], method: HTTPRequest.Method = .get,
    policy: HTTPCachePolicy = .standard, from origin: Origin
  ) async throws -> (head: HTTPResponse, status: CacheStatus, body: String) {
    let response = try await cache.response(to: request(path, fields, method: method), policy: policy) {
      try await origin($0)
    }
    let bytes = try await response.body.bytes(upTo: 100_000_000)
    return (response.head, response.cacheStatus, String(decoding: bytes, as: UTF8.self))
  }
}

func request(_ path: String = "/", _ fields: HTTPFields = [:], method: HTTPRequest.Method = .get) -> HTTPRequest {
  HTTPRequest(method: method, scheme: "https", authority: "example.com", path: path, headerFields: fields)
}

func head(_ status: HTTPResponse.Status = .ok, _ fields: HTTPFields = [:]) -> HTTPResponse {
  HTTPResponse(status: status, headerFields: fields)
}

/// A body that arrives in chunks, each after an action of the test.
struct ChunkedBody: AsyncSequence, Sendable {
  let next: @Sendable (_ index: Int) async throws -> [UInt8]?

  struct AsyncIterator: AsyncIteratorProtocol {
    let body: ChunkedBody
    var index = 0

    mutating func next() async throws -> [UInt8]? {
      try await next(isolation: #isolation)
    }

    mutating func next(isolation actor: isolated (any Actor)?) async throws -> [UInt8]? {
      defer { index += 1 }
      return try await body.next(index)
    }
  }

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(body: self) }
}

/// Advances a clock by one step after another until a condition holds, because a task that is to be woken may not sleep yet.
func advance(_ clock: ManualClock, by step: Duration, until condition: () async throws -> Bool) async throws {
  try await waitUntil {
    clock.advance(by: step)
    return try await condition()
  }
}

extension Gate {
  /// Waits as long as nothing cancels the task, and then opens the gate.
  func openWhenCancelled() async throws {
    do {
      try await Task.sleep(for: .seconds(3_600))
    } catch {
      open()
      throw error
    }
  }
}
#endif
