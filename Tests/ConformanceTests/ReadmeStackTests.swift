#if LMDB && Metrics
import LarderKit
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

/// The stack of the README, with the two imports that it needs.
///
/// The other imports are those of the test.
@Suite struct ReadmeStackTests {
  @Test func `the stack of the readme works`() async throws {
    struct Session: Codable, Sendable {
      var user: String
    }
    let location = try ConformanceLocation()
    let folder = location.folder
    // snippet.build-a-stack
    let sessions = try await LMDBStore(path: folder + "/sessions", codec: .cbor(Session.self).expiring())
      .batched()  // many writers share a commit
      .cached()  // frequently used values stay in memory
      .expiring(.sliding(.seconds(1800)))  // outside of the cache, which could serve expired values
      .metered()  // calls as callers see them

    try await sessions.setValue(Session(user: "Ada"), forKey: "7f3a")
    try await sessions.touch("7f3a")
    print(sessions.report())
    // snippet.end
    #expect(try await sessions.value(forKey: "7f3a")?.user == "Ada")
    #expect(sessions.report()["touch"]?.count == 1)
    try await sessions.close()
    try location.remove()
  }
}
#endif
