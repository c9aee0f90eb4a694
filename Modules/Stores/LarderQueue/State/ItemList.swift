import Larder

/// A list of items in the order of their sequence numbers, in chunks of up to 128, with fast access to the first
/// waiting items.
///
/// Most items are appended at the end and removed at the beginning. Both cost O(1) plus the moving of items within a
/// chunk.
struct ItemList: Sendable {
  private struct Chunk: Sendable {
    var items: [QueueItem]
    var waitingCount: Int

    init(_ items: [QueueItem]) {
      self.items = items
      waitingCount = items.count { $0.phase == .waiting }
    }

    func lowerBound(of sequence: UInt64) -> Int {
      items.partitionPoint { $0.sequence < sequence }
    }
  }

  private static let capacity = 128

  // No chunk is ever empty, so each has a first sequence number.
  private var chunks: [Chunk] = []
  private var firstSequences: [UInt64] = []

  /// The index of a chunk before which no chunk has a waiting item.
  private var waitingHint = 0

  private(set) var count = 0

  /// The item with the lowest sequence number.
  var first: QueueItem? { chunks.first?.items.first }

  subscript(sequence: UInt64) -> QueueItem? {
    guard let (chunk, offset) = find(sequence) else { return nil }
    return chunks[chunk].items[offset]
  }

  private func find(_ sequence: UInt64) -> (chunk: Int, offset: Int)? {
    let index = chunkIndex(for: sequence)
    guard index >= 0 else { return nil }
    let offset = chunks[index].lowerBound(of: sequence)
    guard offset < chunks[index].items.count, chunks[index].items[offset].sequence == sequence else { return nil }
    return (index, offset)
  }

  /// Returns the index of the last chunk that begins at or before a sequence number, or -1.
  private func chunkIndex(for sequence: UInt64) -> Int {
    firstSequences.partitionPoint { $0 <= sequence } - 1
  }

  /// Inserts an item, replacing any item with the same sequence number.
  mutating func set(_ item: QueueItem) {
    let index = max(chunkIndex(for: item.sequence), 0)
    guard index < chunks.count else {
      insertChunk([item], at: 0)
      count += 1
      return
    }
    let offset = chunks[index].lowerBound(of: item.sequence)
    if offset < chunks[index].items.count, chunks[index].items[offset].sequence == item.sequence {
      if chunks[index].items[offset].phase == .waiting { chunks[index].waitingCount -= 1 }
      chunks[index].items[offset] = item
      noteWaiting(item, in: index)
      return
    }
    count += 1
    insert(item, chunk: index, offset: offset)
  }

  private mutating func insert(_ item: QueueItem, chunk index: Int, offset: Int) {
    var (index, offset) = (index, offset)
    if chunks[index].items.count >= ItemList.capacity {
      if index == chunks.count - 1, offset == chunks[index].items.count {
        insertChunk([item], at: index + 1)
        return
      }
      let half = chunks[index].items.count / 2
      let (lower, upper) = (Array(chunks[index].items[..<half]), Array(chunks[index].items[half...]))
      chunks[index] = Chunk(lower)
      insertChunk(upper, at: index + 1)
      if offset > half { (index, offset) = (index + 1, offset - half) }
    }
    chunks[index].items.insert(item, at: offset)
    if offset == 0 { firstSequences[index] = item.sequence }
    noteWaiting(item, in: index)
  }

  private mutating func noteWaiting(_ item: QueueItem, in chunk: Int) {
    guard item.phase == .waiting else { return }
    chunks[chunk].waitingCount += 1
    waitingHint = min(waitingHint, chunk)
  }

  private mutating func insertChunk(_ items: [QueueItem], at index: Int) {
    var items = items
    items.reserveCapacity(ItemList.capacity)
    chunks.insert(Chunk(items), at: index)
    firstSequences.insert(items[0].sequence, at: index)
    waitingHint = min(waitingHint, index)
  }

  /// Removes an item, if it exists.
  mutating func remove(_ sequence: UInt64) {
    guard let (index, offset) = find(sequence) else { return }
    let item = chunks[index].items.remove(at: offset)
    if item.phase == .waiting { chunks[index].waitingCount -= 1 }
    count -= 1
    if offset == 0, let first = chunks[index].items.first { firstSequences[index] = first.sequence }
    mergeOrRemoveChunk(at: index)
  }

  /// Removes an empty chunk, and merges a small one with a neighbor.
  private mutating func mergeOrRemoveChunk(at index: Int) {
    let size = chunks[index].items.count
    if size == 0 {
      chunks.remove(at: index)
      firstSequences.remove(at: index)
      if index < waitingHint { waitingHint -= 1 }
    } else if size < ItemList.capacity / 4 {
      for left in [index - 1, index] where left >= 0 && left + 1 < chunks.count {
        guard chunks[left].items.count + chunks[left + 1].items.count <= ItemList.capacity * 3 / 4 else { continue }
        let right = chunks.remove(at: left + 1)
        firstSequences.remove(at: left + 1)
        chunks[left].items.append(contentsOf: right.items)
        chunks[left].waitingCount += right.waitingCount
        firstSequences[left] = chunks[left].items[0].sequence
        waitingHint = min(waitingHint, left)
        return
      }
    }
  }

  /// Returns the first waiting items.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of items.
  ///   - isWanted: A closure that returns whether to include an item.
  mutating func firstWaiting(_ limit: Int, where isWanted: (QueueItem) -> Bool = { _ in true }) -> [QueueItem] {
    while waitingHint < chunks.count, chunks[waitingHint].waitingCount == 0 { waitingHint += 1 }
    var found: [QueueItem] = []
    for chunk in chunks[min(waitingHint, chunks.count)...] {
      guard found.count < limit else { break }
      guard chunk.waitingCount > 0 else { continue }
      for item in chunk.items where item.phase == .waiting && isWanted(item) {
        guard found.count < limit else { break }
        found.append(item)
      }
    }
    return found
  }

  /// All items, in order.
  var all: some Sequence<QueueItem> { chunks.lazy.flatMap(\.items) }

  /// Returns the items from a sequence number on that do not wait, in order.
  ///
  /// Chunks of which all items wait are passed over.
  func heldItems(from sequence: UInt64) -> some Sequence<QueueItem> {
    chunks[max(chunkIndex(for: sequence), 0)...].lazy.filter { $0.waitingCount < $0.items.count }.flatMap {
      $0.items[$0.lowerBound(of: sequence)...].lazy.filter { $0.phase != .waiting }
    }
  }

  /// Returns the items from a sequence number on, in order.
  func items(from sequence: UInt64) -> some Sequence<QueueItem> {
    chunks[max(chunkIndex(for: sequence), 0)...].lazy.flatMap { $0.items[$0.lowerBound(of: sequence)...] }
  }
}
