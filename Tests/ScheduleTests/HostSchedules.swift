import Foundation
import Larder
import LarderCache
import LarderObservation
import LarderTesting
import TestSupport
import Testing

/// Caches over a store that other hosts write to, in many schedules.
///
/// The reports of their writes come late, twice, or only as "anything may have changed".
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct HostSchedules {
  /// A store of which this host hears late what others write.
  private final class DistantStore: ForwardingStore, ObservableStore {
    typealias Value = Int

    /// The state of the reader of the changes of other hosts.
    private struct State {
      var unreported: [StoreKey] = []
      /// The time until which all commits are reported.
      var completeUntil: Duration?
    }

    let base: ObservingStore<FaultyStore<MemoryStore<Int>>>
    let elapsed: ElapsedTime
    private let memory: MemoryStore<Int>
    private let clock: any Clock<Duration>
    private let state = Locked(State())
    private let observers = StoreObservers()

    init(_ context: ScheduledContext) {
      var plan = FaultPlan(seed: context.seed)
      plan.schedule(.yields(upTo: 2), probability: 0.5)
      memory = MemoryStore<Int>()
      base = memory.faulty(plan: plan, clock: context.clock).observable()
      clock = context.clock
      elapsed = ElapsedTime(by: context.clock)
    }

    var information: StoreInformation {
      var information = base.information
      information.sharing = .betweenHosts
      information.reportedCommits = .ofAllHosts
      return information
    }

    func forward<Result>(
      _ operation: StoreOperation, of key: StoreKey?, _ body: nonisolated(nonsending) () async throws -> Result
    ) async throws -> Result {
      try await body()
    }

    func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
      let (own, others) = (base.observe(range, observer), observers.add(range, observer))
      return StoreObservation(lag: { [self] in lag }) {
        own.cancel()
        others.cancel()
      }
    }

    private var lag: Duration {
      state.withLock { $0.completeUntil }.map { elapsed.duration - $0 } ?? .seconds(Int64.max)
    }

    /// Increases a number on another host, and returns it.
    func increaseAbroad(_ key: StoreKey) async throws -> Int {
      let value = try await memory.update(key) { slot -> Int in
        slot = (slot ?? 0) + 1
        return slot ?? 0
      }
      state.withLock { $0.unreported.append(key) }
      return value
    }

    /// Reports the writes of other hosts again and again, until the task is cancelled.
    func follow(_ context: ScheduledContext) async throws {
      var generator = context.generator("reports")
      var hasLost = false
      while true {
        // Sometimes, the connection is lost for some seconds.
        let isOutage = Int.random(in: 0..<5, using: &generator) == 0
        let pause =
          isOutage ? Int.random(in: 1000...3000, using: &generator) : Int.random(in: 10...600, using: &generator)
        try await clock.sleep(for: .milliseconds(pause))
        let start = elapsed.duration
        var keys = state.withLock { state in
          defer { state.unreported = [] }
          return state.unreported
        }
        await context.pause(upTo: 2, &generator)
        if isOutage, !hasLost, Bool.random(using: &generator) {
          // The keys are lost, too.
          hasLost = true
          continue
        }
        if hasLost {
          observers.report([.range(.all)])
          hasLost = false
        } else {
          if Bool.random(using: &generator) { keys += keys }
          for key in keys {
            observers.report([.key(key)])
            await context.pause(upTo: 1, &generator)
          }
        }
        state.withLock { $0.completeUntil = start }
      }
    }
  }

  /// The values of a number when writes returned.
  private final class Returned: Sendable {
    private let own = Locked(0)
    private let abroad = Locked<[(value: Int, time: Duration)]>([])

    func noteOwn(_ value: Int) { own.withLock { $0 = max($0, value) } }
    func noteAbroad(_ value: Int, at time: Duration) { abroad.withLock { $0.append((value, time)) } }

    /// The lowest value that a read may have that begins now.
    func least(at time: Duration) -> Int {
      let old = abroad.withLock { values in values.filter { $0.time + .seconds(1) < time }.map(\.value).max() ?? 0 }
      return max(own.withLock(\.self), old)
    }
  }

  /// Runs writers of two hosts and readers of one.
  ///
  /// - Parameters:
  ///   - name: The name of the trial.
  ///   - regressions: Schedules that failed once. Defaults to an empty list.
  ///   - makeCache: A closure that returns the cache.
  private static func run<Cache: DataStore<Int>>(
    _ name: String, regressions: [String] = [],
    _ makeCache: @escaping @Sendable (DistantStore, ScheduledContext) throws -> Cache
  ) async throws {
    try await runSchedules(name, regressions: regressions) { context in
      context.mayPassTime()
      let store = DistantStore(context)
      let cache = try makeCache(store, context)
      let returned = Returned()
      let key: StoreKey = "n"
      let following = Task { try await store.follow(context) }
      try await concurrently(4) { task in
        var generator = context.generator("task \(task)")
        for _ in 0..<(task < 2 ? 4 : 10) {
          try await context.clock.sleep(for: .milliseconds(Int.random(in: 0...700, using: &generator)))
          await context.pause(upTo: 3, &generator)
          switch task {
          case 0:
            let value = try await store.increaseAbroad(key)
            returned.noteAbroad(value, at: store.elapsed.duration)
          case 1 where Bool.random(using: &generator):
            let value = try await cache.update(key) { slot -> Int in
              slot = (slot ?? 0) + 1
              return slot ?? 0
            }
            returned.noteOwn(value)
          case 1:
            // Reads as part of an update that changes nothing.
            _ = try await cache.update(deciding: [key]) { .discard($0[0]) }
          default:
            let least = returned.least(at: store.elapsed.duration)
            let value = try await cache.value(forKey: key) ?? 0
            guard value >= least else { throw Wrong("read \(value) after \(least)") }
          }
        }
      }
      following.cancel()
      _ = await following.result
    }
  }

  @Test func `no read of a cache is older than a second`() async throws {
    try await Self.run("a cache beside another host") { store, context in store.cached(clock: context.clock) }
  }

  @Test func `no read of a cache that refreshes is older than a second`() async throws {
    try await Self.run("a refreshing cache beside another host") { store, context in
      store.cached(
        CachedStoreConfiguration(refreshAfter: .milliseconds(100), negativeTimeToLive: .seconds(5)),
        clock: context.clock)
    }
  }

  @Test func `no read of a tiered store is older than a second`() async throws {
    // A write took the report of the other host for its own: before it removed its copy, and after it inserted one.
    try await Self.run("copies beside another host", regressions: ["19366", "21410"]) { store, context in
      let start = ElapsedTime(by: context.clock)
      return try store.cached(
        in: context.slowStore(number: 1), codec: .json(Int.self),
        configuration: TieredStoreConfiguration(timeToLive: .seconds(3600))
      ) { Date(timeIntervalSince1970: 1_000_000 + Double(start.duration.wholeMicroseconds) / 1e6) }
    }
  }
}
