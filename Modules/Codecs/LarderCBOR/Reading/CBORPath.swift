/// Finds out where in a value a byte lies.
///
/// Paths are made only for errors, so none is kept while all goes well.
enum CBORPath {
  /// An array, map or tag around the byte.
  private struct Frame {
    /// How many items follow; without a bound where the length is indefinite.
    var remaining: UInt64
    let isMap: Bool
    let isTag: Bool
    let isIndefinite: Bool
    /// How many items came before.
    var itemCount = 0
    /// The key of the value that comes next.
    var key = ""

    /// The step to the item that lies there.
    var step: CBORPathKey? {
      if isTag { return nil }
      if !isMap { return CBORPathKey(intValue: itemCount) }
      return itemCount.isMultiple(of: 2) ? nil : CBORPathKey(stringValue: key)
    }
  }

  /// The path to the item that begins at an offset, or has its head there.
  ///
  /// - Parameters:
  ///   - target: The offset.
  ///   - bytes: All of the value; it may break off or be malformed behind the offset.
  static func toItem(at target: Int, in bytes: UnsafeRawBufferPointer) -> [any CodingKey] {
    var reader = CBORReader(bytes)
    reader.findsPaths = false
    var frames: [Frame] = []
    while reader.offset <= target {
      let start = reader.next
      let head: ItemHead
      do {
        if frames.last?.isIndefinite == true, try reader.readBreak() {
          frames.removeLast()
          finishItem(&frames, from: start, to: reader.next)
          continue
        }
        head = try reader.readHead()
        // The item is this one.
        if reader.offset > target { break }
        if head.major == .bytes || head.major == .text { try skipContent(head, &reader) }
      } catch {
        // Nothing can be said about what is behind a place that is malformed.
        break
      }
      let multiple: UInt64
      switch head.major {
      case .array, .tag: multiple = 1
      case .map: multiple = 2
      default:
        // The item is within the string.
        if reader.offset > target { return frames.compactMap(\.step) }
        finishItem(&frames, from: start, to: reader.next)
        continue
      }
      let count = head.major == .tag ? 1 : head.argument.multipliedReportingOverflow(by: multiple).partialValue
      frames.append(
        Frame(
          remaining: head.isIndefinite ? .max : count, isMap: head.major == .map, isTag: head.major == .tag,
          isIndefinite: head.isIndefinite))
      if count == 0, !head.isIndefinite {
        frames.removeLast()
        finishItem(&frames, from: start, to: reader.next)
      }
      if frames.isEmpty || frames.count > CBORWriter.maximumDepth { break }
    }
    return frames.compactMap(\.step)
  }

  /// The path to what was written last, in a value that is not yet finished.
  ///
  /// - Parameter bytes: What was written; arrays and maps that are open have no end yet.
  static func ofLastItem(in bytes: UnsafeRawBufferPointer) -> [any CodingKey] {
    toItem(at: bytes.count, in: bytes)
  }

  private static func skipContent(_ head: ItemHead, _ reader: inout CBORReader) throws {
    if head.isIndefinite {
      while try !reader.readBreak() { try reader.skip() }
    } else {
      _ = try reader.content(head)
    }
  }

  /// Counts an item that has ended, and the arrays, maps and tags that end with it.
  private static func finishItem(_ frames: inout [Frame], from start: UnsafeRawPointer, to end: UnsafeRawPointer) {
    var isFirst = true
    while var frame = frames.popLast() {
      if frame.isMap, frame.itemCount.isMultiple(of: 2) {
        frame.key = isFirst ? key(from: start, to: end) : "…"
      }
      isFirst = false
      frame.itemCount += 1
      if !frame.isIndefinite { frame.remaining -= 1 }
      if frame.remaining > 0 {
        frames.append(frame)
        return
      }
    }
  }

  private static func key(from start: UnsafeRawPointer, to end: UnsafeRawPointer) -> String {
    CBORDiagnostics.key(UnsafeRawBufferPointer(start: start, count: end - start))
  }
}
