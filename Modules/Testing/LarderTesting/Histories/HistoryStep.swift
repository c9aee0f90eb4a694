public import Larder

/// A step of a history that runs on a store and on a model.
public enum HistoryStep: Sendable, Equatable {
  /// Applies a batch of changes.
  case apply([BatchChange<Int>])
  /// Adds a number to the values of keys in one update. A missing value counts as 0, and a sum of 0 removes the entry.
  case add(Int, to: [StoreKey])
  /// Starts an update of keys whose body removes all of them and then throws.
  case abandon([StoreKey])
  /// Reads the value of one key.
  case value(StoreKey)
  /// Reads the values of several keys in one call. Keys may repeat.
  case values([StoreKey])
  /// Checks whether a key exists.
  case contains(StoreKey)
  /// Reads the entries of a range.
  case entries(KeyRange, limit: Int, ScanOrder)
  /// Reads the keys of a range.
  case keys(KeyRange, limit: Int, ScanOrder)
  /// Counts the entries of a range.
  case count(KeyRange)
  /// Reads the pages of a range.
  case pages(KeyRange, size: Int, ScanOrder)
  /// Synchronizes all earlier writes.
  case synchronize
  /// Compacts the store, if it supports maintenance.
  case compact
  /// Closes and reopens the store.
  case reopen
  /// Reopens the store without closing it, as after the process was killed.
  case die
}

extension HistoryStep {
  /// Returns the entries of the model after the step.
  ///
  /// - Parameter state: The entries before the step.
  func applied(to state: [StoreKey: Int]) -> [StoreKey: Int] {
    var state = state
    switch self {
    case .apply(let changes):
      for change in changes { change.apply(to: &state) }
    case .add(let number, let keys):
      for key in keys { state[key] = HistoryStep.sum(state[key], number) }
    case .abandon, .value, .values, .contains, .entries, .keys, .count, .pages, .synchronize, .compact, .reopen, .die:
      break
    }
    return state
  }

  /// Returns the value of a key after ``add(_:to:)``.
  static func sum(_ value: Int?, _ number: Int) -> Int? {
    let sum = (value ?? 0) + number
    return sum == 0 ? nil : sum
  }
}

extension HistoryStep: CustomStringConvertible {
  /// The step as Swift source code.
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

