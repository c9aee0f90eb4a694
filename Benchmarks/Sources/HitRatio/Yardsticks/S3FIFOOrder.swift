/// S3-FIFO, which consists of three queues and never moves an entry when it is used.
///
/// New entries enter a small queue, a tenth of the cache. At its end, entries that were used again move to the main
/// queue, and the others are evicted. The hashes of evicted keys are remembered, as many as the main queue has entries.
/// If such a key is inserted again, it enters the main queue directly. At the end of the main queue, an entry that was
/// used is inserted again, up to three times.
///
/// See Yang, Zhang, Qiu, Yue and Vinayak, "FIFO queues are all you need for cache eviction" (SOSP 2023).
struct S3FIFOOrder: YardstickOrder, ~Copyable {
  private enum Mark {
    static let free: UInt8 = 0
    static let small: UInt8 = 4
    static let main: UInt8 = 8
    /// The lowest two bits count the uses.
    static let uses: UInt8 = 3
  }

  private static var smallShare: Double { 0.1 }

  private let smallLimit: Int

  private var records: SlotRecords
  private var small = SlotRecords.List()
  private var main = SlotRecords.List()
  private var ghosts: GhostQueue

  init(entryLimit: Int) {
    smallLimit = max(1, Int(Double(entryLimit) * S3FIFOOrder.smallShare))
    records = SlotRecords(hasCosts: false)
    ghosts = GhostQueue(capacity: max(1, entryLimit - smallLimit))
  }

  var count: Int { small.count + main.count }

  mutating func insert(_ slot: Slot, hash: UInt32) {
    if ghosts.remove(hash) {
      records.append(slot, hash: hash, cost: 1, mark: Mark.main, to: &main)
    } else {
      records.append(slot, hash: hash, cost: 1, mark: Mark.small, to: &small)
    }
  }

  mutating func use(_ slot: Slot) {
    let mark = records.mark(of: slot)
    guard mark != Mark.free, mark & Mark.uses < Mark.uses else { return }
    records.setMark(mark + 1, of: slot)
  }

  mutating func remove(_ slot: Slot) {
    if records.mark(of: slot) & Mark.small != 0 {
      records.remove(slot, from: &small)
    } else {
      records.remove(slot, from: &main)
    }
    records.setMark(Mark.free, of: slot)
  }

  mutating func nextVictim() -> Slot {
    while small.count > smallLimit || main.count == 0 {
      let slot = small.first
      guard slot != .none else { break }
      guard records.mark(of: slot) & Mark.uses > 1 else {
        ghosts.append(records.hash(of: slot))
        return slot
      }
      records.remove(slot, from: &small)
      records.append(slot, mark: Mark.main, to: &main)
    }
    while main.first != .none {
      let slot = main.first
      let mark = records.mark(of: slot)
      guard mark & Mark.uses > 0 else { return slot }
      records.remove(slot, from: &main)
      records.append(slot, mark: mark - 1, to: &main)
    }
    return small.first
  }
}

/// The hashes of the keys that were evicted last, in memory that is allocated once.
///
/// A hash is stored with its sequence number in one of four positions, where it replaces the oldest of the four. The
/// queue therefore forgets some hashes early, and mistakes one key for another once in many millions.
private struct GhostQueue: ~Copyable {
  private struct Place: BitwiseCopyable, Sendable {
    var hash: UInt32 = 0
    // 0 for an empty position.
    var turn: UInt32 = 0
  }

  private static var placesPerBucket: Int { 4 }

  private let capacity: UInt32
  private let bucketMask: UInt32
  private var places: [Place]
  private var turn: UInt32 = 0

  /// Creates a queue.
  ///
  /// - Parameter capacity: The number of keys to remember.
  init(capacity: Int) {
    var bucketCount = 1
    while bucketCount * GhostQueue.placesPerBucket < capacity * 3 / 2 { bucketCount *= 2 }
    self.capacity = UInt32(clamping: capacity)
    bucketMask = UInt32(bucketCount - 1)
    places = Array(repeating: Place(), count: bucketCount * GhostQueue.placesPerBucket)
  }

  /// Remembers a hash.
  mutating func append(_ hash: UInt32) {
    turn = turn == .max ? 1 : turn + 1
    let indexes = self.indexes(of: hash)
    let oldest = indexes.max { age(of: places[$0]) < age(of: places[$1]) }
    if let oldest { places[oldest] = Place(hash: hash, turn: turn) }
  }

  /// Forgets a hash.
  ///
  /// - Returns: Whether the queue remembered it.
  mutating func remove(_ hash: UInt32) -> Bool {
    let index = indexes(of: hash).first { places[$0].hash == hash && age(of: places[$0]) < capacity }
    guard let index else { return false }
    places[index] = Place()
    return true
  }

  private func indexes(of hash: UInt32) -> Range<Int> {
    let start = Int((hash &* 0x9E37_79B9) >> 7 & bucketMask) * GhostQueue.placesPerBucket
    return start..<start + GhostQueue.placesPerBucket
  }

  private func age(of place: Place) -> UInt32 {
    place.turn == 0 ? .max : turn &- place.turn
  }
}
