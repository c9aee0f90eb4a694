#if HTTPCache
import Testing

@testable import LarderHTTPCache

@Suite struct PendingInvalidationsTests {
  @Test func `an invalidation matches its URLs`() {
    typealias Invalidation = PendingInvalidations.Invalidation
    #expect(Invalidation.url("https://a/1").matches("https://a/1"))
    #expect(!Invalidation.url("https://a/1").matches("https://a/10"))
    #expect(!Invalidation.url("https://a/\u{E9}").matches("https://a/e\u{301}"), "bytes are compared")
    #expect(Invalidation.prefix("https://a/1").matches("https://a/10"))
    #expect(!Invalidation.prefix("https://a/1").matches("https://a/2"))
    #expect(Invalidation.everything.matches("https://a/"))
  }

  @Test func `an invalidation is pending until it is carried out`() {
    var pending = PendingInvalidations()
    let first = pending.insert(.url("https://a/1"))
    let second = pending.insert(.url("https://a/1"))
    do { let isDue = pending.beginRepeating { .zero }; #expect(!isDue, "both are under way") }
    pending.remove(first)
    #expect(pending.matches("https://a/1"), "the second one is newer than what the first one has removed")
    pending.noteFailure(of: second)
    #expect(pending.matches("https://a/1"))
    do { let isDue = pending.beginRepeating { .zero }; #expect(isDue) }
    do { let isDue = pending.beginRepeating { .zero }; #expect(!isDue, "one worker repeats them") }
    do { let entry = pending.claim(); #expect(entry?.number == second.number) }
    #expect(pending.matches("https://a/1"), "it is under way")
    pending.remove(second)
    #expect(!pending.matches("https://a/1"))
    do { let entry = pending.claim(); #expect(entry == nil) }
    do { let isDue = pending.beginRepeating { .zero }; #expect(!isDue, "nothing is left") }
  }

  @Test func `the same invalidation is repeated once`() {
    var pending = PendingInvalidations()
    for _ in 0..<10 { pending.noteFailure(of: pending.insert(.url("https://a/1"))) }
    #expect(pending.entries.count == 1)
    let (one, other) = (pending.insert(.url("https://a/2")), pending.insert(.url("https://a/2")))
    pending.noteFailure(of: other)
    pending.noteFailure(of: one)
    #expect(pending.entries.map(\.invalidation) == [.url("https://a/1"), .url("https://a/2")])
    _ = pending.insert(.everything)
    #expect(pending.entries.map(\.invalidation) == [.everything])
  }

  @Test func `one that always fails does not hold up the others`() {
    var pending = PendingInvalidations()
    for index in 0..<100 { pending.noteFailure(of: pending.insert(.url("https://a/\(index)"))) }
    var attempts = 0
    for second in 0..<3 {
      guard pending.beginRepeating(at: { .seconds(second) }) else { continue }
      while let entry = pending.claim() {
        attempts += 1
        if entry.invalidation == .url("https://a/0") {
          pending.noteFailure(of: entry)
          pending.noteFailedRepetition(at: .seconds(second))
          let isDue = pending.beginRepeating { .milliseconds(second * 1_000 + 999) }
          #expect(!isDue, "the store is left alone for a while")
        } else {
          pending.remove(entry)
        }
      }
    }
    #expect(pending.entries.map(\.invalidation) == [.url("https://a/0")])
    #expect(attempts == 102)
  }

  @Test func `invalidations under way are not too many`() {
    var pending = PendingInvalidations()
    for index in 0...PendingInvalidations.maximumCount { _ = pending.insert(.url("https://a/\(index)")) }
    #expect(!pending.matches("https://b/"))
  }

  @Test func `too many become one of everything`() {
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
