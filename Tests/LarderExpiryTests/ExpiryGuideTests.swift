import Foundation
import Larder
import LarderCBOR
import LarderCache
import LarderExpiry
import LarderJSON
import LarderTesting
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Decorators/LarderExpiry/LarderExpiry.docc/TimeToLive.md`.
///
/// `Scripts/guide-code` writes it into the guide.
@Suite struct ExpiryGuideTests {
  struct Session: Codable, Equatable {
    var user: String
  }

  private let session = Session(user: "Ada")
  private let guest = Session(user: "guest")
  private let robot = Session(user: "robot")

  @Test func `a store of sessions`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    // snippet.overview
    let sessions = try await JSONFileStore(path: folder + "/sessions.json", codec: .json(Session.self).expiring())
      .expiring(.after(.seconds(3600)))

    try await sessions.setValue(session, forKey: "7")  // for an hour
    try await sessions.setValue(guest, forKey: "8", timeToLive: .after(.milliseconds(500)))
    try await sessions.setValue(robot, forKey: "9", timeToLive: .never)
    // snippet.end
    #expect(try await sessions["7"] == session)
    #expect(try await sessions.remainingTime(forKey: "9") == .never)

    // snippet.space
    let purger = sessions.purger(every: .seconds(60))
    let purging = Task { try await purger.run() }
    // When you no longer need it:
    purging.cancel()
    // snippet.end
    try await purging.value

    // snippet.sliding-deadlines
    let statistics = sessions.statistics()
    print(statistics.pendingRenewalCount, statistics.writtenRenewalCount, statistics.droppedRenewalCount)
    if let error = statistics.lastError { print(statistics.failureCount, error) }
    // snippet.end
    #expect(statistics.failureCount == 0)
    try await sessions.close()
    try location.remove()
  }

  @Test func `a count of bytes`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    // snippet.pages-keys-and-counts
    let bytes = try await JSONFileStore(path: folder + "/counted.json", codec: .raw.expiring())
    let sessions = bytes.expiring(.after(.seconds(3600))).typed(Session.self, codec: .cbor())

    try await sessions.setValue(session, forKey: "7", timeToLive: .sliding(.seconds(1800)))
    print(try await sessions.count())  // decodes no session
    // snippet.end

    #expect(try await sessions["7"] == session)
    // Bytes that are no session are counted too, so no session was decoded.
    try await bytes.setValue(Expiring([0xFF]), forKey: "8")
    #expect(try await sessions.count() == 2)
    await expectStoreError(.corrupted) { try await sessions.value(forKey: "8") }
    try await sessions.close()
    try location.remove()
  }

  @Test func `writes with a time to live`() async throws {
    let clock = ManualClock()
    let sessions = MemoryStore<Expiring<Session>>().expiring(.after(.seconds(3600))) { clock.date }
    try await sessions.apply([.set("8", guest), .set("old:1", robot)])
    // snippet.when-an-entry-expires-4
    try await sessions.setValue(session, forKey: "7", timeToLive: .sliding(.seconds(1800)))
    try await sessions.update(["7", "8"], timeToLive: .never) { slots in slots.swapAt(0, 1) }
    // snippet.end
    #expect(try await sessions["8"] == session)
    #expect(try await sessions.remainingTime(forKey: "8") == .never)

    // snippet.when-an-entry-expires-3
    var batch = ExpiringBatch<Session>()
    batch.removeAll(in: .prefix("old:"))
    batch.setValue(session, forKey: "7", timeToLive: .after(.seconds(60)))
    batch.setValue(guest, forKey: "8")  // the store's default
    try await sessions.apply(batch)
    // snippet.end
    #expect(try await sessions.keys(in: .all, limit: 10) == ["7", "8"])
    #expect(try await sessions.remainingTime(forKey: "7") == .after(.seconds(60)))
    #expect(try await sessions.remainingTime(forKey: "8") == .after(.seconds(3600)))

    clock.advance(by: .seconds(10))
    // snippet.when-an-entry-expires-2
    try await sessions.setValueKeepingDeadline(session, forKey: "7")
    // snippet.end
    #expect(try await sessions.remainingTime(forKey: "7") == .after(.seconds(50)))
  }

  @Test func `requests are counted in Windows`() async throws {
    let clock = ManualClock()
    let limits = MemoryStore<Expiring<Int>>().expiring(.after(.seconds(60))) { clock.date }
    @Sendable func count(_ client: StoreKey) async throws -> Int {
      // snippet.when-an-entry-expires
      // Counts requests in windows of one minute that begin with the first request.
      let count = try await limits.updateKeepingDeadlines([client]) { counts in
        counts[0] = (counts[0] ?? 0) + 1
        return counts[0] ?? 0
      }
      // snippet.end
      return count
    }
    var counts: [Int] = []
    for _ in 0..<5 {
      counts.append(try await count("client"))
      clock.advance(by: .seconds(25))
    }
    #expect(counts == [1, 2, 3, 1, 2])
  }

  @Test func `a clock of your own`() async throws {
    // snippet.the-clock
    let clock = ManualClock()  // from LarderTesting
    let store = MemoryStore<Expiring<String>>().expiring(.after(.seconds(1))) { clock.date }
    try await store.setValue("a", forKey: "k")
    clock.advance(by: .seconds(1))
    // snippet.end
    #expect(try await store["k"] == nil)
  }

  @Test func `the order of a stack`() async throws {
    let base = MemoryStore<Expiring<String>>()
    // snippet.place-in-a-stack
    let right = base.cached().expiring(.after(.seconds(60)))
    let wrong = base.expiring(.after(.seconds(60))).cached()
    // snippet.end
    try await wrong.setValue("a", forKey: "k")
    #expect(try await right["k"] == "a")
  }

  @Test func `the forms that are shown`() throws {
    let shown = [
      #"{"expires":1767225600000000,"value":{"name":"Ada"}}"#,
      #"{"expires":1767225600000000,"window":1800000000,"value":{"name":"Ada"}}"#, #"{"value":{"name":"Ada"}}"#,
    ]
    let codec = JSONTextCodec.jsonText.expiring()
    let values = try shown.map { try Array($0.utf8).withUnsafeBytes { try codec.decode($0.bytes) } }
    #expect(values.map(\.deadline?.window) == [nil, .seconds(1800), nil])
    #expect(values.map(\.deadline?.date) == [ManualClock().date, ManualClock().date, nil])
  }
}
