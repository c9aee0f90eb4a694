import Larder
import LarderBounded
import LarderTesting
import TestSupport
import Testing

/// Stores with a limit in many schedules: it is never exceeded, and the accounting is exact.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct BoundedSchedules {
  private typealias Bounded = BoundedStore<FaultyStore<MemoryStore<[UInt8]>>>

  private static let limit = 60

  private static func open(
    _ bytes: FaultyStore<MemoryStore<[UInt8]>>, _ context: ScheduledContext,
    onEviction: @escaping @Sendable (BoundedEviction) -> Void = { _ in }
  ) async throws -> Bounded {
    var configuration = BoundedStoreConfiguration()
    configuration.maximumShare = 0.5
    configuration.useInterval = .zero
    configuration.now = { context.clock.date }
    configuration.onEviction = onEviction
    return try await bytes.bounded(bytes: limit, entries: 5, configuration: configuration)
  }

  /// Throws if the entries in the base exceed the limit.
  private static func checkLimit(_ bytes: FaultyStore<MemoryStore<[UInt8]>>) throws {
    // Without the suspensions of the slow store.
    let entries = try bytes.base.entries(in: .prefix("v/"), limit: .max, order: .ascending)
    let size = entries.reduce(0) { $0 + $1.key.count - 2 + $1.value.count }
    guard size <= limit, entries.count <= 5 else { throw Wrong("\(entries.count) entries with \(size) bytes") }
  }

  /// Two programs with three writers: each snapshot keeps the limit, a key has the last value that its writer has set or none, and
  /// the entries that are gone were reported as evicted.
  @Test func `the limit is never exceeded`() async throws {
    try await runSchedules("a limit") { context in
      let bytes = context.slowStore()
      let evicted = Shared<[BoundedEviction]>([])
      var programs: [Bounded] = []
      for _ in 0..<2 {
        programs.append(try await Self.open(bytes, context) { eviction in evicted.change { $0.append(eviction) } })
      }
      let last = Shared<[StoreKey: [UInt8]]>([:])
      try await concurrently(4) { [programs] task in
        var generator = context.generator("task \(task)")
        if task == 3 {
          for _ in 0..<15 {
            await Task.yield()
            try Self.checkLimit(bytes)
          }
          return
        }
        let store = programs[task % 2]
        for number in 1...5 {
          await context.pause(upTo: 2, &generator)
          let key = StoreKey("\(task)/\(Int.random(in: 0..<2, using: &generator))")
          let value = [UInt8](repeating: UInt8(number), count: Int.random(in: 0...14, using: &generator))
          switch Int.random(in: 0..<6, using: &generator) {
          case 0:
            try await store.removeValue(forKey: key)
            last.change { $0[key] = nil }
          case 1:
            let found = try await store.value(forKey: key)
            let expected = last.value[key]
            guard found == nil || found == expected else {
              throw Wrong("\(key): \(found ?? []), not \(expected ?? [])")
            }
          case 2:
            try await store.update(key) { $0 = value }
            last.change { $0[key] = value }
          case 3:
            try await store.apply([.removeAll(StoreKey("\(task)/")..<StoreKey("\(task)~")), .set(key, value)])
            last.change { last in
              last = last.filter { !$0.key.hasPrefix(StoreKey("\(task)/")) }
              last[key] = value
            }
          default:
            try await store.setValue(value, forKey: key)
            last.change { $0[key] = value }
          }
        }
      }
      try Self.checkLimit(bytes)
      for store in programs {
        let report = try await store.verifyAccounting()
        guard report.findings.isEmpty else { throw Wrong("\(report.findings)") }
      }
      let gone = Set(evicted.value.map(\.key))
      for (key, value) in last.value {
        let found = try await programs[0].value(forKey: key)
        guard found == value || (found == nil && gone.contains(key)) else {
          throw Wrong("\(key): \(found ?? []), not \(value); evicted: \(evicted.value)")
        }
      }
    }
  }

  /// Reads that run at the same time count as uses: the entries that were not read are evicted first.
  @Test func `entries that were read stay`() async throws {
    try await runSchedules("the order of use") { context in
      let bytes = context.slowStore()
      let evicted = Shared<[StoreKey]>([])
      let store = try await Self.open(bytes, context) { eviction in evicted.change { $0.append(eviction.key) } }
      for key in 0..<5 { try await store.setValue([0], forKey: StoreKey("\(key)")) }
      var generator = context.generator()
      let hot = Array((0..<5).shuffled(using: &generator).prefix(3))
      try await concurrently(3) { task in
        var generator = context.generator("reader \(task)")
        await context.pause(upTo: 3, &generator)
        _ = try await store.value(forKey: StoreKey("\(hot[task])"))
        // A write of an entry that is used anyway.
        if task == 0 { try await store.setValue([1], forKey: StoreKey("\(hot[0])")) }
      }
      try await store.synchronize()
      for key in ["a", "b"] as [StoreKey] { try await store.setValue([2], forKey: key) }
      let expected = (0..<5).filter { !hot.contains($0) }.map { StoreKey("\($0)") }
      guard evicted.value == expected else { throw Wrong("\(evicted.value) evicted, not \(expected)") }
      let report = try await store.verifyAccounting()
      guard report.findings.isEmpty else { throw Wrong("\(report.findings)") }
    }
  }
}
