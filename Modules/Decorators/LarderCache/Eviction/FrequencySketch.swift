/// A count-min sketch that estimates how often each key was used recently, with four 4-bit counters for each key.
///
/// The four counters of a key lie in one block of 64 bytes, so an estimate costs one miss of the processor's cache.
/// When a full sample of uses has been counted, all counters are halved, so the sketch forgets keys that were popular
/// once. The halving is spread over the following uses, so none of them has to wait for all of it.
struct FrequencySketch: ~Copyable {
  /// The maximum of a counter.
  static let highestCount = 15

  /// The number of words for each entry of the cache.
  ///
  /// A word contains sixteen counters.
  private static var wordsPerEntry: Int { 4 }

  /// The number of uses in a sample, for each entry of the cache.
  ///
  /// A larger sample estimates popular keys better, but notices later that other keys have become popular.
  private static var usesPerEntry: Int { 20 }

  /// The number of words halved with one use, high enough that the halving ends long before the next sample.
  private static var wordsPerStep: Int { 8 }

  // Eight words are a block, in which each of the four counters of a key has two words to choose from.
  private var words: AlignedWords
  private var sampleSize: Int
  private var useCount = 0
  // The number of words halved so far, or all words if no halving is in progress.
  private var agedCount: Int
  private var lostHalves = 0

  private var blockCount: UInt64 { UInt64(words.count / 8) }

  /// Creates a sketch.
  ///
  /// - Parameter capacity: The number of keys that matter at a time. It is the number of entries of the full cache.
  ///   Initially, there is memory for at most 512 of them. ``reserve(_:)`` allocates more.
  init(capacity: Int) {
    var blockCount = max(1, (capacity * FrequencySketch.wordsPerEntry + 7) / 8)
    while blockCount > 256 { blockCount = (blockCount + 1) / 2 }
    words = AlignedWords(count: blockCount * 8)
    sampleSize = FrequencySketch.sampleSize(for: capacity)
    agedCount = words.count
  }

  /// Allocates memory for a number of keys, if there is too little.
  ///
  /// - Parameter count: The number of keys.
  mutating func reserve(_ count: Int) {
    while words.count < count * FrequencySketch.wordsPerEntry {
      while agedCount < words.count { age() }
      // The keys of a block are divided between two blocks, whose counters both begin with the counts of the old block.
      var grown = AlignedWords(count: words.count * 2)
      for index in 0..<words.count {
        let place = index / 8 * 16 + index % 8
        grown[place] = words[index]
        grown[place + 8] = words[index]
      }
      words = grown
      agedCount = words.count
    }
  }

  private static func sampleSize(for capacity: Int) -> Int {
    usesPerEntry * max(capacity, 16)
  }

  /// Changes the number of keys that matter, because entries have become larger or smaller.
  ///
  /// - Parameter capacity: The number of keys.
  mutating func setCapacity(_ capacity: Int) {
    sampleSize = FrequencySketch.sampleSize(for: capacity)
  }

  /// Returns an estimate of how often a key was used.
  ///
  /// It is seldom too low except for uses of long ago.
  ///
  /// - Parameter hash: A part of the hash of the key.
  /// - Returns: The estimate, from 0 to 15.
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

  /// The position of the four counters of a key.
  private struct Position {
    private let firstWord: Int
    private let choices: UInt64

    init(of hash: UInt32, blockCount: UInt64) {
      // Two multiplications, so that neither the block nor a counter depends on only a few bits of the hash.
      let mixed = UInt64(hash) &* 0x9E37_79B9_7F4A_7C15
      firstWord = Int(((mixed >> 32) * blockCount) >> 32) * 8
      choices = ((mixed ^ (mixed >> 29)) &* 0xBF58_476D_1CE4_E5B9) >> 24
    }

    private func choice(ofRow row: Int) -> UInt64 { choices >> UInt64(row * 8) }

    func word(ofRow row: Int) -> Int { firstWord + row * 2 + Int(choice(ofRow: row) & 1) }

    func shift(ofRow row: Int) -> UInt64 { ((choice(ofRow: row) >> 1) & 0xF) * 4 }
  }
}

/// Words in memory that is aligned to the lines of the processor's cache, so the 64 bytes of a block lie in one line.
///
/// With an array, whose elements are not aligned, an insertion into a `MemoryCache` takes 6 to 9 % longer.
///
/// The type is `Sendable` because it alone knows its memory, cannot be copied, and changes it in mutating methods only,
/// which require exclusive access.
// Not private: in release builds with `-enable-testing` the linker would not find it (Swift 6.3.1).
struct AlignedWords: ~Copyable, @unchecked Sendable {
  private let words: UnsafeMutableBufferPointer<UInt64>

  init(count: Int) {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: count * 8, alignment: 64)
    words = memory.initializeMemory(as: UInt64.self, repeating: 0)
  }

  deinit {
    words.deallocate()
  }

  var count: Int { words.count }

  subscript(index: Int) -> UInt64 {
    get {
      precondition(words.indices.contains(index))
      return words[index]
    }
    set {
      precondition(words.indices.contains(index))
      words[index] = newValue
    }
  }
}
