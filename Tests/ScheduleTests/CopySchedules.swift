import Larder
import LarderCache
import LarderObservation
import LarderTesting
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
  @Test(arguments: [false, true]) func aReportedWriteIsSeenAtOnce(isEager: Bool) async throws {
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

  /// A cache on disk: a read that begins after a write through it sees that write, and a write beside it when copies from before
  /// have reached their maximum age.
  @Test func aForeignWriteIsSeenInTime() async throws {
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
