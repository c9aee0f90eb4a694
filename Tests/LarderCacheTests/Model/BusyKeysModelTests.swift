import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderCache

/// The rule of `BusyKeys` holds under every schedule of short histories, and each of its guards is needed.
@Suite struct BusyKeysModelTests {
  /// The number of callers in the histories, which the environment variable `LARDER_STEPS` sets.
  ///
  /// Defaults to two callers, plus groups of three with the operations that conflict most, of which a short run takes a
  /// third. All groups of three take minutes.
  private static let callerCount = ProcessInfo.processInfo.environment["LARDER_STEPS"].flatMap { Int($0) }

  /// Returns every combination of some operations.
  ///
  /// The schedule decides on their order.
  private static func groups(
    of count: Int, from all: [ModelledOperation] = ModelledOperation.unreported
  ) -> [[ModelledOperation]] {
    (0..<count).reduce([[]]) { groups, _ in
      groups.flatMap { group in
        let first = group.last.flatMap { all.firstIndex(of: $0) } ?? 0
        return all[first...].map { group + [$0] }
      }
    }
  }

  /// Runs every schedule of some groups, once with an empty cache and once with one that holds both keys.
  private func check<Rule: CachingRule>(
    _ groups: [[ModelledOperation]], isReported: Bool = false, _ rule: Rule,
    _ shortcuts: Set<ModelledCache<Rule>.Shortcut> = []
  ) throws {
    for operations in groups {
      for isWarm in [false, true] {
        var check = ModelCheck<Rule>()
        try check.run(
          ModelledCache(operations, isWarm: isWarm, isReported: isReported, rule: rule, shortcuts: shortcuts))
      }
    }
  }

  @Test func `every schedule is linearizable`() throws {
    for count in 1...max(1, Self.callerCount ?? 2) { try check(Self.groups(of: count), BusyKeys<Int>()) }
    guard Self.callerCount == nil else { return }
    let groups: [[ModelledOperation]] = [
      [.read, .read, .write], [.read, .read, .removeRange], [.read, .write, .write], [.read, .write, .update],
      [.read, .write, .removeRange], [.read, .write, .evict], [.read, .reload, .writeElsewhereAndReload],
      [.readBoth, .reload, .writePast], [.read, .readBoth, .writeBoth], [.readBoth, .readBoth, .removeRange],
    ]
    try check(TestDepth.part(of: groups, oneIn: 3, for: "groups of three") + Self.reloads, BusyKeys<Int>())
  }

  /// Two reloads, a reader after one of them, and the operations that need reloads.
  private static let reloads: [[ModelledOperation]] = [[.read, .reload, .reload, .writePast]]

  // MARK: A base that reports its changes

  /// Groups of two, and those of three in which the reports of two writers meet a third caller.
  private static let reported = groups(of: 2, from: ModelledOperation.reported) + reportedTriples

  private static let reportedTriples: [[ModelledOperation]] = [
    [.read, .write, .writeBeside], [.read, .update, .writeBeside], [.readBoth, .write, .writeBothBeside],
    [.read, .write, .removeRangeBeside], [.read, .read, .writeBeside], [.write, .write, .writeBeside],
    [.read, .writeJoined, .writeBeside], [.read, .writeBeside, .writeBeside], [.read, .removeRange, .writeBeside],
    [.read, .reload, .writeBeside], [.write, .evict, .writeBeside], [.write, .invalidate, .writeBeside],
    [.read, .updateNothing, .writeAbroad], [.read, .write, .writeAbroad], [.read, .read, .writeAbroad],
    [.read, .update, .writeAbroadUnheard], [.read, .read, .writeAbroadUnheard], [.read, .writeAbroad, .writeAbroad],
  ]

  /// No operation through the cache gets an older value than that of a reported write that has ended, and all those that
  /// do not begin between a commit and its report are linearizable.
  @Test func `every schedule beside reported writes is linearizable`() throws {
    if let count = Self.callerCount {
      for count in 1...max(1, count) {
        try check(Self.groups(of: count, from: ModelledOperation.reported), isReported: true, BusyKeys<Int>())
      }
    } else {
      let triples = TestDepth.part(of: Self.reportedTriples, oneIn: 3, for: "reported groups of three")
      try check(Self.groups(of: 2, from: ModelledOperation.reported) + triples, isReported: true, BusyKeys<Int>())
    }
  }

  @Test(arguments: VariantRule.Guard.ofReports) func `every guard of reports is needed`(_ condition: VariantRule.Guard)
  {
    var rule = VariantRule()
    rule.omitted = [condition]
    #expect(throws: ModelCheck<VariantRule>.Violation.self) { try check(Self.reported, isReported: true, rule) }
  }

