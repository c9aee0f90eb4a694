import Foundation
import LarderTesting
import Testing

@testable import LarderCache

/// The rule of `BusyKeys` under every schedule of short histories, and that none of its guards can be left out.
@Suite struct BusyKeysModelTests {
  /// How many callers there are in the histories, of all kinds: as many as the environment variable `LARDER_STEPS`
  /// says.
  ///
  /// Unless that is set there are two, and three of the kinds that meet most; all groups of three take minutes.
  private static let callerCount = ProcessInfo.processInfo.environment["LARDER_STEPS"].flatMap { Int($0) }

  /// Every group of some operations, in whatever order: which comes first is up to the schedule.
  private static func groups(
    of count: Int, from all: [ModelledOperation] = ModelledOperation.allCases
  ) -> [[ModelledOperation]] {
    (0..<count).reduce([[]]) { groups, _ in
      groups.flatMap { group in
        let first = group.last.flatMap { all.firstIndex(of: $0) } ?? 0
        return all[first...].map { group + [$0] }
      }
    }
  }

  /// Looks at every schedule of some groups, each once with an empty cache and once with one that holds both keys.
  private func check<Rule: CachingRule>(
    _ groups: [[ModelledOperation]], _ rule: Rule, _ shortcuts: Set<ModelledCache<Rule>.Shortcut> = []
  ) throws {
    for operations in groups {
      for isWarm in [false, true] {
        var check = ModelCheck<Rule>()
        try check.run(ModelledCache(operations, isWarm: isWarm, rule: rule, shortcuts: shortcuts))
      }
    }
  }

  @Test func everyScheduleIsExplained() throws {
    for count in 1...max(1, Self.callerCount ?? 2) { try check(Self.groups(of: count), BusyKeys<Int>()) }
    guard Self.callerCount == nil else { return }
    let groups: [[ModelledOperation]] = [
      [.read, .read, .write], [.read, .read, .removeRange], [.read, .write, .write], [.read, .write, .update],
      [.read, .write, .removeRange], [.read, .write, .evict], [.read, .reload, .writeElsewhereAndReload],
      [.readBoth, .reload, .writePast], [.read, .readBoth, .writeBoth], [.readBoth, .readBoth, .removeRange],
    ]
    try check(groups + Self.reloads, BusyKeys<Int>())
  }

  /// Two reloads, a reader after one of them, and what they are there for.
  private static let reloads: [[ModelledOperation]] = [[.read, .reload, .reload, .writePast]]

  @Test func theRuleWrittenASecondTimeIsExplainedAsWell() throws {
    let kinds: [ModelledOperation] = [.read, .readBoth, .reload, .write, .replaceRange, .writeElsewhere, .writePast]
    try check(Self.groups(of: 2, from: kinds) + Self.reloads, VariantRule())
  }

  @Test(arguments: VariantRule.Guard.allCases) func everyGuardIsNeeded(_ condition: VariantRule.Guard) {
    var rule = VariantRule()
    rule.omitted = [condition]
    // Two readers and a writer are needed for one to join a load from before the write.
    let groups = Self.groups(of: 2) + Self.groups(of: 3, from: [.read, .removeRange]) + Self.reloads
    #expect(throws: ModelCheck<VariantRule>.Violation.self) { try check(groups, rule) }
  }

  /// What many caches do: a generation for each key, which a write changes; a fill and a writer's value are kept where
  /// it is still the same.
  @Test func invalidatingWritingAndInsertingWithAGenerationIsNotEnough() {
    var rule = VariantRule()
    rule.omitted = [.busyReadersGoToTheBase, .writersAreAlone]
    #expect(throws: ModelCheck<VariantRule>.Violation.self) { try check(Self.groups(of: 2), rule) }
    rule.omitted = [.busyReadersGoToTheBase]
    #expect(throws: ModelCheck<VariantRule>.Violation.self) { try check(Self.groups(of: 2), rule) }
  }

  @Test(arguments: ModelledCache<BusyKeys<Int>>.Shortcut.allCases)
  func everyStepIsNeeded(_ shortcut: ModelledCache<BusyKeys<Int>>.Shortcut) {
    #expect(throws: ModelCheck<BusyKeys<Int>>.Violation.self) {
      let groups = Self.groups(of: 1) + Self.groups(of: 2) + [[.read, .readBoth, .writeBoth]] + Self.reloads
      try check(groups, BusyKeys<Int>(), [shortcut])
    }
  }
}
