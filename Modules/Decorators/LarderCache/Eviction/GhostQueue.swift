/// The hashes of the latest keys that left a cache, in memory that is reserved once.
///
/// A hash stands with the number of its turn in one of four places; the newest ones push out the oldest of their four.
/// So it forgets a few somewhat early, and takes one key for another once in many millions.
struct GhostQueue: ~Copyable {
  private struct Place: BitwiseCopyable, Sendable {
    var hash: UInt32 = 0
    // 0 where nothing is.
    var turn: UInt32 = 0
  }

  private static var placesPerBucket: Int { 4 }

  private let capacity: UInt32
  private let bucketMask: UInt32
  private var places: SlotArray<Place>
  private var turn: UInt32 = 0

  /// Makes a queue.
  ///
  /// - Parameter capacity: How many of the latest keys matter.
  init(capacity: Int) {
    var bucketCount = 1
    while bucketCount * GhostQueue.placesPerBucket < capacity * 3 / 2 { bucketCount *= 2 }
    self.capacity = UInt32(clamping: capacity)
    bucketMask = UInt32(bucketCount - 1)
    places = SlotArray(count: bucketCount * GhostQueue.placesPerBucket, repeating: Place())
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
  /// - Returns: Whether it was among the latest.
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