  @Test(arguments: ModelledCache<BusyKeys<Int>>.Shortcut.allCases.filter(\.isOfReports))
  func `every step of a report is needed`(_ shortcut: ModelledCache<BusyKeys<Int>>.Shortcut) {
    #expect(throws: ModelCheck<BusyKeys<Int>>.Violation.self) {
      try check(Self.reported, isReported: true, BusyKeys<Int>(), [shortcut])
    }
  }

  // MARK: The guards

  @Test func `the variant of the rule is linearizable too`() throws {
    let kinds: [ModelledOperation] = [.read, .readBoth, .reload, .write, .replaceRange, .writeElsewhere, .writePast]
    try check(Self.groups(of: 2, from: kinds) + Self.reloads, VariantRule())
    let reported: [ModelledOperation] = [.read, .readBoth, .reload, .write, .replaceRange, .writeBeside, .writeJoined]
    try check(Self.groups(of: 2, from: reported) + [[.read, .write, .writeBeside]], isReported: true, VariantRule())
  }

  @Test(arguments: VariantRule.Guard.ofCallers) func `every guard is needed`(_ condition: VariantRule.Guard) {
    var rule = VariantRule()
    rule.omitted = [condition]
    // Joining a load from before a write takes two readers and a writer.
    let groups = Self.groups(of: 2) + Self.groups(of: 3, from: [.read, .removeRange]) + Self.reloads
    #expect(throws: ModelCheck<VariantRule>.Violation.self) { try check(groups, rule) }
  }

  /// A common design of caches: each key has a generation, which a write changes, and the cache keeps a fill or a
  /// writer's
  /// value if the generation is unchanged.
  @Test func `generations are not enough`() {
    var rule = VariantRule()
    rule.omitted = [.busyReadersGoToTheBase, .writersAreAlone]
    #expect(throws: ModelCheck<VariantRule>.Violation.self) { try check(Self.groups(of: 2), rule) }
    rule.omitted = [.busyReadersGoToTheBase]
    #expect(throws: ModelCheck<VariantRule>.Violation.self) { try check(Self.groups(of: 2), rule) }
  }

  @Test(arguments: ModelledCache<BusyKeys<Int>>.Shortcut.allCases.filter { !$0.isOfReports })
  func `every step is needed`(_ shortcut: ModelledCache<BusyKeys<Int>>.Shortcut) {
    #expect(throws: ModelCheck<BusyKeys<Int>>.Violation.self) {
      let groups = Self.groups(of: 1) + Self.groups(of: 2) + [[.read, .readBoth, .writeBoth]] + Self.reloads
      try check(groups, BusyKeys<Int>(), [shortcut])
    }
  }
}

/// A search through all schedules of a ``ModelledCache`` that visits each state once.
struct ModelCheck<Rule: CachingRule> {
  /// A schedule that leads to an invalid state.
  struct Violation: Error, CustomStringConvertible {
    let fault: String
    let steps: [String]

    var description: String { "\(fault), after\n  \(steps.joined(separator: "\n  "))" }
  }

  private var seen: Set<ModelledCache<Rule>> = []
  private var path: [Int] = []

  /// Searches every schedule of some callers.
  ///
  /// - Parameter cache: The cache and its callers, before the first step.
  /// - Throws: ``Violation``.
  mutating func run(_ cache: ModelledCache<Rule>) throws {
    seen = []
    path = []
    try visit(cache, from: cache)
  }

  private mutating func visit(_ cache: ModelledCache<Rule>, from start: ModelledCache<Rule>) throws {
    guard seen.insert(cache).inserted else { return }
    let ready = cache.ready
    if cache.orders.isEmpty || ready.isEmpty, let fault = cache.fault {
      throw Violation(fault: fault, steps: steps(from: start))
    }
    for caller in ready {
      var next = cache
      next.go(caller)
      path.append(caller)
      try visit(next, from: start)
      path.removeLast()
    }
  }

  private func steps(from start: ModelledCache<Rule>) -> [String] {
    var cache = start
    return path.map { caller in
      defer { cache.go(caller) }
      return cache.text(of: caller)
    }
  }
}

/// A second implementation of `BusyKeys`' rule, with optional guards, to show that each guard is needed.
struct VariantRule: CachingRule {
  enum Guard: Hashable, CaseIterable {
    /// A reader of a busy key neither starts nor joins a load, and caches nothing.
    case busyReadersGoToTheBase
    /// A fill is cached only if no write has started since.
    case fillsEndWithWrites
    /// No reader joins a load from before a write.
    case loadsEndWithWrites
    /// A writer's value is cached only if no other write was running when it started.
    case writersAreAlone
    /// A writer's value is cached only if no other write has started since.
    case writersEndWithWrites
    /// The removal of a range counts as a write of its keys.
    case rangesAreWrites
    /// An invalidation ends fills and loads.
    case invalidationEndsFills
    /// A report of a key without a running write ends its fills and loads.
    case reportsEndFills
    /// A writer's value is cached only if one report at most named the key.
    case writersAreReportedOnce
    /// The value of a writer that has only read is cached only if no report named the key.
    case readersAreNotReported

    static let ofReports: [Guard] = [.reportsEndFills, .writersAreReportedOnce, .readersAreNotReported]
    static let ofCallers = allCases.filter { !ofReports.contains($0) }
  }

