#if Compression
/// A part of a file in memory, which moves on as the file is gone through.
struct FileWindow {
  private static let capacity = 1 << 20

  /// How many bytes of the file there are.
  let size: Int64

  private let read: (Range<Int64>) throws -> [UInt8]
  private var bytes: [UInt8] = []
  private var start: Int64 = 0

  /// Makes a window on a file.
  ///
  /// - Parameters:
  ///   - size: How many bytes of the file there are.
  ///   - read: Reads the bytes of a range within them.
  init(size: Int64, read: @escaping (Range<Int64>) throws -> [UInt8]) {
    self.size = size
    self.read = read
  }

  /// Calls a closure with bytes of the file.
  ///
  /// - Parameters:
  ///   - offset: Where they begin.
  ///   - count: How many there are to be; there are fewer at the end of the file.
  ///   - body: Gets them.
  /// - Throws: What reading and `body` throw.
  mutating func withBytes<Result>(
    at offset: Int64, count: Int, _ body: (UnsafeRawBufferPointer) throws -> Result
  ) throws -> Result {
    let end = min(max(offset, 0) + Int64(count), size)
    if offset < start || end > start + Int64(bytes.count) {
      let newEnd = min(max(end, offset + Int64(FileWindow.capacity)), size)
      bytes = try read(offset..<max(offset, newEnd))
      start = offset
    }
    let first = min(Int(offset - start), bytes.count)
    let range = first..<max(first, min(Int(end - start), bytes.count))
    return try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[range])) }
  }

  /// Whether the mark of BGZF for the end of a file stands at a place.
  mutating func hasMarker(at offset: Int64) throws -> Bool {
    try withBytes(at: offset, count: BlockFrame.endOfFileMarker.count) { $0.elementsEqual(BlockFrame.endOfFileMarker) }
  }

  /// Finds the places in a part of the file at which some bytes stand.
  ///
  /// - Parameters:
  ///   - pattern: The bytes; one at least.
  ///   - start: Where the part begins.
  /// - Returns: The places, and where the next part begins.
  mutating func places(of pattern: [UInt8], from start: Int64) throws -> (places: [Int64], end: Int64) {
    let step = 1 << 16
    let places = try withBytes(at: start, count: step + pattern.count - 1) { bytes in
      var places: [Int64] = []
      var place = 0
      while let next = bytes[place...].firstIndex(of: pattern[0]), next < step {
        if bytes[next...].starts(with: pattern) { places.append(start + Int64(next)) }
        place = next + 1
      }
      return places
    }
    return (places, start + Int64(step))
  }
}
#endif
