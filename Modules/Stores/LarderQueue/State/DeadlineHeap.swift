/// Deadlines, the earliest first: a binary heap.
///
/// An outdated deadline stays until it comes first; the caller that takes it has to check that it still holds.
struct DeadlineHeap: Sendable {
  struct Entry: Sendable, Hashable {
    var deadline: Int64
    var sequence: UInt64
  }

  private var entries: [Entry] = []

  var count: Int { entries.count }
  var first: Entry? { entries.first }

  init() {}

  /// Makes a heap of entries in any order.
  init(_ entries: [Entry]) {
    // In order is in heap order.
    self.entries = entries.sorted { $0.deadline < $1.deadline }
  }

  mutating func insert(_ entry: Entry) {
    entries.append(entry)
    var index = entries.count - 1
    while index > 0 {
      let parent = (index - 1) / 2
      guard entries[index].deadline < entries[parent].deadline else { return }
      entries.swapAt(index, parent)
      index = parent
    }
  }

  @discardableResult
  mutating func removeFirst() -> Entry? {
    guard let last = entries.popLast() else { return nil }
    guard let first = entries.first else { return last }
    entries[0] = last
    var index = 0
    while true {
      var least = index
      for child in [2 * index + 1, 2 * index + 2] where child < entries.count {
        if entries[child].deadline < entries[least].deadline { least = child }
      }
      guard least != index else { return first }
      entries.swapAt(index, least)
      index = least
    }
  }
}
