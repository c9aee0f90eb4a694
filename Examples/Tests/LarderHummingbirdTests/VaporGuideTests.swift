import Foundation
import Larder
import LarderExpiry
import LarderTesting
import Testing

// Stand-ins of the same shape as the types of Vapor, which this package does not resolve.

private protocol Cache: Sendable {
  func get<T>(_ key: String, as type: T.Type) async throws -> T? where T: Decodable & Sendable
  func set<T>(
    _ key: String, to value: T?, expiresIn expirationTime: CacheExpirationTime?
  ) async throws where T: Encodable & Sendable
}

private protocol AsyncSessionDriver: Sendable {
  func createSession(_ data: SessionData, for request: Request) async throws -> SessionID
  func readSession(_ sessionID: SessionID, for request: Request) async throws -> SessionData?
  func updateSession(_ sessionID: SessionID, to data: SessionData, for request: Request) async throws -> SessionID
  func deleteSession(_ sessionID: SessionID, for request: Request) async throws
}

private struct Request {}

private struct SessionID: Sendable, Hashable {
  let string: String
}

private struct SessionData: Codable, Sendable, Equatable {
  var values: [String: String] = [:]
}

private enum CacheExpirationTime {
  case seconds(Int)
  case minutes(Int)

  var seconds: Int {
    switch self {
    case .seconds(let seconds): seconds
    case .minutes(let minutes): minutes * 60
    }
  }
}

// snippet.a-cache
private struct StoreCache: Cache {
  let entries: any ExpirableStore<[UInt8]>

  init(_ bytes: some DataStore<[UInt8]>) {
    entries = bytes.typed(Expiring<[UInt8]>.self, prefix: "cache/", codec: .raw.expiring()).expiring()
  }

  func get<T>(_ key: String, as type: T.Type) async throws -> T? where T: Decodable & Sendable {
    try await entries.value(forKey: StoreKey(key)).map { try JSONDecoder().decode(type, from: Data($0)) }
  }

  func set<T>(
    _ key: String, to value: T?, expiresIn time: CacheExpirationTime?
  ) async throws where T: Encodable & Sendable {
    guard let value, time.map({ $0.seconds > 0 }) ?? true else {
      return try await entries.removeValue(forKey: StoreKey(key))
    }
    let bytes = Array(try JSONEncoder().encode(value))
    let timeToLive: TimeToLive = time.map { .after(.seconds($0.seconds)) } ?? .never
    try await entries.setValue(bytes, forKey: StoreKey(key), timeToLive: timeToLive)
  }
}
// snippet.end

// snippet.sessions
private struct StoreSessionDriver: AsyncSessionDriver {
  let sessions: any ExpirableStore<SessionData>

  init(_ bytes: some DataStore<[UInt8]>, timeToLive: Duration) {
    sessions = bytes.typed(Expiring<SessionData>.self, prefix: "session/", codec: .json().expiring())
      .expiring(.sliding(timeToLive))
  }

  func createSession(_ data: SessionData, for request: Request) async throws -> SessionID {
    while true {
      let id = SessionID(string: (0..<4).map { _ in String(UInt64.random(in: 0 ... .max), radix: 36) }.joined())
      if try await sessions.insertValue(data, forKey: StoreKey(id.string)) { return id }
    }
  }

  func readSession(_ id: SessionID, for request: Request) async throws -> SessionData? {
    guard (1...100).contains(id.string.utf8.count) else { return nil }
    return try await sessions.value(forKey: StoreKey(id.string))
  }

  func updateSession(_ id: SessionID, to data: SessionData, for request: Request) async throws -> SessionID {
    // A request that began before a logout does not bring the session back.
    try await sessions.update(StoreKey(id.string)) { stored in
      if stored != nil { stored = data }
    }
    return id
  }

  func deleteSession(_ id: SessionID, for request: Request) async throws {
    try await sessions.removeValue(forKey: StoreKey(id.string))
  }
}
// snippet.end

/// The adapters of the page about Vapor; `HummingbirdGuideTests` compares the page with this file.
@Suite("Guide about Vapor")
struct VaporGuideTests {
  private let bytes = MemoryStore<[UInt8]>()

  @Test func `a cache`() async throws {
    let cache = StoreCache(bytes)
    try await cache.set("a", to: ["x": 1], expiresIn: .minutes(1))
    try await cache.set("b", to: "text", expiresIn: nil)
    #expect(try await cache.get("a", as: [String: Int].self) == ["x": 1])
    #expect(try await cache.entries.remainingTime(forKey: "a") != .never)
    #expect(try await cache.entries.remainingTime(forKey: "b") == .never)
    await #expect(throws: DecodingError.self) { try await cache.get("b", as: Int.self) }
    try await cache.set("a", to: ["x": 1], expiresIn: .seconds(0))
    #expect(try await cache.get("a", as: [String: Int].self) == nil)
    try await cache.set("b", to: String?.none, expiresIn: nil)
    #expect(try await cache.get("b", as: String.self) == nil)
  }

  @Test func sessions() async throws {
    let driver = StoreSessionDriver(bytes, timeToLive: .seconds(1800))
    let id = try await driver.createSession(SessionData(values: ["user": "Ada"]), for: Request())
    let other = try await driver.createSession(SessionData(), for: Request())
    #expect(id != other)
    #expect(try await driver.readSession(id, for: Request())?.values == ["user": "Ada"])
    #expect(try await driver.updateSession(id, to: SessionData(values: ["user": "Bob"]), for: Request()) == id)
    #expect(try await driver.readSession(id, for: Request())?.values == ["user": "Bob"])
    for text in ["", String(repeating: "x", count: 600), "no"] {
      #expect(try await driver.readSession(SessionID(string: text), for: Request()) == nil)
    }
    try await driver.deleteSession(id, for: Request())
    _ = try await driver.updateSession(id, to: SessionData(values: ["user": "Ada"]), for: Request())
    #expect(try await driver.readSession(id, for: Request()) == nil)
    #expect(try await driver.readSession(other, for: Request()) != nil)
  }
}
