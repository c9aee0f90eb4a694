/// Estimates how often each key was asked for lately, by four counters of half a byte for each key: a count-min sketch.
///
/// The four counters of a key lie in one block of 64 bytes, so that an estimate costs one miss of the processor's
/// cache. When as many uses were counted as make a sample, all counters are halved, so that what was popular once is
/// forgotten. That goes on bit by bit with the uses that follow, so that none of them has to wait for the whole.
struct FrequencySketch: ~Copyable {
  /// The most that a counter counts.
  static let highestCount = 15

  /// How many counters there are for each entry of the cache, each word being sixteen of them.
  private static var wordsPerEntry: Int { 4 }

  /// How many uses make a sample, for each entry of the cache.
  ///
  /// With more of them popular keys are known better, and a change of what is popular later.
  private static var usesPerEntry: Int { 20 }

  /// How many words are halved with one use: so many that it ends long before the next sample does.
  private static var wordsPerStep: Int { 8 }

  // Eight words are a block, of which each of the four counters of a key has a pair of words.
  private var words: SlotArray<UInt64>
  private let blockCount: UInt64
  private var sampleSize: Int
  private var useCount = 0
  // How many words are halved; all of them, where that is not going on.
  private var agedCount: Int
  private var lostHalves = 0

  /// Makes a sketch.
  ///
  /// - Parameter capacity: How many keys matter at a time: as many as the cache has entries.
  init(capacity: Int) {
    let count = max(1, (capacity * FrequencySketch.wordsPerEntry + 7) / 8)
    blockCount = UInt64(count)
    words = SlotArray(count: count * 8, repeating: 0)
    sampleSize = FrequencySketch.sampleSize(for: capacity)
    agedCount = count * 8
  }

  private static func sampleSize(for capacity: Int) -> Int {
    usesPerEntry * max(capacity, 16)
  }

  /// Takes note that fewer or more keys matter, since entries are larger or smaller.
  ///
  /// - Parameter capacity: How many.
  mutating func setCapacity(_ capacity: Int) {
    sampleSize = FrequencySketch.sampleSize(for: capacity)
  }

  /// Estimates how often a key was asked for; seldom less than it was, unless it was long ago.
  ///
  /// - Parameter hash: A part of the hash of the key.
  /// - Returns: 0 to 15.
  func estimate(_ hash: UInt32) -> Int {
    let position = FrequencySketch.Position(of: hash, blockCount: blockCount)
    var least = FrequencySketch.highestCount
    for row in 0..<4 {
      let word = words[position.word(ofRow: row)]
      least = min(least, Int((word >> position.shift(ofRow: row)) & 0xF))
    }
    return least
  }

  /// Counts a use of a key.
  ///
  /// - Parameter hash: A part of the hash of the key.
  mutating func increment(_ hash: UInt32) {
    let position = FrequencySketch.Position(of: hash, blockCount: blockCount)
    var isCounted = false
    for row in 0..<4 {
      let index = position.word(ofRow: row)
      let shift = position.shift(ofRow: row)
      let word = words[index]
      guard (word >> shift) & 0xF < FrequencySketch.highestCount else { continue }
      words[index] = word + (1 << shift)
      isCounted = true
    }
    if agedCount < words.count { age() }
    guard isCounted else { return }
    useCount += 1
    if useCount >= sampleSize, agedCount == words.count { agedCount = 0 }
  }

  private mutating func age() {
    for index in agedCount..<min(words.count, agedCount + FrequencySketch.wordsPerStep) {
      let word = words[index]
      lostHalves += (word & 0x1111_1111_1111_1111).nonzeroBitCount
      words[index] = (word >> 1) & 0x7777_7777_7777_7777
    }
    agedCount = min(words.count, agedCount + FrequencySketch.wordsPerStep)
    guard agedCount == words.count else { return }
    useCount = (useCount - lostHalves / 4) / 2
    lostHalves = 0
  }

  /// Where the four counters of a key are.
  private struct Position {
    private let firstWord: Int
    private let choices: UInt64

    init(of hash: UInt32, blockCount: UInt64) {
      // Multiplied twice, so that neither the block nor a counter hangs on a few bits of the hash alone.
      let mixed = UInt64(hash) &* 0x9E37_79B9_7F4A_7C15
      firstWord = Int(((mixed >> 32) * blockCount) >> 32) * 8
      choices = ((mixed ^ (mixed >> 29)) &* 0xBF58_476D_1CE4_E5B9) >> 24
    }

    private func choice(ofRow row: Int) -> UInt64 { choices >> UInt64(row * 8) }

    func word(ofRow row: Int) -> Int { firstWord + row * 2 + Int(choice(ofRow: row) & 1) }

    func shift(ofRow row: Int) -> UInt64 { ((choice(ofRow: row) >> 1) & 0xF) * 4 }
  }
}
