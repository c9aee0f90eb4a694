/// Finds out where in a value a byte lies.
///
/// Paths are made only for errors and for those who ask, so none is kept while all goes well. But a type may ignore one
/// error after another; so a finder goes on from where it stood, and goes back no further than to the beginning of the
/// array or map around the byte.
@usableFromInline
struct CBORPathFinder {
  /// An array, map or tag around the place.
  private struct Frame {
    /// Its first byte.
    let start: Int
    /// What follows its head.
    let contentStart: Int
    /// How many items it has; without a bound where the length is indefinite.
    let itemCount: UInt64
    let isMap: Bool
    let isTag: Bool
    let isIndefinite: Bool
    /// How many items came before the place.
    var index: UInt64 = 0
    /// The key of the value that comes next.
    var key = 0..<0
    /// Whether that key is a single item, and no array, map or tag.
    var hasPlainKey = false
  }

  /// The arrays, maps and tags around the place, the outermost one first.
  private var frames: [Frame] = []

  /// The place up to which the value has been looked at: the beginning of an item, or of a break.
  private var place = 0

  /// The path to the outermost item.
  private let prefix: [any CodingKey]

  @usableFromInline
  init(prefix: [any CodingKey] = []) { self.prefix = prefix }

  /// The path to the item that begins at an offset, or has its head or its bytes there.
  ///
  /// - Parameters:
  ///   - target: The offset.
  ///   - bytes: All of the value; it may break off or be malformed behind the offset. Between two calls nothing before
  ///     the later one of their offsets may change.
  mutating func path(to target: Int, in bytes: UnsafeRawBufferPointer) -> [any CodingKey] {
    if target < place { goBack(to: target) }
    var reader = CBORReader(bytes)
    reader.findsPaths = false
    reader.next = reader.base + place
    do {
      // Behind the outermost item there is nothing.
      while place <= target, place == 0 || !frames.isEmpty, try pass(to: target, &reader) { place = reader.offset }
    } catch {
      // Nothing can be said about what is behind a place that is malformed.
    }
    return prefix + frames.compactMap { step(in: $0, bytes) }
  }

  /// Goes back to an item that begins at the offset or before it.
  private mutating func goBack(to target: Int) {
    var last: Frame?
    while let frame = frames.last, frame.contentStart > target { last = frames.popLast() }
    if let last, last.start <= target {
      place = last.start
    } else if var frame = frames.popLast() {
      frame.index = 0
      frames.append(frame)
      place = frame.contentStart
    } else {
      place = 0
    }
  }

  /// Passes over an item, a break, or the head of an array, map or tag.
  ///
  /// - Returns: Whether it lies before the offset; where not, nothing is passed over.
  private mutating func pass(to target: Int, _ reader: inout CBORReader) throws -> Bool {
    let start = reader.offset
    if let frame = frames.last, frame.isIndefinite, try reader.readBreak() {
      guard reader.offset <= target else { return false }
      frames.removeLast()
      finishItem(frame.start..<reader.offset, isPlain: false)
      return true
    }
    let head = try reader.readHead()
    // The item is this one.
    guard reader.offset <= target else { return false }
    let count: UInt64
    switch head.major {
    case .unsigned, .negative, .simple, .bytes, .text:
      if head.major == .bytes || head.major == .text {
        try CBORPathFinder.skipContent(head, &reader)
        // The place is within the string.
        guard reader.offset <= target else { return false }
      }
      finishItem(start..<reader.offset, isPlain: true)
      return true
    case .array: count = head.argument
    case .map: count = head.argument.multipliedReportingOverflow(by: 2).partialValue
    case .tag: count = 1
    }
    guard frames.count <= CBORWriter.maximumDepth else { return false }
    if count == 0, !head.isIndefinite {
      finishItem(start..<reader.offset, isPlain: false)
      return true
    }
    frames.append(
      Frame(
        start: start, contentStart: reader.offset, itemCount: head.isIndefinite ? .max : count,
        isMap: head.major == .map, isTag: head.major == .tag, isIndefinite: head.isIndefinite))
    return true
  }

  private static func skipContent(_ head: ItemHead, _ reader: inout CBORReader) throws {
    if head.isIndefinite {
      while try !reader.readBreak() { try reader.skip() }
    } else {
      _ = try reader.content(head)
    }
  }

  /// Counts an item that has ended, and the arrays, maps and tags that end with it.
  private mutating func finishItem(_ item: Range<Int>, isPlain: Bool) {
    var (item, isPlain) = (item, isPlain)
    while var frame = frames.popLast() {
      if frame.isMap, frame.index.isMultiple(of: 2) {
        frame.key = item
        frame.hasPlainKey = isPlain
      }
      frame.index += 1
      guard frame.index == frame.itemCount else {
        frames.append(frame)
        return
      }
      item = frame.start..<item.upperBound
      isPlain = false
    }
  }

  /// The step from an array or map to the item at the place.
  private func step(in frame: Frame, _ bytes: UnsafeRawBufferPointer) -> CBORPathKey? {
    if frame.isTag { return nil }
    if !frame.isMap { return CBORPathKey(intValue: Int(clamping: frame.index)) }
    if frame.index.isMultiple(of: 2) { return nil }
    guard frame.hasPlainKey else { return CBORPathKey(stringValue: "…") }
    return CBORPathKey(stringValue: CBORDiagnostics.key(UnsafeRawBufferPointer(rebasing: bytes[frame.key])))
  }
}
