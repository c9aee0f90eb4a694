import LarderTesting
import Testing

@testable import Larder

/// The memory of an order of use, and a walk through it, without a store.
@Suite struct OrderOfUseTests {
  private let now: Int64 = 1_000_000_000
  private let interval: Int64 = 600_000_000

  @Test func `uses are remembered for a limited number of keys`() {
    var recent = RecentUses(interval: .seconds(600))
    let limit = RecentUses.generationSize
    for number in 0..<(3 * limit) {
      let isDue = recent.note(StoreKey(integer: number), persisted: now, at: now)
      #expect(!isDue)
    }
    #expect((0..<(3 * limit)).filter { recent.isRecent(StoreKey(integer: $0)) } == Array(limit..<(3 * limit)))
    recent.settle(StoreKey(integer: 3 * limit - 1), at: now)
    recent.forget(StoreKey(integer: 3 * limit - 2))
    #expect(!recent.isRecent(StoreKey(integer: 3 * limit - 1)) && !recent.isRecent(StoreKey(integer: 3 * limit - 2)))
    // A clock that was set back makes a use due.
    let isDue = recent.note("c", persisted: now + 1, at: now)
    #expect(isDue)
  }

  /// Records a use that is due, and returns whether a batch must be started.
  private func note(_ key: StoreKey, at time: Int64, _ pending: inout PendingUses) -> Bool {
    pending.append(key, at: time) && pending.schedule(at: time)
  }

  @Test func `a batch is due when it is full or has waited`() {
    var pending = PendingUses(delay: .seconds(600))
    let starts = (0..<OrderOfUse.batchSize).map { note(StoreKey(integer: $0), at: now, &pending) }
    #expect(starts.firstIndex(of: true) == OrderOfUse.batchSize - 1)
    let isStartedTwice = note("b", at: now, &pending)
    #expect(!isStartedTwice)
    // The rest is not due.
    #expect([pending.takeBatch(at: now), pending.takeBatch(at: now)].map(\.count) == [OrderOfUse.batchSize, 0])
    #expect(pending.takeBatch(at: now, all: true) == ["b"])
    let isStartedEarly = note("c", at: now, &pending)
    #expect(!isStartedEarly)
    let isStarted = note("d", at: now + interval, &pending)
    #expect(isStarted)
    #expect(pending.takeBatch(at: now + interval) == ["c", "d"])
  }

  @Test func `without a delay the first due use starts a batch`() {
    var pending = PendingUses(delay: .zero)
    let starts = ["a", "b"].map { note($0, at: now, &pending) }
    #expect(starts == [true, false])
    #expect([pending.takeBatch(at: now), pending.takeBatch(at: now)] == [["a", "b"], []])
  }

  @Test func `the last of two uses in a batch counts`() {
    var pending = PendingUses(delay: .seconds(6000))
    for (number, key) in ["a", "b", "a"].enumerated() {
      _ = note(StoreKey(key), at: now + Int64(number) * interval, &pending)
    }
    #expect(pending.takeBatch(at: now + interval, all: true) == ["b", "a"])
  }

  /// A use that is not due takes no common lock, and starts no batch that has waited.
  @Test func `only a use that is due starts a batch`() {
    let order = OrderOfUse(interval: .seconds(600), collectingFor: .seconds(60))
    let starts = [
      order.note("a", at: now), order.note("a", at: now + interval / 2), order.note("a", at: now + interval),
    ]
    #expect(starts == [false, false, true])
  }

  @Test func `a use without room is due again`() async throws {
    let order = OrderOfUse(interval: .seconds(600))
    let written = Locked<[StoreKey]>([])
    func settle() async {
      await order.settle(at: now) { keys in
        written.withLock { $0 += keys }
        return true
      }
    }
    for number in 0..<PendingUses.limit { _ = order.note(StoreKey(integer: number), at: now) }
    _ = order.note("late", at: now)
    await settle()
    #expect(written.withLock { $0 } == (0..<PendingUses.limit).map { StoreKey(integer: $0) })
    // The use counts in memory.
    var evicted: [StoreKey] = []
    let spared = try await order.evict(
      in: .all, page: { _ in (["late", "other"], nil) }, until: { !evicted.isEmpty }, key: { $0 },
      { evicted.append($0) })
    #expect(spared == ["late"] && evicted == ["other"])
    _ = order.note("late", at: now + 1)
    await settle()
    #expect(written.withLock { $0.last } == "late")
  }

