#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderBatching
import LarderCBOR
import LarderCache
import LarderExpiry
import LarderLMDB
import LarderMetrics
import LarderTesting
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Larder/Larder.docc/Composing.md`.
///
/// `Scripts/guide-code` writes it into the guide.
///
/// ``StackOrderTests`` tests the guide's claims about order, and ``StackConformance`` those about whole stacks.
@Suite struct ComposingGuideTests {
  private struct Session: Codable, Sendable, Equatable {
    var user: String
  }
  private struct User: Codable, Sendable, Equatable {
    var name: String
  }
  private struct Order: Codable, Sendable, Equatable {
    var item: String
  }
  private struct Position: Codable, Sendable {
    var latitude: Double
  }

  private let guest = Session(user: "guest")
  private let position = Position(latitude: 59.9)

  private func log(_ text: String) {
    Issue.record("unexpected failure: \(text)")
  }

  @Test func `the recommended stack`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    // snippet.the-order-3
    let backend = try await LMDBStore(path: folder + "/sessions", codec: .cbor(Session.self).expiring())
      .metered(as: "backend")  // calls that reach the store
    let sessions =
      backend
      .batched()  // many writers share a commit
      .cached()  // frequently used values stay in memory
      .expiring(.sliding(.seconds(1800)))  // checks the deadline of every hit
      .metered(as: "sessions")  // calls as callers see them
    // snippet.end
    try await sessions.setValue(Session(user: "Ada"), forKey: "7f3a")
    #expect(try await sessions["7f3a"] == Session(user: "Ada"))

    // snippet.the-order-2
    try await sessions.touch("7f3a", timeToLive: .after(.seconds(60)))
    try sessions.invalidate("7f3a")
    let statistics = try await sessions.storeStatistics()
    // snippet.end
    #expect(statistics.entryCount == 1)

    // snippet.the-order
    let expiring = sessions.base
    try await expiring.setValue(guest, forKey: "8", timeToLive: .after(.seconds(600)))
    print(expiring.base.statistics().hitRatio)
    // snippet.end
    #expect(try await sessions["8"] == guest)
    #expect(sessions.report()["apply"]?.count == 1)
    #expect(backend.report()["apply"]?.count == 2)

    try await sessions.close()
    await expectStoreError(.closed) { try await backend.value(forKey: "8") }
    try location.remove()
  }

  @Test func `caches over views`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    // snippet.problems-of-other-orders
    let bytes = try await LMDBStore(path: folder + "/shop", codec: .raw).batched()
    let users = bytes.typed(User.self, prefix: "user/").cached()
    let orders = bytes.typed(Order.self, prefix: "order/").cached()
    // snippet.end
    try await users.setValue(User(name: "Ada"), forKey: "1")
    try await orders.setValue(Order(item: "lamp"), forKey: "1")
    #expect(try await users["1"] == User(name: "Ada"))
    #expect(try await orders["1"] == Order(item: "lamp"))
    #expect(users.statistics().hits == 1 && orders.statistics().hits == 1)
    try await bytes.close()
    try location.remove()
  }

  @Test func `write behind in a stack`() async throws {
    // snippet.when-write-behind-fails
    let backend = MemoryStore<Expiring<Position>>().metered(as: "backend")
    let later = backend.cached().writeBehind { failure in
      log("\(failure.changes.count) positions were not written: \(failure.error)")
    }
    let positions = later.expiring(.after(.seconds(3600))).metered(as: "positions")
    try await positions.setValue(position, forKey: "vehicle:7")
    try await positions.flush()
    print(later.statistics().failedChanges, later.takeFailures().count)
    // snippet.end
    #expect(backend.report()["apply"]?.count == 1)
    try await positions.close()
  }

  @Test func `a stack is passed as the capability its user needs`() async throws {
    func stack() -> some DataStore<Session> & ExpirableStore {
      MemoryStore<Expiring<Session>>().cached().expiring(.after(.seconds(60)))
    }
    let sessions = stack()
    try await sessions.setValue(guest, forKey: "7")
    #expect(try await sessions.touch("7"))
  }
}
#endif
