#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderBatching
import LarderBounded
import LarderCache
import LarderCoordination
import LarderCrypto
import LarderExpiry
import LarderJSON
import LarderMetrics
import LarderObservation
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

extension CookbookTests {
  /// The answers that add a decorator or a transform of the codec.
  @Suite struct Layers {
    private struct Session: Codable, Sendable, Equatable {
      var user: String
    }

    private struct Settings: Codable, Sendable, Equatable {
      var fontSize = 14
    }

    private struct Note: Codable, Sendable, Equatable {
      var text: String
    }

    // MARK: Time

    @Test func `sessions expire`() async throws {
      let temporary = try TemporaryFolder()
      let folder = temporary.path
      let token = "7f3a"

      // snippet.how-do-i-keep-sessions-that
      let sessions = try await SQLiteStore(path: folder + "/sessions.sqlite", codec: .json(Session.self).expiring())
        .cached()
        .expiring(.sliding(.seconds(1800)))

      try await sessions.setValue(Session(user: "Ada"), forKey: StoreKey(token))
      let session = try await sessions.value(forKey: StoreKey(token))
      // snippet.end

      #expect(session == Session(user: "Ada"))
      let later = sessions.base.expiring(.sliding(.seconds(1800))) { Date(timeIntervalSinceNow: 1799) }
      #expect(try await later.peekValue(forKey: StoreKey(token)) == session)
      let tooLate = sessions.base.expiring(.sliding(.seconds(1800))) { Date(timeIntervalSinceNow: 1801) }
      #expect(try await tooLate.value(forKey: StoreKey(token)) == nil)
      try await sessions.close()
    }

    @Test func `a token is redeemed once`() async throws {
      let temporary = try TemporaryFolder()
      let folder = temporary.path

      // snippet.how-do-i-redeem-a-one
      let tokens = try await SQLiteStore(path: folder + "/tokens.sqlite", codec: .json(String.self).expiring())
        .expiring(.after(.seconds(900)))

      func redeem(_ token: String) async throws -> String? {
        try await tokens.takeValue(forKey: StoreKey(token))
      }
      // snippet.end

      try await tokens.setValue("ada@example.com", forKey: "d41d")
      let emails = try await withThrowingTaskGroup(of: String?.self) { group in
        for _ in 0..<20 { group.addTask { try await redeem("d41d") } }
        return try await group.reduce(into: [String]()) { $0 += $1.map { [$0] } ?? [] }
      }
      #expect(emails == ["ada@example.com"])
      #expect(try await tokens.base.count() == 0)
      try await tokens.setValue("bob@example.com", forKey: "98b2")
      let tooLate = tokens.base.expiring { Date(timeIntervalSinceNow: 901) }
      #expect(try await tooLate.value(forKey: "98b2") == nil)
      try await tokens.close()
    }

    // MARK: Coordination

    @Test func `a client has a limit`() async throws {
      let bytes = MemoryStore<[UInt8]>()

      // snippet.how-do-i-limit-the-requests
      let limiter = try RateLimiter(bytes, prefix: "limits/", limit: RateLimit(60, per: .seconds(60), burst: 5))

      func respond(to client: String) async throws -> (status: Int, fields: [(name: String, value: String)]) {
        let decision = try await limiter.take(forKey: StoreKey(client))
        return (decision.isGranted ? 200 : 429, limiter.fields(of: decision))
      }
      // snippet.end

      var statuses: [Int] = []
      for _ in 0..<5 { statuses.append(try await respond(to: "192.0.2.1").status) }
      #expect(statuses == [200, 200, 200, 200, 200])
      #expect(try await respond(to: "192.0.2.2").status == 200)
      #expect(try await limiter.take(5, forKey: "192.0.2.2").isGranted == false)
    }

    @Test func `a lock has one holder`() async throws {
      let bytes = MemoryStore<[UInt8]>()
      let plan: [UInt8] = [2]
      func makeReport() async throws -> [UInt8] { [1] }

      // snippet.how-do-i-let-only-one
      let locks = try StoreLock(bytes, prefix: "locks/")

      try await locks.withLock("report") { token in
        let report = try await makeReport()
        try await locks.update(["report"], requiring: token) { slots in slots[0] = report }
      }
      // snippet.end

      // snippet.how-do-i-elect-a-leader
      let election = LeaderElection(locks, name: "scheduler")

      try await election.run { token in
        try await locks.update(["schedule"], requiring: token) { slots in slots[0] = plan }
      }
      // snippet.end

      #expect(try bytes.values(forKeys: ["report", "schedule"]) == [[1], [2]])
    }

    @Test func `a request is handled once`() async throws {
      let bytes = MemoryStore<[UInt8]>()
      let shipped = Shipments()
      func ship(_ body: String) async throws -> String { shipped.add(body) }

      // snippet.how-do-i-handle-a-request
      let requests = try IdempotencyKeys(bytes, prefix: "requests/", codec: .json(String.self))

      func order(_ body: String, key: String) async throws -> String {
        try await requests.perform(StoreKey(key), fingerprint: body.utf8) {
          try await ship(body)
        }
      }
      // snippet.end

      #expect(try await order("a book", key: "7f3a") == "a book 1")
      #expect(try await order("a book", key: "7f3a") == "a book 1")
      await expectStoreError(.otherRequest) { try await order("a car", key: "7f3a") }
      #expect(try await order("a book", key: "91bc") == "a book 2")
    }

