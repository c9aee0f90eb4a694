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
  private var words: AlignedWords
  private var sampleSize: Int
  private var useCount = 0
  // How many words are halved; all of them, where that is not going on.
  private var agedCount: Int
  private var lostHalves = 0

  private var blockCount: UInt64 { UInt64(words.count / 8) }

  /// Makes a sketch.
  ///
  /// - Parameter capacity: How many keys matter at a time: as many as the cache has entries when it is full. There is
  ///   memory for at most 512 of them at first; ``reserve(_:)`` takes more.
  init(capacity: Int) {
    var blockCount = max(1, (capacity * FrequencySketch.wordsPerEntry + 7) / 8)
    while blockCount > 256 { blockCount = (blockCount + 1) / 2 }
    words = AlignedWords(count: blockCount * 8)
    sampleSize = FrequencySketch.sampleSize(for: capacity)
    agedCount = words.count
  }

  /// Takes memory for as many keys, if there is too little.
  ///
  /// - Parameter count: How many keys.
  mutating func reserve(_ count: Int) {
    while words.count < count * FrequencySketch.wordsPerEntry {
      while agedCount < words.count { age() }
      // Of the keys of a block one half goes to each of two, whose counters begin with what the block has counted.
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

/// Words in memory that is taken once, from the beginning of a line of the processor's cache: so the 64 bytes of a block
/// lie in one line.
///
/// It is `Sendable` since it alone knows its memory, cannot be copied, and changes it in mutating methods only: who may
/// call one has it to himself.
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
