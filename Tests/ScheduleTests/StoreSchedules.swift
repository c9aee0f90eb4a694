import Foundation
import Larder
import LarderBatching
import LarderBounded
import LarderCBOR
import LarderCache
import LarderExpiry
import LarderIndexes
import LarderMirror
import LarderObservation
import LarderTesting
import Testing

/// Decorators and stacks in many schedules: three tasks whose results one order of all operations must explain.
///
/// `LARDER_SCHEDULES` sets the number of schedules of each.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct StoreSchedules {
  private struct Subject: Sendable {
    var name: String
    var open: @Sendable (ScheduledContext) async throws -> AnyDataStore<Int>

    init(_ name: String, open: @escaping @Sendable (ScheduledContext) async throws -> some DataStore<Int>) {
      self.name = name
      self.open = { AnyDataStore(try await open($0)) }
    }
  }

  /// A base that suspends in each operation.
  private static func slow<Value>(_ context: ScheduledContext, _ type: Value.Type = Int.self) -> FaultyStore<
    MemoryStore<Value>
  > {
    var plan = FaultPlan(seed: context.seed)
    plan.schedule(.yields(upTo: 2), probability: 0.5)
    return MemoryStore<Value>().faulty(plan: plan, clock: context.clock)
  }

  /// A small cache that keeps all kinds of entries, and refreshes most of them constantly.
  private static var eager: CachedStoreConfiguration<Int> {
    var configuration = CachedStoreConfiguration<Int>(entryLimit: 2)
    configuration.negativeTimeToLive = .seconds(3600)
    configuration.refreshAfter = .zero
    return configuration
  }

  private static let subjects = [
    Subject("a base that suspends") { slow($0) },
    Subject("a cache") { slow($0).cached(clock: $0.clock) },
    Subject("an eager cache") { slow($0).cached(eager, clock: $0.clock) },
    Subject("a cache of an observable store") { slow($0).observable().cached(clock: $0.clock) },
    Subject("group commit") { slow($0).batched() },
    Subject("write-behind") {
      slow($0).writeBehind(bounds: BatchBounds(changes: 6), maximumAge: .milliseconds(5), clock: $0.clock)
    },
    Subject("a cache over write-behind") {
      slow($0).writeBehind(maximumAge: .milliseconds(5), clock: $0.clock).cached(eager, clock: $0.clock)
    },
    Subject("a mirror") { try MirroredStore(primary: slow($0), secondary: slow($0)) },
    Subject("a bounded store") { context in
      try await slow(context, [UInt8].self).bounded(bytes: .max).typed(Int.self, codec: .json())
    },
    Subject("an indexed store") { context in
      try await slow(context, [UInt8].self).indexed(
        by: [StoreIndex<Int>("last digit") { _, value in [[value % 10]] }], codec: .cbor(Int.self))
    },
    Subject("a cache on disk") { context in
      try slow(context).cached(
        in: MemoryStore<[UInt8]>(), codec: .json(Int.self),
        configuration: TieredStoreConfiguration(timeToLive: .seconds(3600)), now: { context.clock.date })
    },
    Subject("the stack of the README") { context in
      slow(context, Expiring<Int>.self).batched().cached(clock: context.clock)
        .expiring(.sliding(.seconds(1800)), now: { context.clock.date })
    },
  ]

  private static let count = ProcessInfo.processInfo.environment["LARDER_SCHEDULES"].flatMap { Int($0) } ?? 60

  @Test(arguments: subjects.indices) func oneOrderExplainsAllResults(_ index: Int) async throws {
    let subject = Self.subjects[index]
    let trial = ScheduledTrial(subject.name) { context in
      let history = HistoryTrial(subject.name) { _ in try await subject.open(context) }
      try await history.runConcurrently(rounds: 1, seed: context.seed, tasks: 3, length: 5)
    }
    let start = ContinuousClock.now
    try await trial.run(schedules: Self.count)
    print("Schedules of \(subject.name): \(Self.count) in \(ContinuousClock.now - start)")
  }
}
