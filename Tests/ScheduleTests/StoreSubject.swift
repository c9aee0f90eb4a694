import Larder
import LarderBatching
import LarderBounded
import LarderCBOR
import LarderCache
import LarderExpiry
import LarderIndexes
import LarderMirror
import LarderObservation
import LarderStoreQueue
import LarderTesting

/// A decorator or a stack whose histories must be linearizable.
struct StoreSubject: Sendable {
  /// The stores below a decorator.
  final class Bases: Sendable {
    let context: ScheduledContext
    private let stores = Shared<[@Sendable (Double) -> Void]>([])

    init(_ context: ScheduledContext) {
      self.context = context
    }

    var clock: ManualClock { context.clock }

    /// Returns an empty store that suspends in half of its operations.
    func store<Value>(of type: Value.Type = Int.self) -> FaultyStore<MemoryStore<Value>> {
      let store = context.slowStore(of: type, number: UInt64(stores.value.count))
      stores.change { $0.append(store.fail(withProbability:)) }
      return store
    }

    /// Schedules failures of the stores from now on.
    func fail(withProbability probability: Double) {
      for fail in stores.value { fail(probability) }
    }
  }

  let name: String

  /// A Boolean value that indicates whether an error of a base fails only operations that have not returned.
  let keepsAcknowledgedWrites: Bool

  let open: @Sendable (Bases) async throws -> AnyDataStore<Int>

  init(
    _ name: String, keepsAcknowledgedWrites: Bool = true,
    open: @escaping @Sendable (Bases) async throws -> some DataStore<Int>
  ) {
    self.name = name
    self.keepsAcknowledgedWrites = keepsAcknowledgedWrites
    self.open = { AnyDataStore(try await open($0)) }
  }

  /// A small cache that keeps all kinds of entries, and refreshes most of them constantly.
  private static var eager: CachedStoreConfiguration<Int> {
    var configuration = CachedStoreConfiguration<Int>(entryLimit: 2)
    configuration.negativeTimeToLive = .seconds(3600)
    configuration.refreshAfter = .zero
    return configuration
  }

  static let all = [
    StoreSubject("a base that suspends") { $0.store() },
    StoreSubject("a cache") { $0.store().cached(clock: $0.clock) },
    StoreSubject("an eager cache") { $0.store().cached(eager, clock: $0.clock) },
    StoreSubject("a cache of an observable store") { $0.store().observable().cached(clock: $0.clock) },
    StoreSubject("group commit") { $0.store().batched() },
    StoreSubject("write-behind", keepsAcknowledgedWrites: false) {
      $0.store().writeBehind(bounds: BatchBounds(changes: 6), maximumAge: .milliseconds(5), clock: $0.clock)
    },
    StoreSubject("a cache over write-behind", keepsAcknowledgedWrites: false) {
      $0.store().writeBehind(maximumAge: .milliseconds(5), clock: $0.clock).cached(eager, clock: $0.clock)
    },
    StoreSubject("a mirror") { try MirroredStore(primary: $0.store(), secondary: $0.store()) },
    StoreSubject("a bounded store") { bases in
      try await bases.store(of: [UInt8].self).bounded(bytes: .max).typed(Int.self, codec: .json())
    },
    StoreSubject("an indexed store") { bases in
      try await bases.store(of: [UInt8].self).indexed(
        by: [StoreIndex<Int>("last digit") { _, value in [[value % 10]] }], codec: .cbor(Int.self))
    },
    StoreSubject("a cache on disk") { bases in
      try bases.store().cached(
        in: bases.store(of: [UInt8].self), codec: .json(Int.self),
        configuration: TieredStoreConfiguration(timeToLive: .seconds(3600), negativeTimeToLive: .seconds(60)),
        now: { bases.clock.date })
    },
    StoreSubject("a queue in a store as a store") { bases in
      try await StoreQueue(
        bases.store(of: [UInt8].self), prefix: "q/", codec: .cbor(Int.self),
        environment: .manual(bases.clock, randomness: bases.context.generator("queue")))
    },
    StoreSubject("the stack of the README") { bases in
      bases.store(of: Expiring<Int>.self).batched().cached(clock: bases.clock)
        .expiring(.sliding(.seconds(1800)), now: { bases.clock.date })
    },
  ]
}
