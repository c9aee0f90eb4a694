import Larder

/// Looks for an order in which the operations of a ``ConcurrentHistory`` may have taken effect.
struct LinearizationSearch {
  /// The beginning or the end of an operation.
  private struct Event {
    let operation: Int
    let isResponse: Bool
  }

  /// What is done, and what the store then holds: all that matters for what can still come.
  private struct Configuration: Hashable {
    var done: [UInt64]
    var state: [StoreKey: Int]

    /// The configuration after one operation more, or `nil` where that would have given something else.
    func doing(_ index: Int, _ operation: ConcurrentOperation) -> Configuration? {
      if let response = operation.response, operation.step.result(in: state) != response.result { return nil }
      var after = self
      after.done[index / 64] |= 1 << UInt64(index % 64)
      after.state = operation.step.applied(to: state)
      return after
    }
  }

  private let operations: [ConcurrentOperation]
  private let start: [StoreKey: Int]

  // The events that are not done, in order, as a list that goes both ways; place 0 is before the first.
  private var events: [Event] = [Event(operation: -1, isResponse: false)]
  private var next: [Int] = []
  private var previous: [Int] = []
  private var responsePlaces: [Int?]

  init(_ history: ConcurrentHistory) {
    operations = history.operations
    start = history.start
    responsePlaces = operations.map { _ in nil }
    let moments = operations.indices.flatMap { index in
      [(time: operations[index].invocation, event: Event(operation: index, isResponse: false))]
        + (operations[index].response.map { [(time: $0.time, event: Event(operation: index, isResponse: true))] } ?? [])
    }
    events += moments.sorted { $0.time < $1.time }.map(\.event)
    for (place, event) in events.enumerated() where event.isResponse { responsePlaces[event.operation] = place }
    next = Array(1...events.count)
    previous = Array(-1..<events.count - 1)
  }

  /// Whether there is such an order.
  consuming func succeeds() -> Bool {
    var configuration = Configuration(done: Array(repeating: 0, count: operations.count / 64 + 1), state: start)
    var seen: Set<Configuration> = [configuration]
    var path: [(place: Int, before: Configuration)] = []
    var waiting = operations.count { $0.response != nil }
    var place = next[0]
    // What has no response need not have happened, so it is over when every response is explained.
    while waiting > 0 {
      let event = events[place]
      if event.isResponse {
        // This operation came to its end, and no order up to here has it: the last choice was wrong.
        guard let last = path.popLast() else { return false }
        configuration = last.before
        putBack(last.place)
        if operations[events[last.place].operation].response != nil { waiting += 1 }
        place = next[last.place]
        continue
      }
      if let after = configuration.doing(event.operation, operations[event.operation]), seen.insert(after).inserted {
        path.append((place, configuration))
        configuration = after
        takeOut(place)
        if operations[event.operation].response != nil { waiting -= 1 }
        place = next[0]
      } else {
        place = next[place]
      }
    }
    return true
  }

  private mutating func takeOut(_ place: Int) {
    unlink(place)
    if let response = responsePlaces[events[place].operation] { unlink(response) }
  }

  /// Undoes the last ``takeOut(_:)`` that was not undone.
  private mutating func putBack(_ place: Int) {
    if let response = responsePlaces[events[place].operation] { link(response) }
    link(place)
  }

  private mutating func unlink(_ place: Int) {
    next[previous[place]] = next[place]
    if next[place] < events.count { previous[next[place]] = previous[place] }
  }

  private mutating func link(_ place: Int) {
    next[previous[place]] = place
    if next[place] < events.count { previous[next[place]] = place }
  }
}
