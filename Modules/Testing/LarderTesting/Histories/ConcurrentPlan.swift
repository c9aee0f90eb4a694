import Larder

/// What each task of one round of a ``ConcurrencyTrial`` is to do.
struct ConcurrentPlan {
  /// A step, and how often the task gives way to others before it.
  struct Move: Sendable {
    let yields: Int
    let step: HistoryStep
  }

  /// The moves of each task.
  private(set) var moves: [[Move]] = []

  /// What is read when all are done.
  let lastSteps: [HistoryStep]

  private static let keys: [StoreKey] = ["a", "b", "c"]
  private var lastNumber = 0

  /// Makes a random plan.
  ///
  /// - Parameters:
  ///   - tasks: How many tasks.
  ///   - length: How many steps each has.
  ///   - joinsKeys: Whether steps concern several keys.
  ///   - generator: Decides everything.
  init(tasks: Int, length: Int, joinsKeys: Bool, using generator: inout SeededGenerator) {
    lastSteps =
      joinsKeys ? [.entries(.all, limit: .max, .ascending), .count(.all)] : ConcurrentPlan.keys.map { .value($0) }
    for _ in 0..<tasks {
      var list: [Move] = []
      for _ in 0..<max(0, length) {
        let yields = Int.random(in: 0...3, using: &generator)
        list.append(
          Move(yields: yields, step: joinsKeys ? joiningStep(using: &generator) : singleStep(using: &generator)))
      }
      moves.append(list)
    }
  }

  // No number is written twice, so a value that is read tells who wrote it.
  private mutating func number() -> Int {
    lastNumber += 1
    return lastNumber
  }

  private mutating func singleStep(using generator: inout SeededGenerator) -> HistoryStep {
    let key = ConcurrentPlan.keys.shuffled(using: &generator)[0]
    return switch Int.random(in: 0..<14, using: &generator) {
    case 0..<3: .apply([.set(key, number())])
    case 3: .apply([.remove(key)])
    case 4: .apply([.removeAll(.only(key)), .set(key, number())])
    case 5..<8: .add(number(), to: [key])
    case 8..<10: .value(key)
    case 10: .contains(key)
    case 11: .synchronize
    case 12: .compact
    default: .entries(.only(key), limit: 1, .descending)
    }
  }

  private mutating func joiningStep(using generator: inout SeededGenerator) -> HistoryStep {
    let keys = ConcurrentPlan.keys.shuffled(using: &generator)
    return switch Int.random(in: 0..<16, using: &generator) {
    case 0..<2: .apply(keys.map { .set($0, number()) })
    case 2: .apply([.removeAll(.all), .set(keys[0], number()), .set(keys[1], number())])
    case 3: .apply([.remove(keys[0]), .set(keys[1], number())])
    case 4..<6: .add(number(), to: [keys[0], keys[1]])
    case 6: .abandon(keys)
    case 7..<9: .values(keys)
    case 9: .entries(.all, limit: .max, .descending)
    case 10: .count(.all)
    case 11: .synchronize
    case 12: .compact
    case 13: .keys(keys[0]..., limit: 2, .ascending)
    case 14: .entries(..<keys[0], limit: 1, .descending)
    default: .value(keys[0])
    }
  }
}
