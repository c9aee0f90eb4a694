#if HTTPCache
import Testing

@testable import LarderHTTPCache

@Suite struct PendingInvalidationsTests {
  @Test func anInvalidationMatchesItsURLs() {
    typealias Invalidation = PendingInvalidations.Invalidation
    #expect(Invalidation.url("https://a/1").matches("https://a/1"))
    #expect(!Invalidation.url("https://a/1").matches("https://a/10"))
    #expect(!Invalidation.url("https://a/\u{E9}").matches("https://a/e\u{301}"), "bytes are compared")
    #expect(Invalidation.prefix("https://a/1").matches("https://a/10"))
    #expect(!Invalidation.prefix("https://a/1").matches("https://a/2"))
    #expect(Invalidation.everything.matches("https://a/"))
  }

  @Test func anInvalidationIsPendingUntilItIsCarriedOut() {
    var pending = PendingInvalidations()
    let first = pending.insert(.url("https://a/1"))
    let second = pending.insert(.url("https://a/1"))
    #expect(pending.failed.isEmpty, "both are under way")
    pending.remove(first)
    #expect(pending.matches("https://a/1"), "the second one is newer than what the first one has removed")
    pending.noteFailure(of: second)
    #expect(pending.failed.map(\.number) == [second.number])
    #expect(pending.matches("https://a/1"))
    pending.remove(second)
    #expect(!pending.matches("https://a/1"))
    #expect(pending.failed.isEmpty)
  }

  @Test func tooManyBecomeOneOfEverything() {
    var pending = PendingInvalidations()
    for index in 0..<PendingInvalidations.maximumCount {
      pending.noteFailure(of: pending.insert(.url("https://a/\(index)")))
    }
    #expect(!pending.matches("https://b/"))
    let all = pending.insert(.url("https://a/x"))
    #expect(pending.matches("https://b/"))
    #expect(pending.entries.count == 1)
    pending.remove(all)
    #expect(!pending.matches("https://a/1"))
  }
}
#endif
