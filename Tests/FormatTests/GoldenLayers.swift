import Foundation
import Larder
import LarderBounded
import LarderCBOR
import LarderCoordination
import LarderExpiry
import LarderIndexes
import LarderJSON
import LarderStoreQueue
import Testing

#if Compression
import LarderCompression
#endif
#if Crypto
import LarderCrypto
#endif
#if HTTPCache
import HTTPTypes
import LarderHTTPCache
#endif

extension Golden {
  /// The formats of values, and of the modules that keep records in a store of bytes, here in a readable `JSONFileStore`.
  static var layers: [Golden] {
    var goldens = [versioned, expiring, checksummed, indexed, bounded, storeQueue, coordination]
    #if Compression
    goldens += [compressedValues, dictionaries]
    #endif
    #if Crypto
    goldens.append(encrypted)
    #endif
    #if HTTPCache
    goldens.append(httpCache)
    #endif
    return goldens
  }

  private typealias Base = JSONFileStore<[UInt8]>

  /// Creates a golden of records in a store of bytes.
  private static func layer(
    _ name: String, content: [String: String], isReadByPython: Bool = true,
    write: @escaping @Sendable (Base) async throws -> Void,
    read: @escaping @Sendable (Base) async throws -> [String: String]
  ) -> Golden {
    Golden(name: name, content: content, isReadByPython: isReadByPython) { path in
      let base = try await Base(path: path, codec: .raw)
      try await write(base)
      try await base.compact()
      try await base.close()
    } read: { path in
      let base = try await Base(path: path, codec: .raw, createsIfMissing: false)
      let texts = try await read(base)
      try await base.close()
      return texts
    }
  }

  /// Creates a golden of values that two codecs have written.
  private static func values(
    _ name: String, isReadByPython: Bool = true, _ json: some Codec<User>, _ cbor: some Codec<User>
  ) -> Golden {
    let content = ["json/1": User.ada.text, "cbor/1": User.bob.text]
    return layer(name, content: content, isReadByPython: isReadByPython) { base in
      try await base.typed(User.self, prefix: "json/", codec: json).setValue(.ada, forKey: "1")
      try await base.typed(User.self, prefix: "cbor/", codec: cbor).setValue(.bob, forKey: "1")
    } read: { base in
      var texts: [String: String] = [:]
      texts["json/1"] = try await base.typed(User.self, prefix: "json/", codec: json).value(forKey: "1")?.text
      texts["cbor/1"] = try await base.typed(User.self, prefix: "cbor/", codec: cbor).value(forKey: "1")?.text
      return texts
    }
  }

  private static var versioned: Golden {
    struct Name: Codable { var name: String }
    func codec<Base: Codec<User>>(_ base: Base, _ older: some Codec<Name>) -> VersionedCodec<Base> {
      do {
        return try base.versioned(2, .init(from: 1, older) { User(name: $0.name, visits: 0) })
      } catch {
        preconditionFailure("\(error)")
      }
    }
    return values("versioned.json", codec(JSONCodec(), JSONCodec<Name>()), codec(CBORCodec(), CBORCodec<Name>()))
  }

  private static var checksummed: Golden {
    values("checksummed.json", JSONCodec().checksummed(), CBORCodec().checksummed())
  }

  #if Compression
  private static var compressedValues: Golden {
    // The first value is compressed, and the second one is too short for it.
    let long = User(name: String(repeating: "Ada ", count: 50), visits: 1)
    let codec = JSONCodec<User>().compressed()
    return layer("compressed.json", content: ["1": long.text, "2": User.bob.text]) { base in
      try await base.typed(User.self, codec: codec).setValue(long, forKey: "1")
      try await base.typed(User.self, codec: codec).setValue(.bob, forKey: "2")
    } read: {
      try await $0.typed(User.self, codec: codec).texts(\.text)
    }
  }
  #endif