    private final class Shipments: Sendable {
      private let count = Locked(0)

      func add(_ body: String) -> String {
        count.withLock { count in
          count += 1
          return "\(body) \(count)"
        }
      }
    }

    // MARK: Caches

    @Test func `an image is downloaded once`() async throws {
      let temporary = try TemporaryFolder()
      let folder = temporary.path
      let downloads = Locked<[String]>([])
      @Sendable func download(_ url: String) async throws -> [UInt8] {
        downloads.withLock { $0.append(url) }
        return Array(repeating: 7, count: 1000)
      }

      // snippet.how-do-i-cache-images-that
      let disk = try await SQLiteStore(path: folder + "/images.sqlite", codec: .raw, durability: .buffered)
        .bounded(bytes: 200_000_000)
      let images = disk.cached(CachedStoreConfiguration(costLimit: 50_000_000) { _, image in image.count })

      func image(at url: String) async throws -> [UInt8] {
        let key = StoreKey(shortening: url, limit: images.information.maximumKeyLength)
        if let image = try await images.value(forKey: key) { return image }
        let image = try await download(url)
        try await images.setValue(image, forKey: key)
        return image
      }
      // snippet.end

      let long = "https://example.com/" + String(repeating: "a", count: 600)
      for url in ["https://example.com/1.png", long, "https://example.com/1.png", long] {
        #expect(try await image(at: url).count == 1000)
      }
      #expect(downloads.withLock { $0 } == ["https://example.com/1.png", long])
      #expect(images.statistics().hits == 2)
      #expect(try await disk.usage().entries == 2)
      try await images.close()
    }

    // MARK: Observation

    @Test func `settings are shown when they change`() async throws {
      let temporary = try TemporaryFolder()
      let folder = temporary.path
      let (sizes, continuation) = AsyncStream.makeStream(of: Int.self)
      @Sendable func show(_ settings: Settings) async { continuation.yield(settings.fontSize) }

      // snippet.how-do-i-show-a-value
      let settings = try await JSONFileStore<Settings>(path: folder + "/settings.json").observable()
      let showing = Task {
        for try await current in settings.updates(forKey: "settings") {
          await show(current ?? Settings())
        }
      }
      // snippet.end

      var shown = sizes.makeAsyncIterator()
      #expect(await shown.next() == 14)
      try await settings.setValue(Settings(fontSize: 16), forKey: "settings")
      #expect(await shown.next() == 16)
      try await settings.close()
      try await showing.value
    }

    // MARK: Many writers

    @Test func `many tasks share a commit`() async throws {
      let base = MemoryStore<Int>().faulty()
      let incoming = Array(0..<100)
      base.schedule(.suspension(), on: .apply)

      // snippet.how-do-i-write-from-many
      let events = base.batched()

      func record(_ incoming: [Int]) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for event in incoming {
            group.addTask { try await events.setValue(event, forKey: StoreKey(integer: event)) }
          }
          try await group.waitForAll()
        }
      }
      // snippet.end

      // The first commit waits until all other tasks have called.
      let resuming = Task {
        try await base.waitForSuspended()
        while events.waitingCount < incoming.count - 1 { await Task.yield() }
        base.resume()
      }
      try await record(incoming)
      try await resuming.value
      #expect(base.operationCount == 2)
      #expect(try base.base.count(in: .all) == 100)
    }

    // MARK: Measuring

    @Test func `the cache saves calls`() async throws {
      let base = MemoryStore<Int>()
      try base.apply([.set("7", 7)])

      // snippet.how-do-i-see-what-is
      let backend = base.metered(as: "backend")
      let store = backend.cached().metered(as: "store")

      for _ in 1...3 { _ = try await store.value(forKey: "7") }
      print(store.report())  // three reads, as callers see them
      print(backend.report())  // the one that the cache has not saved
      // snippet.end

      #expect(store.report()["value"]?.count == 3)
      #expect(backend.report()["value"]?.count == 1)
    }

    // MARK: Encryption

    @Test func `values are encrypted`() async throws {
      let temporary = try TemporaryFolder()
      let (folder, keyFolder) = (temporary.path, temporary.path)
      for isFirstStart in [true, false] {
        // snippet.how-do-i-encrypt-values
        let ring = try await KeyRing.open(in: .file(keyFolder + "/keys.json"), createsIfMissing: isFirstStart)
        let notes = try await SQLiteStore(
          path: folder + "/notes.sqlite", codec: .json(Note.self).encrypted(with: ring, purpose: "notes"))
        try await notes.checkingValues()
        // snippet.end

        if isFirstStart {
          try await notes.setValue(Note(text: "meet at the pier"), forKey: "7")
        }
        #expect(try notes.value(forKey: "7") == Note(text: "meet at the pier"))
        #expect(notes.information.valuesAtRest == .encrypted)
        try await notes.close()
      }
      let bytes = try Data(contentsOf: URL(filePath: folder + "/notes.sqlite"))
      #expect(bytes.range(of: Data("pier".utf8)) == nil)
    }
  }
}
#endif
