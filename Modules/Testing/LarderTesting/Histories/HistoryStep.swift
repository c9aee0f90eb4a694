public import Larder

/// One step of a history that is run on a store and, beside it, on a model.
public enum HistoryStep: Sendable, Equatable {
  /// Makes several changes at once.
  case apply([Change<Int>])
  /// Adds to the numbers under some keys, counting a missing one as 0, in one update; a sum of 0 is removed.
  case add(Int, to: [StoreKey])
  /// Begins an update of some keys whose body removes them all and then throws.
  case abandon([StoreKey])
  /// Reads the value of one key.
  case value(StoreKey)
  /// Reads the values of several keys at once; one may stand more than once.
  case values([StoreKey])
  /// Asks whether a key is there.
  case contains(StoreKey)
  /// Reads the entries of a range.
  case entries(KeyRange, limit: Int, ScanOrder)
  /// Reads the keys of a range.
  case keys(KeyRange, limit: Int, ScanOrder)
  /// Counts the entries of a range.
  case count(KeyRange)
  /// Walks over the pages of a range.
  case pages(KeyRange, size: Int, ScanOrder)
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
    case .abandon, .value, .values, .contains, .entries, .keys, .count, .pages, .synchronize, .compact, .reopen, .die:
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
    case .add(let number, let keys): ".add(\(number), to: \(HistoryStep.text(of: keys)))"
    case .abandon(let keys): ".abandon(\(HistoryStep.text(of: keys)))"
    case .value(let key): ".value(\(HistoryStep.text(of: key)))"
    case .values(let keys): ".values(\(HistoryStep.text(of: keys)))"
    case .contains(let key): ".contains(\(HistoryStep.text(of: key)))"
    case .entries(let range, let limit, let order):
      ".entries(\(HistoryStep.text(of: range)), limit: \(limit == .max ? ".max" : "\(limit)"), .\(order))"
    case .keys(let range, let limit, let order):
      ".keys(\(HistoryStep.text(of: range)), limit: \(limit == .max ? ".max" : "\(limit)"), .\(order))"
    case .count(let range): ".count(\(HistoryStep.text(of: range)))"
    case .pages(let range, let size, let order): ".pages(\(HistoryStep.text(of: range)), size: \(size), .\(order))"
    case .synchronize: ".synchronize"
    case .compact: ".compact"
    case .reopen: ".reopen"
    case .die: ".die"
    }
  }

  private static func text(of change: Change<Int>) -> String {
    switch change {
    case .set(let key, let value): ".set(\(text(of: key)), \(value))"
    case .remove(let key): ".remove(\(text(of: key)))"
    case .removeAll(let range): ".removeAll(\(text(of: range)))"
    }
  }

  private static func text(of keys: [StoreKey]) -> String {
    "[\(keys.map { text(of: $0) }.joined(separator: ", "))]"
  }

  private static func text(of range: KeyRange) -> String {
    switch (range.lowerBound.isEmpty, range.upperBound) {
    case (true, nil): ".all"
    case (true, let upper?): "..<\(text(of: upper))"
    case (false, nil): "\(text(of: range.lowerBound))..."
    case (false, let upper?): "\(text(of: range.lowerBound))..<\(text(of: upper))"
    }
  }

  private static func text(of key: StoreKey) -> String {
    guard let string = key.string else { return "StoreKey(bytes: \(key.bytes))" }
    if string.count > 20, let first = string.first, string.allSatisfy({ $0 == first }) {
      return "StoreKey(String(repeating: \(String(first).debugDescription.unambiguous), count: \(string.count)))"
    }
    return string.debugDescription.unambiguous
  }
}
