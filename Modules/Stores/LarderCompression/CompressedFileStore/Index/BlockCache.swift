#if Compression
/// The texts of blocks that were read last, up to a number of bytes; which goes first is decided as by a clock with a
/// hand: one that was read since the hand last came by is passed over once.
struct BlockCache {
  /// The text of a block, and where the next one begins.
  struct Block: Equatable, Sendable {
    var text: [UInt8]
    var end: Int64
    /// Whether the text goes on with a line that the block before has begun.
    var isContinuation = false
  }

  private struct Slot {
    var offset: Int64
    var block: Block
    var wasRead: Bool
  }

  /// What a slot takes beside its text, about.
  private static let overhead = 96

  /// The most bytes that the blocks may take.
  let capacity: Int

  /// The bytes that they take.
  private(set) var size = 0

  private var slots: [Slot] = []
  private var places: [Int64: Int] = [:]
  private var hand = 0

  /// Makes a cache.
  ///
  /// - Parameter capacity: The most bytes that the blocks may take; 0 for none.
  init(capacity: Int) {
    self.capacity = capacity
  }

  /// The block that begins at a place of the file, where it is there.
  mutating func block(at offset: Int64) -> Block? {
    guard let place = places[offset] else { return nil }
    slots[place].wasRead = true
    return slots[place].block
  }

  /// Keeps a block, and lets others go where there is no room.
  ///
  /// - Returns: What was let go, so that the caller can release it outside a lock.
  mutating func insert(_ block: Block, at offset: Int64) -> [Block] {
    let cost = BlockCache.cost(of: block)
    guard cost <= capacity, places[offset] == nil else { return [] }
    var removed: [Block] = []
    while size + cost > capacity {
      if hand >= slots.count { hand = 0 }
      if slots[hand].wasRead {
        slots[hand].wasRead = false
        hand += 1
      } else {
        removed.append(remove(at: hand))
      }
    }
    places[offset] = slots.count
    slots.append(Slot(offset: offset, block: block, wasRead: false))
    size += cost
    return removed
  }

  private mutating func remove(at place: Int) -> Block {
    let slot = slots[place]
    size -= BlockCache.cost(of: slot.block)
    places[slot.offset] = nil
    // The last one takes its place.
    let last = slots.removeLast()
    if place < slots.count {
      slots[place] = last
      places[last.offset] = place
    }
    return slot.block
  }

  /// Lets all go.
  mutating func removeAll() {
    self = BlockCache(capacity: capacity)
  }

  private static func cost(of block: Block) -> Int { block.text.count + overhead }
}
#endif
