public import Larder

/// One step of a history that is run on a store and, beside it, on a model.
public enum HistoryStep: Sendable, Equatable {
  /// Makes several changes at once.
  case apply([Change<Int>])
  /// Adds to the numbers under some keys, counting a missing one as 0, in one update; a sum of 0 is removed.
  case add(Int, to: [StoreKey])
  /// Makes everything so far durable.
  case synchronize
  /// Gives space back, where the store has maintenance.
  case compact
  /// Closes the store and opens it again.
  case reopen
  /// Lets the process die without closing the store, and opens it again.
  case die
}

extension HistoryStep {
  /// The keys that histories use: few, so that steps meet, and one so long that what is written spans sectors.
  static let keys: [StoreKey] = [
    "a", "b", "ba", "c", StoreKey(bytes: [0x80, 0xC0]), StoreKey(String(repeating: "x", count: 400)),
  ]

  /// Makes a random history.
  ///
  /// - Parameters:
  ///   - length: How many steps.
  ///   - generator: Decides them.
  static func history(length: Int, using generator: inout SeededGenerator) -> [HistoryStep] {
    (0..<length).map { _ in
      switch Int.random(in: 0..<16, using: &generator) {
      case 0..<7: .apply([change(using: &generator)])
      case 7..<10: .apply((0..<Int.random(in: 2...8, using: &generator)).map { _ in change(using: &generator) })
      case 10..<12: .add(Int.random(in: -2...2, using: &generator), to: distinctKeys(using: &generator))
      case 12..<14: .synchronize
      case 14: .compact
      default: Bool.random(using: &generator) ? .reopen : .die
      }
    }
  }

  private static func change(using generator: inout SeededGenerator) -> Change<Int> {
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

  /// What a model that holds some entries holds after the step.
  ///
  /// - Parameter state: The entries before.
  func applied(to state: [StoreKey: Int]) -> [StoreKey: Int] {
    var state = state
    switch self {
    case .apply(let changes):
      for change in changes {
        switch change {
        case .set(let key, let value): state[key] = value
        case .remove(let key): state[key] = nil
        case .removeAll(let range): state = state.filter { !range.contains($0.key) }
        }
      }
    case .add(let number, let keys):
      for key in keys { state[key] = HistoryStep.sum(state[key], number) }
    case .synchronize, .compact, .reopen, .die:
      break
    }
    return state
  }

  /// What an ``add(_:to:)`` leaves under a key.
  static func sum(_ value: Int?, _ number: Int) -> Int? {
    let sum = (value ?? 0) + number
    return sum == 0 ? nil : sum
  }
}

extension HistoryStep: CustomStringConvertible {
  /// The step as it would be written in Swift.
  public var description: String {
    switch self {
    case .apply(let changes): ".apply([\(changes.map(HistoryStep.text).joined(separator: ", "))])"
    case .add(let number, let keys): ".add(\(number), to: [\(keys.map(\.description).joined(separator: ", "))])"
    case .synchronize: ".synchronize"
    case .compact: ".compact"
    case .reopen: ".reopen"
    case .die: ".die"
    }
  }

  private static func text(of change: Change<Int>) -> String {
    switch change {
    case .set(let key, let value): ".set(\(key), \(value))"
    case .remove(let key): ".remove(\(key))"
    case .removeAll(let range): ".removeAll(\(range))"
    }
  }
}
