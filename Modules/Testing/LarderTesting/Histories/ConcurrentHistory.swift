public import Larder

/// What several tasks did with one store at the same time, and whether that can be explained.
///
/// It can, and the history is *linearizable*, where each operation can be given a moment between its invocation and its
/// response so that, done one after another at these moments, the operations give what they gave. An operation of
/// unknown outcome may have any moment after its invocation, or none.
///
/// The search is that of Wing and Gong with the memory of Lowe ("Testing for linearizability", 2017): it never looks
/// twice at the same operations done with the same outcome. Linearizability is local (Herlihy and Wing, 1990), so keys
/// that no operation joins are looked at one by one, which keeps the search short.
public struct ConcurrentHistory: Sendable, Equatable {
  /// What the store held at first.
  public let start: [StoreKey: Int]

  /// The operations, in the order of their invocations.
  public let operations: [ConcurrentOperation]

  /// Describes a history.
  ///
  /// - Parameters:
  ///   - start: What the store held at first; nothing unless given.
  ///   - operations: The operations, in any order.
  public init(start: [StoreKey: Int] = [:], _ operations: [ConcurrentOperation]) {
    self.start = start
    self.operations = operations.sorted { $0.invocation < $1.invocation }
  }

  /// Whether the history can be explained.
  public var isLinearizable: Bool {
    parts.allSatisfy { LinearizationSearch($0).succeeds() }
  }

  /// The shortest beginning of the history of some keys that cannot be explained, or `nil` where all can.
  ///
  /// It ends with the response that spoils it; operations without a response by then are counted as of unknown outcome.
  public var violation: ConcurrentHistory? {
    guard let part = parts.first(where: { !LinearizationSearch($0).succeeds() }) else { return nil }
    // A beginning of what can be explained can be explained, so the shortest one is found by halving.
    let times = part.operations.compactMap(\.response?.time).sorted()
    var (low, high) = (0, times.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if LinearizationSearch(part.beginning(upTo: times[middle])).succeeds() {
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

  /// Histories of keys that no operation joins; each can be explained by itself, or not.
  var parts: [ConcurrentHistory] {
    var keys = Set(start.keys)
    for operation in operations { keys.formUnion(operation.step.namedKeys) }
    // Each key points to another of its part, or to itself; following the pointers leads to the same key for a whole part.
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
  /// What the store held, and a line for each operation.
  public var description: String {
    let entries = start.sorted { $0.key < $1.key }.map { StoreEntry(key: $0.key, value: $0.value) }
    return (["at first: \(HistoryResult.entries(entries))"] + operations.map(\.description)).joined(separator: "\n")
  }
}