  @Test func `no use by one of several tasks is lost`() async {
    let order = OrderOfUse(interval: .seconds(600))
    let now = now
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<4 {
        group.addTask {
          // Half of the keys are those of another task.
          for number in task * 500..<task * 500 + 1000 { _ = order.note(StoreKey(integer: number), at: now) }
        }
      }
    }
    let written = Locked<[StoreKey]>([])
    await order.settle(at: now) { keys in
      written.withLock { $0 += keys }
      return true
    }
    #expect(written.withLock { $0.sorted() } == (0..<2500).map { StoreKey(integer: $0) })
  }

  @Test func `settling writes batches until one fails`() async {
    let order = OrderOfUse(interval: .seconds(600))
    let written = Locked<[Int]>([])
    @Sendable func write(_ keys: [StoreKey]) async -> Bool {
      written.withLock { written in
        written.append(keys.count)
        return written.count != 2
      }
    }
    let starts = (0..<300).filter { order.note(StoreKey(integer: $0), at: now) }
    #expect(starts == [127])
    // The second batch fails.
    await order.settle(at: now, write)
    #expect(written.withLock { $0 } == [128, 128])
    await order.settle(at: now, write)
    #expect(written.withLock { $0 } == [128, 128, 44])
  }

  @Test func `without a delay everything is written`() async {
    let order = OrderOfUse(interval: .seconds(600), collectingFor: .zero)
    for number in 0..<300 { _ = order.note(StoreKey(integer: number), persisted: 0, at: now) }
    let counts: [Int] = await withCheckedContinuation { continuation in
      let written = Locked<[Int]>([])
      order.startWriting(at: now) { keys in
        let counts = written.withLock { written in
          written.append(keys.count)
          return written
        }
        if counts.reduce(0, +) == 300 { continuation.resume(returning: counts) }
        return true
      }
    }
    #expect(counts == [128, 128, 44])
  }

  /// A use that another task is about to write is written when the method returns.
  @Test func `settling waits for writes that run`() async {
    let order = OrderOfUse(interval: .seconds(600))
    let written = Locked<[StoreKey]>([])
    let (stream, go) = AsyncStream.makeStream(of: Void.self)
    for number in 0..<128 { _ = order.note(StoreKey(integer: number), at: now) }
    order.startWriting(at: now) { keys in
      for await _ in stream { break }
      written.withLock { $0 += keys }
      return true
    }
    async let settled: Void = order.settle(at: now) { keys in
      written.withLock { $0 += keys }
      return true
    }
    go.yield()
    await settled
    #expect(written.withLock { $0.count } == 128)
  }

  /// Evicts a number of the entries "a" to "f" of which some were used.
  private func walk(
    evicting count: Int, used: [StoreKey], passingOver skipped: StoreKey? = nil
  ) async throws -> (evicted: [StoreKey], spared: [StoreKey]) {
    let order = OrderOfUse(interval: .seconds(600))
    for key in used { _ = order.note(key, at: now) }
    let keys: [StoreKey] = ["a", "b", "c", "d", "e", "f"]
    var evicted: [StoreKey] = []
    let spared = try await order.evict(
      in: .all,
      page: { range in
        let page = Array(keys.filter { range.contains($0) }.prefix(2))
        return (page, page.count < 2 ? nil : page.last.map { range.after($0) })
      },
      until: { evicted.count >= count }, key: { $0 == skipped ? nil : $0 }, { evicted.append($0) })
    return (evicted, spared)
  }

  @Test func `used entries are spared as long as there are others`() async throws {
    var result = try await walk(evicting: 2, used: ["a", "c"])
    #expect(result.evicted == ["b", "d"] && result.spared == ["a", "c"])
    result = try await walk(evicting: 5, used: ["a", "c"])
    #expect(result.evicted == ["b", "d", "e", "f", "a"] && result.spared == ["c"])
    result = try await walk(evicting: 9, used: [], passingOver: "c")
    #expect(result.evicted == ["a", "b", "d", "e", "f"] && result.spared == [])
    result = try await walk(evicting: 0, used: ["a"])
    #expect(result.evicted == [] && result.spared == [])
  }

  @Test func `an entry with a new place is no longer spared`() async throws {
    let order = OrderOfUse(interval: .seconds(600))
    _ = order.note("a", at: now)
    order.finish(placed: ["a"], at: now)
    var evicted: [StoreKey] = []
    let spared = try await order.evict(
      in: .all, page: { _ in (["a"], nil) }, until: { !evicted.isEmpty }, key: { $0 }, { evicted.append($0) })
    #expect(evicted == ["a"] && spared == [])
  }

  @Test func `the first use after a place is due after the interval`() {
    var recent = RecentUses(interval: .seconds(600))
    recent.settle("a", at: now)
    #expect(!recent.isRecent("a"))
    var dues = [recent.note("a", at: now), recent.note("a", at: now + interval - 1)]
    #expect(recent.isRecent("a"))
    dues += [recent.note("a", at: now + interval), recent.note("a", at: now + interval)]
    #expect(dues == [false, false, true, false])
    recent.settle("b", at: now)
    recent.forget("b")
    let isForgotten = recent.note("b", at: now)
    #expect(isForgotten)
  }

  @Test func `places are remembered for a limited number of keys`() {
    var recent = RecentUses(interval: .seconds(600))
    let limit = RecentUses.generationSize
    for number in 0...2 * limit { recent.settle(StoreKey(integer: number), at: now) }
    let dues = [recent.note(StoreKey(integer: limit), at: now), recent.note(StoreKey(integer: 0), at: now)]
    #expect(dues == [false, true])
  }
}