  #if Compression
  /// A store with one value for each of two dictionaries, and their file beside it.
  private static var dictionaries: Golden {
    let long = User(name: "Ada " + String(repeating: "Lovelace", count: 8), visits: 1)
    return Golden(name: "dictionaries", content: ["1": long.text, "2": long.text]) { path in
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      let file = CompressionDictionaries.path(besideStoreAt: path + "/users.json")
      let base = try await Base(path: path + "/users.json", codec: .raw)
      for (key, text) in [("1", #"{"name":"Ada LovelaceLovelace"#), ("2", #"Lovelace","visits":1}"#)] {
        let dictionaries = try await CompressionDictionaries.add(CompressionDictionary(Array(text.utf8)), toFile: file)
        let codec = JSONCodec<User>().compressed(dictionaries: dictionaries)
        try await base.typed(User.self, codec: codec).setValue(long, forKey: StoreKey(key))
      }
      try await base.compact()
      try await base.close()
    } read: { path in
      let file = CompressionDictionaries.path(besideStoreAt: path + "/users.json")
      let codec = JSONCodec<User>().compressed(dictionaries: try await CompressionDictionaries.read(fromFile: file))
      let base = try await Base(path: path + "/users.json", codec: .raw, createsIfMissing: false)
      let texts = try await base.typed(User.self, codec: codec).texts(\.text)
      try await base.close()
      return texts
    }
  }
  #endif

  #if Crypto
  private static var encrypted: Golden {
    layer("encrypted.json", content: User.content, isReadByPython: false) { base in
      try await base.typed(User.self, codec: CBORCodec().encrypted(with: articleRing(), purpose: "users")).writeUsers()
    } read: { base in
      try await base.typed(User.self, codec: CBORCodec().encrypted(with: articleRing(), purpose: "users")).texts(\.text)
    }
  }
  #endif

  private static var expiring: Golden {
    let content = [
      "json/1": "Ada 1 until 1800000060", "json/2": "Bob ☃ -2", "cbor/1": "Ada 1 within 60",
      "cbor/2": "Ada 1 until 1800000060",
      "cbor/3": "Bob ☃ -2",
    ]
    @Sendable func text(_ value: Expiring<User>) -> String {
      guard let deadline = value.deadline else { return value.value.text }
      if let window = deadline.window { return "\(value.value.text) within \(window.components.seconds)" }
      return "\(value.value.text) until \(Int(deadline.date.timeIntervalSince1970))"
    }
    return layer("expiring.json", content: content) { base in
      let json = base.typed(Expiring<User>.self, prefix: "json/", codec: JSONCodec<User>().expiring())
      try await json.setValue(Expiring(.ada, deadline: ExpiryDeadline(date.addingTimeInterval(60))), forKey: "1")
      try await json.setValue(Expiring(.bob), forKey: "2")
      let cbor = base.typed(Expiring<User>.self, prefix: "cbor/", codec: CBORCodec<User>().expiring())
      try await cbor.expiring(.sliding(.seconds(60))) { date }.setValue(.ada, forKey: "1")
      try await cbor.setValue(Expiring(.ada, deadline: ExpiryDeadline(date.addingTimeInterval(60))), forKey: "2")
      try await cbor.setValue(Expiring(.bob), forKey: "3")
    } read: { base in
      let json = base.typed(Expiring<User>.self, prefix: "json/", codec: JSONCodec<User>().expiring())
      let cbor = base.typed(Expiring<User>.self, prefix: "cbor/", codec: CBORCodec<User>().expiring())
      let texts = [("json/", try await json.texts(text)), ("cbor/", try await cbor.texts(text))]
      return Dictionary(uniqueKeysWithValues: texts.flatMap { prefix, texts in texts.map { (prefix + $0, $1) } })
    }
  }

  private static var indexed: Golden {
    let byVisits = StoreIndex<User>("visits") { _, user in [[user.visits]] }
    let byName = StoreIndex<User>("name", isUnique: true) { _, user in [[user.name]] }
    let content = User.content.merging(["visits": "user:2, user:1", "name": "user:1, user:2"]) { $1 }
    return layer("indexed.json", content: content) { base in
      try await base.indexed(by: [byVisits, byName], codec: JSONCodec<User>()).writeUsers()
    } read: { base in
      let store = try await base.indexed(by: [byVisits, byName], codec: JSONCodec<User>())
      var texts = try await store.texts(\.text)
      for (name, index) in [("visits", byVisits), ("name", byName)] {
        let keys = try await store.entries(where: index, limit: .max).map(\.key)
        texts[name] = keys.map { $0.string ?? "" }.joined(separator: ", ")
      }
      #expect(try await store.verifyIndexes().findings.isEmpty)
      return texts
    }
  }

  private static var bounded: Golden {
    var configuration = BoundedStoreConfiguration()
    configuration.now = { date }
    let content = ["a": "0102", "c": "05", "order": "c, a", "totals": "5 bytes, 2 entries"]
    return layer("bounded.json", content: content) { [configuration] base in
      let store = try await base.bounded(bytes: 1_000, configuration: configuration)
      try await store.setValue([1, 2], forKey: "a")
      try await store.setValue([3, 4], forKey: "b")
      try await store.setValue([5], forKey: "c")
      try await store.removeValue(forKey: "b")
      try await store.setValue([1, 2], forKey: "a")
    } read: { [configuration] base in
      let store = try await base.bounded(bytes: 1_000, configuration: configuration)
      var texts = try await store.texts { Hexadecimal.text(of: $0) }
      let usage = try await store.usage()
      texts["totals"] = "\(usage.bytes) bytes, \(usage.entries) entries"
      // The order of use is what an eviction follows.
      let full = try await base.bounded(bytes: 4, configuration: configuration)
      texts["order"] = try await full.contains("c") ? "a, c" : "c, a"
      return texts
    }
  }

  private static var storeQueue: Golden {
    let environment = QueueEnvironment(now: { date })
    let content = [
      "waiting": "Ada 1", "delayed": "Ada 1, delayed", "leased": "Bob ☃ -2, leased", "dead": "Bob ☃ -2, dead",
    ]
    let configuration = StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1))
    return layer("store-queue.json", content: content) { base in
      let queue = try await StoreQueue<Base, User>(
        base, prefix: "q/", codec: JSONCodec(), configuration: configuration, environment: environment)
      try await queue.enqueue([
        QueueInput(.ada, id: "acknowledged", priority: 2), QueueInput(.bob, id: "dead", priority: 2),
        QueueInput(.bob, id: "leased", priority: 1, group: "g"), QueueInput(.ada, id: "waiting"),
        QueueInput(.ada, id: "delayed", after: .seconds(60)),
      ])
      let deliveries = try await queue.receive(max: 3, lease: .seconds(60))
      try await queue.acknowledge(deliveries[0].receipt)
      try await queue.release(deliveries[1].receipt)
    } read: { base in
      let queue = try await StoreQueue<Base, User>(
        base, prefix: "q/", codec: JSONCodec(), configuration: configuration, environment: environment)
      var texts = Dictionary(
        uniqueKeysWithValues: try await queue.peek(max: 9).map { ($0.key.string ?? "", $0.value.text) })
      for letter in try await queue.deadLetters() {
        texts[letter.key.string ?? ""] = "\(try letter.value.get().text), dead"
      }
      // The queue lists neither delayed nor leased items, so the numbers of both stand for them.
      let counts = try await queue.counts()
      if counts.delayed == 1 { texts["delayed"] = "Ada 1, delayed" }
      if counts.leased == 1 { texts["leased"] = "Bob ☃ -2, leased" }
      return texts
    }
  }

  /// A released lock, a request with its outcome, and a limit of which three starts of five are taken.
  private static var coordination: Golden {
    let limit = RateLimit(1, per: .seconds(60), burst: 5)
    let time = SharedClock(spansHosts: true) {
      ClockReading(origin: 0, nanoseconds: Int64(date.timeIntervalSince1970) * 1_000_000_000)
    }
    @Sendable func requests(_ base: Base) throws -> IdempotencyKeys<User> {
      try IdempotencyKeys(base, prefix: "request/", codec: JSONCodec(), now: { date })
    }
    let fingerprint = Array("POST /users".utf8)
    let content = ["lock/report": "term 2", "request/17": User.ada.text, "rate/client": "2 left"]
    return layer("coordination.json", content: content) { base in
      let locks = try StoreLock(base, prefix: "lock/")
      for _ in 0..<2 { try await locks.withLock("report") { _ in } }
      _ = try await requests(base).perform("17", fingerprint: fingerprint) { .ada }
      _ = try await RateLimiter(base, prefix: "rate/", limit: limit, time: time).take(3, forKey: "client")
    } read: { base in
      let number = try await StoreLock(base, prefix: "lock/").withLock("report") { $0.number }
      let outcome = try await requests(base).perform("17", fingerprint: fingerprint) { .bob }
      let decision = try await RateLimiter(base, prefix: "rate/", limit: limit, time: time).take(forKey: "client")
      return [
        "lock/report": "term \(number - 1)", "request/17": outcome.text,
        "rate/client": "\(decision.remaining + decision.starts) left",
      ]
    }
  }

  #if HTTPCache
  private static var httpCache: Golden {
    var configuration = HTTPCacheConfiguration.private
    configuration.now = { date }
    let request = HTTPRequest(method: .get, scheme: "https", authority: "api.example", path: "/users/7")
    return layer("http.json", content: ["https://api.example/users/7": "200 Hello"]) { [configuration] base in
      let cache = try await HTTPCache(base, configuration: configuration)
      let response = try await cache.response(to: request) { _ in
        let fields: HTTPFields = [.cacheControl: "max-age=86400", .contentType: "text/plain", .vary: "Accept-Language"]
        return HTTPForwardedResponse(head: HTTPResponse(status: .ok, headerFields: fields), body: Array("Hello".utf8))
      }
      _ = try await response.body.bytes(upTo: 100)
      // The second request waits until the first response is stored.
      let again = try await cache.response(to: request) { _ in
        HTTPForwardedResponse(head: HTTPResponse(status: .notFound))
      }
      #expect(again.cacheStatus.isHit)
    } read: { [configuration] base in
      let cache = try await HTTPCache(base, configuration: configuration)
      let response = try await cache.response(to: request) { _ in
        HTTPForwardedResponse(head: HTTPResponse(status: .notFound))
      }
      let body = String(decoding: try await response.body.bytes(upTo: 100), as: UTF8.self)
      return ["https://api.example/users/7": "\(response.head.status.code) \(body)"]
    }
  }
  #endif
}

#if Crypto
/// Opens the key ring of the article "The formats of encrypted values and key rings".
private func articleRing() async throws -> KeyRing {
  try await KeyRing.open(in: RingSource())
}

/// A source with that ring.
private struct RingSource: KeySource {
  func load() async throws -> [UInt8]? { Array(Golden.ring.utf8) }
  func save(_ content: [UInt8], replacing previous: [UInt8]?) async throws {}
}
#endif
