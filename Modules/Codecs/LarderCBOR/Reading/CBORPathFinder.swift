/// Finds the coding path of a byte in a value.
///
/// Paths are computed only for errors and on request, so successful coding does not need them. A type may ignore one error
/// after another, so a finder continues from its last position. It goes back no further than to the start of the array
/// or map around the byte.
struct CBORPathFinder {
  /// An array, map or tag that encloses the position.
  private struct Frame {
    /// The offset of its first byte.
    let start: Int
    /// The offset after its head.
    let contentStart: Int
    /// The number of its items, or `UInt64.max` if the length is indefinite.
    let itemCount: UInt64
    let isMap: Bool
    let isTag: Bool
    let isIndefinite: Bool
    /// The number of items before the position.
    var index: UInt64 = 0
    /// The bytes of the key of the next value.
    var key = 0..<0
  }

  /// The arrays, maps and tags that enclose the position, the outermost first.
  private var frames: [Frame] = []

  /// The offset up to which the value has been examined.
  ///
  /// It is the start of an item or of a break.
  private var place = 0

  /// The path to the outermost item.
  private let prefix: [any CodingKey]
  init(prefix: [any CodingKey] = []) { self.prefix = prefix }

  /// Returns the path to the item whose head or content is at an offset.
  ///
  /// - Parameters:
  ///   - target: The offset.
  ///   - bytes: The whole value. It may be truncated or malformed after the offset. Between two calls, no byte before
  ///     the greater of their offsets may change.
  mutating func path(to target: Int, in bytes: UnsafeRawBufferPointer) -> [any CodingKey] {
    if target < place { goBack(to: target) }
    var reader = CBORReader(bytes)
    reader.findsPaths = false
    reader.next = reader.base + place
    do {
      // Nothing follows the outermost item.
      while place <= target, place == 0 || !frames.isEmpty, try pass(to: target, &reader) { place = reader.offset }
    } catch {
      // Nothing is known about the bytes after a malformed item.
    }
    return prefix + frames.compactMap { step(in: $0, bytes) }
  }

  /// Returns to an item that starts at the offset or before it.
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

  /// Skips an item, a break, or the head of an array, map or tag.
  ///
  /// - Returns: A Boolean value that indicates whether it ends before the offset. If not, nothing is skipped.
  private mutating func pass(to target: Int, _ reader: inout CBORReader) throws -> Bool {
    let start = reader.offset
    if let frame = frames.last, frame.isIndefinite, try reader.readBreak() {
      guard reader.offset <= target else { return false }
      frames.removeLast()
      finishItem(frame.start..<reader.offset)
      return true
    }
    let head = try reader.readHead()
    // The target is this item.
    guard reader.offset <= target else { return false }
    let count: UInt64
    switch head.major {
    case .unsigned, .negative, .simple, .bytes, .text:
      if head.major == .bytes || head.major == .text {
        try CBORPathFinder.skipContent(head, &reader)
        // The target is inside the string.
        guard reader.offset <= target else { return false }
      }
      finishItem(start..<reader.offset)
      return true
    case .array: count = head.argument
    case .map: count = head.argument.multipliedReportingOverflow(by: 2).partialValue
    case .tag: count = 1
    }
    guard frames.count <= CBORWriter.maximumDepth else { return false }
    if count == 0, !head.isIndefinite {
      finishItem(start..<reader.offset)
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

  /// Counts a finished item, and the arrays, maps and tags that end with it.
  private mutating func finishItem(_ item: Range<Int>) {
    var item = item
    while var frame = frames.popLast() {
      if frame.isMap, frame.index.isMultiple(of: 2) { frame.key = item }
      frame.index += 1
      guard frame.index == frame.itemCount else {
        frames.append(frame)
        return
      }
      item = frame.start..<item.upperBound
    }
  }

  /// Returns the path component that leads from an array or map to the item at the position.
  private func step(in frame: Frame, _ bytes: UnsafeRawBufferPointer) -> CBORPathKey? {
    if frame.isTag { return nil }
    if !frame.isMap { return CBORPathKey(intValue: Int(clamping: frame.index)) }
    if frame.index.isMultiple(of: 2) { return nil }
    return CBORPathKey(key: UnsafeRawBufferPointer(rebasing: bytes[frame.key]))
  }
}

/// A path component of an error, the name of a field or the index of an element.
struct CBORPathKey: CodingKey {
  let stringValue: String
  let intValue: Int?

  init(stringValue: String) {
    self.stringValue = stringValue
    intValue = nil
  }

  /// Creates a path component from the text of a key, which may be the text of a number.
  init(text: String) {
    stringValue = text
    intValue = Int(text)
  }

  /// Creates a path component from the item of a key, which is `…` unless it is text or an integer.
  init(key: UnsafeRawBufferPointer) {
    var reader = CBORReader(key)
    reader.findsPaths = false
    do {
      if let number = try reader.readHead().integer {
        self.init(stringValue: "\(number)")
      } else {
        reader.next = reader.base
        self.init(stringValue: try reader.readText())
      }
    } catch {
      // The path is part of an error already.
      self.init(stringValue: "…")
    }
  }

  init(intValue: Int) {
    stringValue = "Index \(intValue)"
    self.intValue = intValue
  }
}
