import Larder
import LarderExpiry
import LarderTesting
import TestSupport
import Testing

/// Entries that expire in many schedules: one that is live is found, and a new one is not removed with its predecessor.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct ExpirySchedules {
  /// Several purges run while expired entries are set again.
  @Test func `a purge removes no new entry`() async throws {
    try await runSchedules("a purge beside writes") { context in
      let store = context.slowStore(of: Expiring<Int>.self).expiring(.after(.seconds(10)), now: { context.clock.date })
      let keys = (0..<3).map { StoreKey("\($0)") }
      for key in keys { try await store.setValue(0, forKey: key) }
      try await context.clock.sleep(for: .seconds(11))
      try await concurrently(4) { task in
        var generator = context.generator("task \(task)")
        await context.pause(upTo: 4, &generator)
        guard task < keys.count else {
          for _ in 0..<2 { _ = try await store.purgeExpired(limit: 2) }
          return
        }
        let key = keys[task]
        if Bool.random(using: &generator) {
          try await store.setValue(1, forKey: key)
        } else {
          try await store.update(key) { $0 = 1 }
        }
        guard try await store.value(forKey: key) == 1 else { throw Wrong("\(key) is gone after it was set") }
      }
      let values = try await store.values(forKeys: keys)
      guard values == [1, 1, 1] else { throw Wrong("\(values)") }
    }
  }

  /// A session that is read before its deadline lives for nine tenths of the window at least, while its renewal is still to be
  /// written, is being written, and is written.
  @Test func `a session that is read in time lives on`() async throws {
    // A read overlapped the write of an earlier renewal, and was lost.
    let lostRead =
      "2227 8=1 29=1 113=3 114=6 122=1 124=7 137=5 177=2 183=5 191=12 202=4 211=1 214=1 229=1 232=1 238=10 259=10 292=9 293=1"
    try await runSchedules("sliding deadlines", regressions: [lostRead]) { context in
      context.mayPassTime()
      let store = context.slowStore(of: Expiring<Int>.self).expiring(
        .sliding(.seconds(10)), now: { context.clock.date })
      try await store.setValue(1, forKey: "session")
      // The time at which the last read began, of those that have ended.
      let lastRead = Shared(context.clock.now.offset)
      try await concurrently(3) { task in
        var generator = context.generator("task \(task)")
        for _ in 0..<4 {
          try await context.clock.sleep(for: .seconds(Int.random(in: 3...6, using: &generator)))
          let (renewed, start) = (lastRead.value, context.clock.now.offset)
          let value = try await store.value(forKey: "session")
          let end = context.clock.now.offset
          // A deadline moves only after a tenth of the window.
          guard value == 1 || end - renewed >= .seconds(9) else {
            throw Wrong("the session that was read at \(renewed) is gone at \(end)")
          }
          guard value == 1 else { return }
          // During a slower read, the session may expire.
          if end == start { lastRead.change { $0 = max($0, start) } }
        }
      }
    }
  }
}
