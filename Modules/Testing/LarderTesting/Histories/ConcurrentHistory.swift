public import Larder

/// A history of concurrent operations on one store that may or may not be linearizable.
///
/// A history is *linearizable* if each operation can be assigned a moment between its invocation and its response such
/// that the operations, run one after another at these moments, return the same results. An operation with an unknown
/// outcome may have taken effect at any moment after its invocation, or not at all.
///
/// The search uses the algorithm of Wing and Gong with the memoization of Lowe ("Testing for linearizability", 2017),
/// and never visits the same set of completed operations with the same state twice. Linearizability is local (Herlihy
/// and Wing, 1990), so keys that no operation combines are checked separately. This keeps the search short.
///
/// ```swift
/// let history = ConcurrentHistory(start: ["a": 1], operations)
/// #expect(history.isLinearizable)
/// ```
public struct ConcurrentHistory: Sendable, Equatable {
  /// The initial entries of the store.
  public let start: [StoreKey: Int]

  /// The operations, in the order of their invocations.
  public let operations: [ConcurrentOperation]

  /// Creates a history.
  ///
  /// - Parameters:
  ///   - start: The initial entries of the store. Defaults to no entries.
  ///   - operations: The operations, in any order.
  public init(start: [StoreKey: Int] = [:], _ operations: [ConcurrentOperation]) {
    self.start = start
    self.operations = operations.sorted { $0.invocation < $1.invocation }
  }

  /// A Boolean value that indicates whether the history is linearizable.
  public var isLinearizable: Bool {
    parts.allSatisfy { LinearizationSearch(history: $0).succeeds() }
  }

  /// The shortest prefix of the history of some keys that is not linearizable, or `nil` if the whole history is
  /// linearizable.
  ///
  /// The prefix ends with the response that no order explains. Operations without a response by then have an unknown
  /// outcome.
  public var violation: ConcurrentHistory? {
    guard let part = parts.first(where: { !LinearizationSearch(history: $0).succeeds() }) else { return nil }
    // Every prefix of a linearizable history is linearizable, so a binary search finds the shortest one that is not.
    let times = part.operations.compactMap(\.response?.time).sorted()
    var (low, high) = (0, times.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if LinearizationSearch(history: part.beginning(upTo: times[middle])).succeeds() {
        low = middle + 1
      } else {
        high = middle
      }
    }
    return part.beginning(upTo: times[low])
  }

  private func beginning(upTo time: Int) -> ConcurrentHistory {
    ConcurrentHistory(
      start: start,
      operations.filter { $0.invocation <= time }.map { operation in
        guard let response = operation.response, response.time > time else { return operation }
        return ConcurrentOperation(
          task: operation.task, operation.step, invocation: operation.invocation, response: nil)
      })
  }

  /// The histories of groups of keys that no operation combines.
  ///
  /// The whole history is linearizable if each of them is.
  var parts: [ConcurrentHistory] {
    var keys = Set(start.keys)
    for operation in operations { keys.formUnion(operation.step.namedKeys) }
    // Union-find: each key points to another key of its group or to itself, and all keys of a group have the same root.
    var parents = Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    func root(of key: StoreKey) -> StoreKey {
      var key = key
      while let parent = parents[key], parent != key { key = parent }
      return key
    }
    let touched = operations.map { operation in keys.filter { operation.step.touches($0) } }
    for keys in touched {
      guard let first = keys.first else { continue }
      for key in keys { parents[root(of: key)] = root(of: first) }
    }
    var operationsByRoot: [StoreKey?: [ConcurrentOperation]] = [:]
    for (operation, keys) in zip(operations, touched) {
      operationsByRoot[keys.first.map(root), default: []].append(operation)
    }
    return operationsByRoot.map { partRoot, operations in
      ConcurrentHistory(start: start.filter { root(of: $0.key) == partRoot }, operations)
    }
  }
}

extension ConcurrentHistory: CustomStringConvertible {
  /// The initial entries, followed by a line for each operation.
  public var description: String {
    let entries = start.sorted { $0.key < $1.key }.map { StoreEntry(key: $0.key, value: $0.value) }
    return (["start: \(HistoryResult.entries(entries))"] + operations.map(\.description)).joined(separator: "\n")
  }
}

/// An operation of a ``ConcurrentHistory``, with its invocation and response.
public struct ConcurrentOperation: Sendable, Equatable {
  /// The response to an operation.
  public struct Response: Sendable, Equatable {
    /// The result of the operation.
    public let result: HistoryResult

    /// The number of events in the history before the response.
    public let time: Int

    /// Creates a response.
    ///
    /// - Parameters:
    ///   - result: The result of the operation.
    ///   - time: The number of events in the history before the response.
    public init(_ result: HistoryResult, time: Int) {
      self.result = result
      self.time = time
    }
  }

  /// The number of the task that ran the operation.
  public let task: Int

  /// The step of the operation.
  public let step: HistoryStep

  /// The number of events in the history before the invocation.
  public let invocation: Int

  /// The response; `nil` if the outcome is unknown, so the operation may take effect at any later time, or never.
  public let response: Response?

  /// Creates an operation.
  ///
  /// - Parameters:
  ///   - task: The number of the task that ran the operation.
  ///   - step: The step of the operation. Steps that open or close the store and ``HistoryStep/pages(_:size:_:)`` are
  ///     not atomic, and are not allowed in such a history.
  ///   - invocation: The number of events in the history before the invocation.
  ///   - response: The response; `nil` if the outcome is unknown.
  public init(task: Int, _ step: HistoryStep, invocation: Int, response: Response?) {
    self.task = task
    self.step = step
    self.invocation = invocation
    self.response = response
  }
}

extension ConcurrentOperation: CustomStringConvertible {
  /// The operation in one line, such as `task 2, 4…7: .value("a") returned [missing]`.
  public var description: String {
    let end = response.map { "\($0.time)" } ?? "?"
    let result = response.map { "returned \($0.result)" } ?? "has an unknown outcome"
    return "task \(task), \(invocation)…\(end): \(step) \(result)"
  }
}

/// A search for an order in which the operations of a ``ConcurrentHistory`` may have taken effect.
private struct LinearizationSearch {
  /// The completed operations and the resulting state, which determine all possible continuations.
  private struct Configuration: Hashable {
    var done: [Bool]
    var state: [StoreKey: Int]

    /// Returns the configuration after another operation, or `nil` if the operation would have had a different result.
    func doing(_ index: Int, _ operation: ConcurrentOperation) -> Configuration? {
      if let response = operation.response, operation.step.result(in: state) != response.result { return nil }
      var after = self
      after.done[index] = true
      after.state = operation.step.applied(to: state)
      return after
    }
  }

  let history: ConcurrentHistory

  /// Returns whether there is such an order.
  func succeeds() -> Bool {
    let operations = history.operations
    var seen: Set<Configuration> = []
    var path = [Configuration(done: operations.map { _ in false }, state: history.start)]
    while let configuration = path.popLast() {
      guard seen.insert(configuration).inserted else { continue }
      let rest = operations.indices.filter { !configuration.done[$0] }
      // An operation without a response need not have happened, so the search ends when every response is explained.
      guard let end = rest.compactMap({ operations[$0].response?.time }).min() else { return true }
      // The next operation must have begun before any of the others ended. The one that began first is tried first.
      for index in rest.reversed() where operations[index].invocation < end {
        if let after = configuration.doing(index, operations[index]) { path.append(after) }
      }
    }
    return false
  }
}