  var omitted: Set<Guard> = []

  private struct Load: Hashable {
    let number: Int
    let key: StoreKey
    let epoch: UInt64
  }

  private var epochs: [StoreKey: UInt64] = [:]
  private var reports: [StoreKey: Int] = [:]
  private var loads: [Load] = []
  private var keyWrites: [Keys.KeyWrite] = []
  private var rangeWrites: [Keys.RangeWrite] = []
  private var fillCount = 0
  private var lastEpoch: UInt64 = 0

  init() {}

  var isIdle: Bool { fillCount == 0 && keyWrites.isEmpty && rangeWrites.isEmpty && loads.isEmpty }

  private func holds(_ condition: Guard) -> Bool { !omitted.contains(condition) }

  func isBusy(_ key: StoreKey) -> Bool {
    keyWrites.contains { $0.key == key } || rangeWrites.contains { $0.range.contains(key) }
  }

  private mutating func begin(_ key: StoreKey, makeLoad: () -> Int) -> Keys.Reading {
    let load = Load(number: makeLoad(), key: key, epoch: epochs[key, default: 0])
    loads.append(load)
    fillCount += 1
    return .leading(Keys.Fill(key: key, epoch: load.epoch, isLoad: true), load.number)
  }

  mutating func beginReading(_ key: StoreKey, makeLoad: () -> Int) -> Keys.Reading {
    if holds(.busyReadersGoToTheBase) && isBusy(key) { return .direct }
    let current = loads.last { load in
      load.key == key && (!holds(.loadsEndWithWrites) || load.epoch == epochs[key, default: 0])
    }
    guard let current else { return begin(key, makeLoad: makeLoad) }
    fillCount += 1
    return .joining(Keys.Fill(key: key, epoch: epochs[key, default: 0], isLoad: false), current.number)
  }

  mutating func beginReloading(_ key: StoreKey, makeLoad: () -> Int) -> Keys.Reading {
    if holds(.busyReadersGoToTheBase) && isBusy(key) { return .direct }
    return begin(key, makeLoad: makeLoad)
  }

  mutating func beginRefreshing(_ key: StoreKey, makeLoad: () -> Int) -> (fill: Keys.Fill, load: Int)? {
    switch beginReading(key, makeLoad: makeLoad) {
    case .leading(let fill, let load): return (fill, load)
    case .joining: fillCount -= 1
    case .direct: break
    }
    return nil
  }

  mutating func end(_ fill: Keys.Fill) -> Bool {
    fillCount -= 1
    if fill.isLoad, let index = loads.firstIndex(where: { $0.key == fill.key && $0.epoch == fill.epoch }) {
      loads.remove(at: index)
    }
    return !holds(.fillsEndWithWrites) || fill.epoch == epochs[fill.key, default: 0]
  }

  mutating func beginWrite(of key: StoreKey, besides own: [Keys.RangeWrite]) -> Keys.KeyWrite {
    let wasAlone =
      !keyWrites.contains { $0.key == key }
      && !rangeWrites.contains { $0.range.contains(key) && !own.contains($0) }
    next(for: key)
    reports[key] = 0
    let write = Keys.KeyWrite(key: key, epoch: lastEpoch, wasAlone: wasAlone)
    keyWrites.append(write)
    return write
  }

  mutating func beginWrite(in range: KeyRange) -> Keys.RangeWrite {
    lastEpoch += 1
    let write = Keys.RangeWrite(range: range, epoch: lastEpoch)
    if holds(.rangesAreWrites) {
      for key in ModelledCache<VariantRule>.keys where range.contains(key) { epochs[key] = lastEpoch }
      rangeWrites.append(write)
    }
    return write
  }

  mutating func end(_ write: Keys.KeyWrite, isReported: Bool) -> Bool {
    keyWrites.removeAll { $0 == write }
    return (!holds(.writersAreAlone) || write.wasAlone)
      && (!holds(.writersEndWithWrites) || write.epoch == epochs[write.key, default: 0])
      && (!holds(.writersAreReportedOnce) || reports[write.key, default: 0] <= 1)
      && (!holds(.readersAreNotReported) || isReported || reports[write.key, default: 0] == 0)
  }

  mutating func end(_ write: Keys.RangeWrite) {
    rangeWrites.removeAll { $0 == write }
  }

  mutating func invalidate(_ key: StoreKey) {
    if holds(.invalidationEndsFills) { next(for: key) }
  }

  mutating func invalidate(in range: KeyRange) {
    for key in ModelledCache<VariantRule>.keys where range.contains(key) { invalidate(key) }
  }

  mutating func report(_ key: StoreKey) -> Bool {
    if keyWrites.contains(where: { $0.key == key }) {
      reports[key, default: 0] = min(2, reports[key, default: 0] + 1)
      return false
    }
    if holds(.reportsEndFills) { next(for: key) }
    return true
  }

  private mutating func next(for key: StoreKey) {
    lastEpoch += 1
    epochs[key] = lastEpoch
  }
}
