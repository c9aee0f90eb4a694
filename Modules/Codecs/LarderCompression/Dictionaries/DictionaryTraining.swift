#if Compression
/// The algorithm of ``CompressionDictionary/train(on:size:)``.
struct DictionaryTraining {
  /// The length of the sequences that are counted, in bytes.
  static let sequenceLength = 8

  /// The approximate number of passes over the samples for one dictionary, which is the number of segments from each
  /// part.
  private static let roundCount = 4

  /// The size of the tables, as a power of two.
  private static let tableBits = 18

  /// All samples, concatenated.
  private let text: [UInt8]

  /// The number of samples that contain a sequence, minus one, at the index that ``place(of:at:)`` returns.
  private var counts: [UInt32]

  /// Counts the sequences of samples.
  init(_ samples: [[UInt8]]) {
    var counts = [UInt32](repeating: 0, count: 1 << Self.tableBits)
    var latest = [UInt32](repeating: 0, count: 1 << Self.tableBits)
    var text: [UInt8] = []
    text.reserveCapacity(samples.reduce(0) { $0 + $1.count })
    for (number, sample) in samples.enumerated() {
      let start = text.count
      text += sample
      let mark = UInt32(truncatingIfNeeded: number + 1)
      for index in start..<max(start, text.count - Self.sequenceLength + 1) {
        let place = Self.place(of: text, at: index)
        // Repetitions within one sample compress without a dictionary.
        guard latest[place] != mark else { continue }
        if latest[place] != 0 { counts[place] += 1 }
        latest[place] = mark
      }
    }
    self.text = text
    self.counts = counts
  }

  /// Returns the index of a sequence in the tables that other sequences may share.
  private static func place(of text: [UInt8], at index: Int) -> Int {
    let sequence = text.withUnsafeBytes {
      UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: index, as: UInt64.self))
    }
    // After a multiplication by a large odd number, the upper bits depend on all bytes.
    return Int(truncatingIfNeeded: (sequence &* 0x9E37_79B9_7F4A_7C15) >> UInt64(64 - tableBits))
  }

  /// Returns a dictionary of segments of the samples.
  ///
  /// - Parameters:
  ///   - size: The maximum size of the dictionary, in bytes.
  ///   - segmentLength: The maximum length of a segment, in bytes. Defaults to 256. Records of 150 and 800 bytes take
  ///     up to 10 % more with 32 or 64, and about the same with 512.
  /// - Returns: At most `size` bytes; none if no sequence occurs in two samples.
  func dictionary(size: Int, segmentLength: Int = 256) -> [UInt8] {
    let partCount = max(1, min(size / segmentLength / Self.roundCount, text.count / (segmentLength * 10)))
    let partLength = text.count / partCount
    var counts = counts
    // Filled from the end: the first segments are the most useful ones, and short distances take fewer bits.
    var segments: [Range<Int>] = []
    var room = size
    var part = 0
    var fruitless = 0
    while room >= Self.sequenceLength, fruitless < partCount {
      let range = part * partLength..<(part == partCount - 1 ? text.count : (part + 1) * partLength)
      part = (part + 1) % partCount
      guard let segment = bestSegment(in: range, length: min(segmentLength, room), counts: &counts) else {
        fruitless += 1
        continue
      }
      fruitless = 0
      segments.append(segment)
      room -= segment.count
    }
    return segments.reversed().flatMap { text[$0] }
  }

  /// Returns the segment whose sequences occur in most samples, trimmed of useless bytes at its ends, and resets the
  /// counts of its sequences.
  ///
  /// - Returns: The segment, or `nil` if no sequence in the range occurs in two samples.
  private func bestSegment(in range: Range<Int>, length: Int, counts: inout [UInt32]) -> Range<Int>? {
    let span = length - Self.sequenceLength + 1
    let end = range.upperBound - Self.sequenceLength + 1
    // A sequence that occurs twice in a segment counts once, so its last index is remembered. Only the last few hundred
    // sequences matter, so a small table is enough. Sequences that it forgets count twice.
    var lastSeen = [Int](repeating: Int.min / 2, count: 4096)
    var gains = [UInt32](repeating: 0, count: span)
    var score: UInt64 = 0
    var best: (score: UInt64, start: Int) = (0, range.lowerBound)
    for index in range.lowerBound..<max(range.lowerBound, end) {
      let place = Self.place(of: text, at: index)
      let slot = (index - range.lowerBound) % span
      score -= UInt64(gains[slot])
      gains[slot] = index - lastSeen[place & 4095] < span ? 0 : counts[place]
      lastSeen[place & 4095] = index
      score += UInt64(gains[slot])
      if score > best.score { best = (score, max(range.lowerBound, index - span + 1)) }
    }
    guard best.score > 0 else { return nil }
    var useful: (first: Int, last: Int)?
    for index in best.start..<min(best.start + span, end) {
      let place = Self.place(of: text, at: index)
      // Another occurrence of it in the segment is useless.
      if counts[place] > 0 { useful = (useful?.first ?? index, index) }
      counts[place] = 0
    }
    return useful.map { $0.first..<$0.last + Self.sequenceLength }
  }
}
#endif
