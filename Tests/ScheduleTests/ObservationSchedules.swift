import Larder
import LarderBatching
import LarderCache
import LarderObservation
import LarderTesting
import TestSupport
import Testing

/// Observers in many schedules: they miss no change, and leave nothing behind.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct ObservationSchedules {
  /// A store that counts its observations.
  private final class CountedStore<Base: ObservableStore>: ForwardingStore, ObservableStore {
    typealias Value = Base.Value

    let base: Base
    let count = Shared(0)

    init(_ base: Base) {
      self.base = base
    }

    func forward<Result>(
      _ operation: StoreOperation, of key: StoreKey?, _ body: nonisolated(nonsending) () async throws -> Result
    ) async throws -> Result {
      try await body()
    }

    func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
      let (observation, count) = (base.observe(range, observer), count)
      let isRunning = Shared(true)
      count.change { $0 += 1 }
      return StoreObservation {
        observation.cancel()
        let isFirst = isRunning.change { isRunning in
          defer { isRunning = false }
          return isRunning
        }
        if isFirst { count.change { $0 -= 1 } }
      }
    }
  }

  private struct Subject: Sendable {
    let name: String
    let open: @Sendable (ScheduledContext) -> any ObservableStore<Int>
  }

  private static let subjects = [
    Subject(name: "an observable store") { $0.slowStore(of: Int.self).observable() },
    Subject(name: "a cache of an observable store") { context in
      context.slowStore(of: Int.self).observable().cached(clock: context.clock)
    },
    Subject(name: "write-behind to an observable store") { context in
      context.slowStore(of: Int.self).observable().writeBehind(maximumAge: .milliseconds(5), clock: context.clock)
    },
  ]

  // The last entries that each writer leaves, so that observers know when they have seen all.
  private static let numbers = 5
  private static let lastEntries = (0..<2).map { StoreEntry(key: StoreKey("\($0)"), value: numbers) }

  private static func write(_ task: Int, to store: some DataStore<Int>, _ context: ScheduledContext) async throws {
    var generator = context.generator("writer \(task)")
    let (key, other) = (StoreKey("\(task)"), StoreKey("\(task)/other"))
    for number in 1...numbers {
      await context.pause(upTo: 3, &generator)
      switch number {
      case 1: try await store.apply([.set(key, number), .set(other, number)])
      case 2: try await store.apply([.removeAll(.only(other)), .set(key, number)])
      default: try await store.update(key) { $0 = number }
      }
    }
  }

  private static func observe<Store: ObservableStore<Int>>(
    _ store: Store, kind: Int, _ context: ScheduledContext, _ task: Int
  ) async throws {
    var generator = context.generator("observer \(task)")
    switch kind {
    case 0: return try await copy(store, context, &generator)
    case 1:
      var last: [StoreEntry<Int>]?
      for try await state in store.entries(observing: .all, clock: context.clock) {
        if state == last { throw Wrong("\(state) was repeated") }
        last = state
        if state == lastEntries { return }
        // A slow observer.
        await context.pause(upTo: 8, &generator)
      }
    default:
      var last = 0
      for try await state in store.updates(forKey: "1", clock: context.clock) {
        guard last <= state ?? 0 else { throw Wrong("\(state ?? 0) after \(last)") }
        last = state ?? 0
        if last == numbers { return }
        await context.pause(upTo: 8, &generator)
      }
    }
    guard Task.isCancelled else { throw Wrong("the observation has ended") }
  }

  /// Keeps a copy of a store, by its first snapshot and what has changed since, until the copy has the last entries.
  private static func copy<Store: ObservableStore<Int>>(
    _ store: Store, _ context: ScheduledContext, _ generator: inout SeededGenerator
  ) async throws {
    let changes = store.changes()
    var copy = try await store.entries(in: .all, limit: .max, order: .ascending)
    var iterator = changes.makeAsyncIterator()
    while copy != lastEntries {
      guard let change = await iterator.next() else { return }
      await context.pause(upTo: 8, &generator)
      let current = try await store.entries(in: change.range, limit: .max, order: .ascending)
      copy = (copy.filter { !change.range.contains($0.key) } + current).sorted { $0.key < $1.key }
    }
  }

  /// Each observer reaches the last state of the store, however slow it is, or is cancelled, and none leaves an observation.
  ///
  /// A missed change would suspend it forever.
  @Test(arguments: subjects.indices) func `an observer misses nothing`(_ index: Int) async throws {
    let subject = Self.subjects[index]
    try await runSchedules("observers of \(subject.name)") { context in
      try await Self.run(subject.open(context), context)
    }
  }

  private static func run<Store: ObservableStore<Int>>(_ base: Store, _ context: ScheduledContext) async throws {
    let store = CountedStore(base)
    let cancelled = (0..<3).map { kind in
      Task { try await observe(store, kind: kind, context, 10 + kind) }
    }
    for task in cancelled { context.mayCancel(task) }
    // It ends when the store closes.
    let lasting = Task {
      var count = 0
      for await _ in store.changes() { count += 1 }
      return count
    }
    try await concurrently(5) { task in
      if task < 2 {
        try await write(task, to: store, context)
      } else {
        try await observe(store, kind: task - 2, context, task)
      }
    }
    for task in cancelled {
      do {
        try await task.value
      } catch is CancellationError {}
    }
    let entries = try await store.entries(in: .all, limit: .max, order: .ascending)
    guard entries == lastEntries else { throw Wrong("\(entries) at the end") }
    try await store.close()
    _ = await lasting.value
    guard store.count.value == 0 else { throw Wrong("\(store.count.value) observations are left") }
  }
}
