import Larder
import LarderCache
import LarderObservation
import LarderTesting
import TestSupport
import Testing

/// Caches in many schedules, over a base that is also written beside them.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct CopySchedules {
  /// The states of one key, which one writer changes: it has number after number, and every fourth state is its absence.
  private struct States: Sendable {
    /// The number of the last state that was begun.
    var begun = 0
    /// The number of the oldest state that a read may return.
    var oldest = 0
    /// The time when the write of each state returned, beginning with that of state 0.
    var times: [Duration] = [.zero]

    static func value(of state: Int) -> Int? { state.isMultiple(of: 4) ? nil : state }

    /// Returns whether a state that was begun has a value, from a number on.
    func isAny(_ value: Int?, from oldest: Int) -> Bool {
      (oldest...max(oldest, begun)).contains { States.value(of: $0) == value }
    }
  }

  private final class Model: Sendable {
    let states = Shared([States](repeating: States(), count: 2))

    func key(_ index: Int) -> StoreKey { StoreKey("\(index)") }

    /// Writes the next state of a key.
    ///
    /// - Parameter isSeen: A Boolean value that indicates whether every read that begins after the write sees it.
    func write(
      _ index: Int, to store: some DataStore<Int>, isSeen: Bool, _ clock: ManualClock,
      _ generator: inout SeededGenerator
    ) async throws {
      let state = states.change { states in
        states[index].begun += 1
        return states[index].begun
      }
      let value = States.value(of: state)
      if Bool.random(using: &generator) {
        try await store.apply([value.map { .set(key(index), $0) } ?? .remove(key(index))])
      } else {
        try await store.update(key(index)) { $0 = value }
      }
      states.change { states in
        if isSeen { states[index].oldest = max(states[index].oldest, state) }
        states[index].times.append(clock.now.offset)
      }
    }

    /// Throws if a value is not that of a state which a read may return.
    ///
    /// - Parameter oldest: The oldest state that it may return.
    func check(_ value: Int?, of index: Int, since oldest: Int) throws {
      try states.change { states in
        guard states[index].isAny(value, from: oldest) else {
          throw Wrong("key \(index): \(value.map(String.init) ?? "none") in states \(oldest)...\(states[index].begun)")
        }
      }
    }
  }

  /// A cache whose base reports its changes: a read that begins after a write has returned sees it, also if the write was made
  /// beside the cache.
  ///
  /// Until then, a read that misses the cache may see it, and a later one not.
  @Test(arguments: [false, true]) func `a reported write is seen at once`(isEager: Bool) async throws {
    try await runSchedules("a cache beside writers\(isEager ? ", eager" : "")") { context in
      let base = context.slowStore(of: Int.self).observable()
      var configuration = CachedStoreConfiguration<Int>(entryLimit: 2)
      configuration.negativeTimeToLive = .seconds(3600)
      if isEager { configuration.refreshAfter = .zero }
      let cache = base.cached(configuration, clock: context.clock)
      let model = Model()
      try await concurrently(4) { task in
        var generator = context.generator("task \(task)")
        for _ in 0..<6 {
          await context.pause(upTo: 3, &generator)
          if task < 2 {
            if Bool.random(using: &generator) {
              try await model.write(task, to: base, isSeen: true, context.clock, &generator)
            } else {
              try await model.write(task, to: cache, isSeen: true, context.clock, &generator)
            }
            continue
          }
          let index = Int.random(in: 0..<2, using: &generator)
          let oldest = model.states.value[index].oldest
          let value =
            if Bool.random(using: &generator) {
              try await cache.value(forKey: model.key(index))
            } else {
              try await cache.values(forKeys: [model.key(index), "other"])[0]
            }
          try model.check(value, of: index, since: oldest)
        }
      }
    }
  }

  /// One key that is written through a cache and beside it at the same time: a read that begins after a write has returned sees no
  /// value that was replaced before that write began.
  @Test func `a write beside a busy key is seen`() async throws {
    try await runSchedules("two writers of a cached key") { context in
      let base = context.slowStore(of: Int.self).observable()
      let cache = base.cached(clock: context.clock)
      let log = Shared(WriteLog())
      try await base.setValue(0, forKey: "key")
      _ = try await cache.value(forKey: "key")
      try await concurrently(4) { task in
        var generator = context.generator("task \(task)")
        for number in 1...5 {
          await context.pause(upTo: 3, &generator)
          if task < 2 {
            let value = task * 100 + number
            log.change { $0.begin(value) }
            if task == 0 {
              try await cache.setValue(value, forKey: "key")
            } else {
              try await base.setValue(value, forKey: "key")
            }
            log.change { $0.end(value) }
          } else {
            let start = log.change { $0.tick() }
            let value = try await cache.value(forKey: "key")
            guard let value, log.value.isCurrent(value, at: start) else {
              throw Wrong("\(value.map(String.init) ?? "none") at \(start) after \(log.value)")
            }
          }
        }
      }
    }
  }

  /// The times at which writes of one key began and ended.
  private struct WriteLog: Sendable {
    private var time = 1
    private var writes: [Int: (start: Int, end: Int)] = [0: (0, 1)]

    mutating func tick() -> Int {
      time += 1
      return time
    }

    mutating func begin(_ value: Int) { writes[value] = (tick(), .max) }

    mutating func end(_ value: Int) {
      let now = tick()
      writes[value]?.end = now
    }

    /// Returns whether no write that had ended at a time had begun after the end of the write of a value.
    func isCurrent(_ value: Int, at time: Int) -> Bool {
      guard let write = writes[value] else { return false }
      return !writes.values.contains { $0.end < time && $0.start > write.end }
    }
  }

  /// A value that was set is in the cache until its time to live has passed, also if readers find its expired predecessor.
  @Test func `a new value is not taken for its expired predecessor`() async throws {
    try await runSchedules("values that expire") { context in
      let cache = MemoryCache<String, Int>(timeToLive: CacheTimeToLive(afterWrite: .seconds(1)), clock: context.clock)
      cache.setValue(0, forKey: "key")
      try await context.clock.sleep(for: .seconds(2))
      try await concurrently(3) { task in
        guard task == 0 else {
          _ = cache.value(forKey: "key")
          return
        }
        cache.setValue(1, forKey: "key")
        guard cache.value(forKey: "key") == 1 else { throw Wrong("the new value is gone") }
        await Task.yield()
        guard cache.value(forKey: "key") == 1 else { throw Wrong("the new value is gone after a while") }
      }
    }
  }

  /// A cache on disk: a read that begins after a write through it sees that write, and a write beside it when copies from before
  /// have reached their maximum age.
  @Test func `a foreign write is seen in time`() async throws {
    try await runSchedules("a cache on disk beside writers") { context in
      let base = context.slowStore(of: Int.self)
      let (maximumAge, negativeAge) = (Duration.seconds(10), Duration.seconds(4))
      let cache = try base.cached(
        in: context.slowStore(number: 1), codec: .json(Int.self),
        configuration: TieredStoreConfiguration(
          timeToLive: maximumAge, refreshAfter: context.seed.isMultiple(of: 2) ? .seconds(2) : nil,
          negativeTimeToLive: negativeAge),
        now: { context.clock.date })
      let model = Model()
      try await concurrently(4) { task in
        var generator = context.generator("task \(task)")
        for _ in 0..<6 {
          try await context.clock.sleep(for: .seconds(Int.random(in: 0...5, using: &generator)))
          if task < 2 {
            if Bool.random(using: &generator) {
              try await model.write(task, to: base, isSeen: false, context.clock, &generator)
            } else {
              try await model.write(task, to: cache, isSeen: true, context.clock, &generator)
            }
            continue
          }
          let index = Int.random(in: 0..<2, using: &generator)
          let (states, now) = (model.states.value[index], context.clock.now.offset)
          let value = try await cache.value(forKey: model.key(index))
          let age = value == nil ? negativeAge : maximumAge
          // A state was replaced when the next one was written.
          let inTime = states.times.indices.dropFirst().last { states.times[$0] < now - age } ?? 0
          try model.check(value, of: index, since: max(states.oldest, inTime))
        }
      }
    }
  }
}