  private static func text(of change: BatchChange<Int>) -> String {
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

extension HistoryStep {
  /// The error of an abandoned update's body.
  private struct Abandonment: Error {}

  /// Runs the step on a store.
  ///
  /// The caller opens and closes stores, so ``reopen`` and ``die`` are no-ops here.
  ///
  /// - Parameter store: The store.
  /// - Returns: The result of the step.
  /// - Throws: Any error from the store.
  func run<Store: DataStore>(on store: Store) async throws -> HistoryResult where Store.Value: HistoryValue {
    switch self {
    case .apply(let changes):
      try await store.apply(ChangeBatch(changes.map { $0.mapValue { _, integer in .standing(for: integer) } }))
      return .done
    case .add(let number, let keys):
      let sums = try await store.update(keys) { slots in
        let sums = try slots.map { HistoryStep.sum(try $0?.number(), number) }
        slots.assign(sums.map { $0.map { .standing(for: $0) } })
        return sums
      }
      return .slots(sums)
    case .abandon(let keys):
      do {
        try await store.update(keys) { slots in
          for slot in slots.indices { slots[slot] = nil }
          throw Abandonment()
        }
      } catch is Abandonment {
        return .done
      }
      throw Mismatch(subject: "\(self)", expected: "the error of the body", got: "no error")
    case .value(let key): return .slots([try await store.value(forKey: key)?.number()])
    case .values(let keys): return .slots(try await store.values(forKeys: keys).map { try $0?.number() })
    case .contains(let key): return .truth(try await store.contains(key))
    case .entries(let range, let limit, let order):
      return .entries(try integers(in: await store.entries(in: range, limit: limit, order: order)))
    case .keys(let range, let limit, let order):
      return .keys(try await store.keys(in: range, limit: limit, order: order))
    case .count(let range): return .count(try await store.count(in: range))
    case .pages(let range, let size, let order):
      var pages: [[StoreEntry<Int>]] = []
      for try await page in store.pages(of: range, size: size, order: order) {
        pages.append(try integers(in: page.entries))
      }
      return .pages(pages)
    case .synchronize:
      try await store.synchronize()
      return .done
    case .compact:
      do {
        try await AnyDataStore(store).maintenance?.compact()
      } catch let error as StoreError where error.code == .unsupported && error.outcome == .nothingChanged {
        // Some stores reuse space by themselves and cannot release it.
      }
      return .done
    case .reopen, .die:
      return .done
    }
  }

  private func integers(in entries: [StoreEntry<some HistoryValue>]) throws -> [StoreEntry<Int>] {
    try entries.map { StoreEntry(key: $0.key, value: try $0.value.number()) }
  }

  /// Returns the result that the step must have.
  ///
  /// - Parameter state: The entries before the step.
  func result(in state: [StoreKey: Int]) -> HistoryResult {
    func entries(_ range: KeyRange, _ limit: Int, _ order: ScanOrder) -> [StoreEntry<Int>] {
      ScanModel(Array(state.keys)).keys(in: range, limit: limit, order: order)
        .compactMap { key in state[key].map { StoreEntry(key: key, value: $0) } }
    }
    switch self {
    case .apply, .abandon, .synchronize, .compact, .reopen, .die: return .done
    case .add(let number, let keys): return .slots(keys.map { HistoryStep.sum(state[$0], number) })
    case .value(let key): return .slots([state[key]])
    case .values(let keys): return .slots(keys.map { state[$0] })
    case .contains(let key): return .truth(state[key] != nil)
    case .entries(let range, let limit, let order): return .entries(entries(range, limit, order))
    case .keys(let range, let limit, let order): return .keys(entries(range, limit, order).map(\.key))
    case .count(let range): return .count(entries(range, .max, .ascending).count)
    case .pages(let range, let size, let order):
      let all = entries(range, .max, order)
      return .pages(stride(from: 0, to: all.count, by: size).map { Array(all[$0..<min($0 + size, all.count)]) })
    }
  }
}

extension HistoryStep {
  /// The keys that the step names individually.
  var namedKeys: [StoreKey] {
    switch self {
    case .apply(let changes): changes.compactMap(\.key)
    case .add(_, let keys), .abandon(let keys), .values(let keys): keys
    case .value(let key), .contains(let key): [key]
    case .entries, .keys, .count, .pages, .synchronize, .compact, .reopen, .die: []
    }
  }

  /// Returns whether the step concerns a key.
  ///
  /// - Parameter key: The key.
  func touches(_ key: StoreKey) -> Bool {
    switch self {
    case .entries(let range, _, _), .keys(let range, _, _), .count(let range), .pages(let range, _, _):
      range.contains(key)
    case .apply(let changes):
      changes.contains { change in
        if case .removeAll(let range) = change { range.contains(key) } else { change.key == key }
      }
    default: namedKeys.contains(key)
    }
  }
}

/// The result of a ``HistoryStep``.
public enum HistoryResult: Sendable, Equatable {
  /// The step succeeded and has no result.
  case done
  /// The values of keys, as read or after an addition.
  case slots([Int?])
  /// A Boolean value that indicates whether a key exists.
  case truth(Bool)
  /// The entries of a range.
  case entries([StoreEntry<Int>])
  /// The keys of a range.
  case keys([StoreKey])
  /// The number of entries.
  case count(Int)
  /// The entries of each page.
  case pages([[StoreEntry<Int>]])
}

extension HistoryResult: CustomStringConvertible {
  /// A readable description of the result.
  public var description: String {
    switch self {
    case .done: "done"
    case .slots(let slots): "[\(slots.map { $0.map(String.init) ?? "missing" }.joined(separator: ", "))]"
    case .truth(let isThere): isThere ? "present" : "missing"
    case .entries(let entries): HistoryResult.text(of: entries)
    case .keys(let keys): "[\(keys.map { shortened($0.description).unambiguous }.joined(separator: ", "))]"
    case .count(let count): "\(count)"
    case .pages(let pages): "[\(pages.map(HistoryResult.text).joined(separator: ", "))]"
    }
  }

  private static func text(of entries: [StoreEntry<Int>]) -> String {
    "[\(entries.map { "\(shortened($0.key.description).unambiguous): \($0.value)" }.joined(separator: ", "))]"
  }
}

/// A value of a store that stands for an integer of a history.
protocol HistoryValue: Sendable {
  static func standing(for integer: Int) -> Self

  /// Returns the integer.
  ///
  /// - Throws: A ``Mismatch`` if the value does not stand for an integer.
  func number() throws -> Int
}

extension Int: HistoryValue {
  static func standing(for integer: Int) -> Int { integer }

  func number() -> Int { self }
}

/// A stored nil stands for zero, so histories cover it too.
extension Optional: HistoryValue where Wrapped == SampleValue {
  static func standing(for integer: Int) -> SampleValue? {
    integer == 0 ? nil : SampleValue(integer: Int64(integer))
  }

  func number() throws -> Int {
    let integer = Int(self?.integer ?? 0)
    guard self == .standing(for: integer) else {
      throw Mismatch(subject: "a value in a history", expected: "an integer", got: text(of: self))
    }
    return integer
  }
}
