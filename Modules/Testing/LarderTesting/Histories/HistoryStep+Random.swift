import Larder

extension HistoryStep {
  /// The keys that histories use: few, so steps concern the same keys, and one long enough that writes span sectors.
  static let keys: [StoreKey] = [
    "a", "b", "ba", "c", StoreKey(bytes: [0x80, 0xC0]), StoreKey(String(repeating: "x", count: 400)),
  ]

  /// A few steps on two keys, for exhaustive histories.
  static let fewSteps: [HistoryStep] = [
    .apply([.set("a", 1)]), .apply([.set("b", 0)]), .apply([.remove("a")]), .apply([.removeAll("b"...)]),
    .apply([.removeAll(.all), .set("a", 2), .set("b", 2), .set("a", 3)]), .add(1, to: ["b", "a"]), .abandon(["a"]),
    .value("a"), .values(["b", "a", "b"]), .reopen, .die,
  ]

  /// A few steps that change entries or affect durability, for exhaustive histories.
  static let fewWritingSteps: [HistoryStep] = [
    .apply([.set("a", 1)]), .apply([.remove("a")]), .apply([.removeAll("b"...)]),
    .apply([.removeAll(.all), .set(StoreKey(String(repeating: "x", count: 400)), 2), .set("b", 2), .set("a", 3)]),
    .add(1, to: ["b", "a"]), .synchronize, .compact, .reopen, .die,
  ]

  /// The durable writes after a recovery.
  static let stepsAfterRecovery: [HistoryStep] = [
    .apply([.set("a", 4), .remove("b"), .set("c", 5)]), .add(6, to: ["d"]), .synchronize,
  ]

  /// Returns every history of a few steps, the shortest first.
  ///
  /// - Parameters:
  ///   - steps: The possible steps.
  ///   - length: The maximum number of steps.
  ///   - share: The share of the longest histories to return, from 0 to 1.
  ///   - seed: The seed that determines the selection.
  static func everyHistory(
    of steps: [HistoryStep], upToLength length: Int, share: Double, seed: UInt64
  ) -> [[HistoryStep]] {
    var generator = SeededGenerator(seed: seed, purpose: "choosing histories")
    var longest: [[HistoryStep]] = [[]]
    var all: [[HistoryStep]] = []
    for currentLength in stride(from: 1, through: length, by: 1) {
      longest = longest.flatMap { history in steps.map { history + [$0] } }
      if currentLength == length { longest.removeAll { _ in .random(in: 0..<1, using: &generator) >= share } }
      all += longest
    }
    return all
  }

  /// Returns a random history of steps that change entries or affect durability.
  ///
  /// - Parameters:
  ///   - length: The number of steps.
  ///   - generator: The source of randomness.
  static func writingHistory(length: Int, using generator: inout SeededGenerator) -> [HistoryStep] {
    (0..<max(0, length)).map { _ in writingStep(using: &generator) }
  }

  /// Returns a random history of all kinds of steps.
  ///
  /// - Parameters:
  ///   - length: The number of steps.
  ///   - lacking: The capabilities that the store lacks, which no step needs.
  ///   - generator: The source of randomness.
  static func history(
    length: Int, lacking: StoreCapabilities, using generator: inout SeededGenerator
  ) -> [HistoryStep] {
    (0..<max(0, length)).map { _ in
      guard Bool.random(using: &generator) else { return harmlessStep(using: &generator) }
      let step = writingStep(using: &generator)
      return step.isPossible(lacking: lacking) ? step : .abandon(distinctKeys(using: &generator))
    }
  }

  /// Returns whether a store supports the step.
  ///
  /// - Parameter lacking: The capabilities that the store lacks.
  func isPossible(lacking: StoreCapabilities) -> Bool {
    switch self {
    case .reopen: !lacking.contains(.persistence)
    case .die: lacking.isDisjoint(with: [.persistence, .acknowledgedPersistence])
    default: true
    }
  }

  private static func writingStep(using generator: inout SeededGenerator) -> HistoryStep {
    switch Int.random(in: 0..<16, using: &generator) {
    case 0..<7: .apply([change(using: &generator)])
    case 7..<10: .apply((0..<Int.random(in: 2...8, using: &generator)).map { _ in change(using: &generator) })
    case 10..<12: .add(Int.random(in: -2...2, using: &generator), to: distinctKeys(using: &generator))
    case 12..<14: .synchronize
    case 14: .compact
    default: Bool.random(using: &generator) ? .reopen : .die
    }
  }

  /// Returns a random step that changes nothing.
  private static func harmlessStep(using generator: inout SeededGenerator) -> HistoryStep {
    let order = Bool.random(using: &generator) ? ScanOrder.ascending : .descending
    let limit = Bool.random(using: &generator) ? Int.max : Int.random(in: 0...4, using: &generator)
    return switch Int.random(in: 0..<9, using: &generator) {
    case 0..<2: .value(key(using: &generator))
    case 2: .values((0..<Int.random(in: 0...6, using: &generator)).map { _ in key(using: &generator) })
    case 3: .contains(key(using: &generator))
    case 4: .entries(range(using: &generator), limit: limit, order)
    case 5: .keys(range(using: &generator), limit: limit, order)
    case 6: .count(range(using: &generator))
    case 7: .abandon(distinctKeys(using: &generator))
    default: .pages(range(using: &generator), size: Int.random(in: 1...3, using: &generator), order)
    }
  }

  private static func change(using generator: inout SeededGenerator) -> BatchChange<Int> {
    switch Int.random(in: 0..<8, using: &generator) {
    case 0..<5: .set(key(using: &generator), Int.random(in: -9...9, using: &generator))
    case 5..<7: .remove(key(using: &generator))
    default: .removeAll(range(using: &generator))
    }
  }

  private static func key(using generator: inout SeededGenerator) -> StoreKey {
    keys[Int.random(in: keys.indices, using: &generator)]
  }

  private static func distinctKeys(using generator: inout SeededGenerator) -> [StoreKey] {
    Array(keys.shuffled(using: &generator).prefix(Int.random(in: 1...3, using: &generator)))
  }

  private static func range(using generator: inout SeededGenerator) -> KeyRange {
    switch Int.random(in: 0..<4, using: &generator) {
    case 0: .all
    case 1: .prefix("b")
    default: key(using: &generator)..<key(using: &generator)
    }
  }
}
