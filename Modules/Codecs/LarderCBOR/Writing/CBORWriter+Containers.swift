extension CBORWriter {
  /// An open array or map.
  struct Container {
    /// The offset of its head.
    let offset: Int
    /// The number of items in the enclosing container.
    let outerCount: Int
    /// The key bits of the enclosing map.
    let outerKeyBits: UInt64
  }

  /// Throws if `count` more levels would nest too deep.
  @inline(__always)
  func checkDepth(_ count: Int) throws {
    if depth &+ count > CBORWriter.maximumDepth { throw tooDeep() }
  }

  @inline(__always)
  mutating func descend() throws {
    if depth >= CBORWriter.maximumDepth { throw tooDeep() }
    depth &+= 1
  }

  @inline(__always)
  mutating func open(_ major: UInt8) throws -> Container {
    try descend()
    let container = Container(offset: count, outerCount: itemCount, outerKeyBits: keyBits)
    reserve(1)
    // The length is indefinite until the container is closed, so that the bytes show the path to the item being
    // written.
    putByte(major | 31)
    itemCount = 0
    keyBits = 0
    return container
  }

  @inline(__always)
  mutating func closeArray(_ container: Container) {
    close(container, 0x80, itemCount)
  }

  @inline(__always)
  mutating func closeMap(_ container: Container) throws {
    if itemCount & 1 != 0 { throw invalid("a key of a map has no value") }
    if keyBits &>> 63 != 0 { try checkKeys(from: container.offset + 1) }
    close(container, 0xA0, itemCount &>> 1)
  }

  /// Throws if the pairs that start at an offset contain a duplicate key, because such a map could not be read back.
  @inline(never)
  func checkKeys(from offset: Int) throws {
    let pairs = UnsafeRawBufferPointer(rebasing: written[offset...])
    if let twin = try CBORWriter.keyThatComesTwice(pairs, count: itemCount / 2) { throw invalidTwin(twin) }
  }

  func invalidTwin(_ key: String) -> EncodingError {
    invalid("the map contains the key \"\(key)\" twice")
  }

  /// Returns the text of a key that occurs twice, byte for byte, in a map.
  ///
  /// - Parameters:
  ///   - pairs: All keys and values, without the head of the map.
  ///   - count: The number of pairs.
  static func keyThatComesTwice(_ pairs: UnsafeRawBufferPointer, count: Int) throws -> String? {
    var reader = CBORReader(pairs)
    reader.findsPaths = false
    return try withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: count) { keys in
      for index in keys.indices {
        let start = reader.next
        try reader.skip()
        keys.initializeElement(at: index, to: UnsafeRawBufferPointer(start: start, count: reader.next - start))
        try reader.skip()
      }
      func order(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) -> Int {
        guard first.count == second.count, let one = first.baseAddress, let other = second.baseAddress else {
          return first.count - second.count
        }
        return compare(one, other, count: first.count)
      }
      var keys = keys
      keys.sort { order($0, $1) < 0 }
      let twin = keys.indices.dropFirst().first { order(keys[$0 - 1], keys[$0]) == 0 }
      return twin.map { CBORPathKey(key: keys[$0]).stringValue }
    }
  }

  @inline(__always)
  mutating func close(_ container: Container, _ major: UInt8, _ count: Int) {
    if count < 24 {
      start.storeBytes(of: major | UInt8(truncatingIfNeeded: count), toByteOffset: container.offset, as: UInt8.self)
    } else {
      widenHead(at: container.offset, major, UInt64(count))
    }
    depth &-= 1
    itemCount = container.outerCount &+ 1
    keyBits = container.outerKeyBits
  }

  /// Replaces the head of a container whose count does not fit in one byte with a longer head.
  @inline(never)
  mutating func widenHead(at offset: Int, _ major: UInt8, _ argument: UInt64) {
    let contentCount = count - offset - 1
    putLongHead(major, argument)
    let extraCount = count - offset - 1 - contentCount - 1
    reserve(9)
    let content = start + offset + 1
    (content + extraCount).copyMemory(from: content, byteCount: contentCount)
    next = start + offset
    putLongHead(major, argument)
    next += contentCount
  }

  /// A position between two items, to which the writer can return.
  struct Place {
    let offset: Int
    let itemCount: Int
    let depth: Int
    let keyBits: UInt64
  }

  /// The current position.
  var place: Place { Place(offset: count, itemCount: itemCount, depth: depth, keyBits: keyBits) }

  /// Discards all bytes after a position.
  mutating func rewind(to place: Place) {
    next = start + place.offset
    itemCount = place.itemCount
    depth = place.depth
    keyBits = place.keyBits
  }
}

/// Sorts the pairs of a map, or the elements of a set, by the bytes of their keys (RFC 8949, section 4.2.1), so that
/// equal values have equal bytes.
struct ItemSorter {
  private struct Item {
    let start: Int
    let keyEnd: Int
    var end: Int
  }

  private var items: [Item] = []
  private let start: Int
  init(_ writer: borrowing CBORWriter, count: Int) {
    start = writer.count
    items.reserveCapacity(count)
  }

  /// Records that a key has been written.
  ///
  /// An element of a set counts as a key.
  mutating func noteKey(_ writer: borrowing CBORWriter) {
    items.append(Item(start: items.last?.end ?? start, keyEnd: writer.count, end: writer.count))
  }

  /// Records that the value of the last key has been written.
  mutating func noteValue(_ writer: borrowing CBORWriter) {
    items[items.count - 1].end = writer.count
  }

  /// Sorts the items that were written.
  ///
  /// - Throws: `EncodingError` if two keys have the same bytes, because such a map could not be read back.
  func sort(_ writer: inout CBORWriter) throws {
    guard items.count > 1 else { return }
    let memory = UnsafeRawPointer(writer.start)
    func order(_ first: Item, _ second: Item) -> Int {
      let counts = (first.keyEnd - first.start, second.keyEnd - second.start)
      let order = compare(memory + first.start, memory + second.start, count: min(counts.0, counts.1))
      return order != 0 ? order : counts.0 - counts.1
    }
    let sorted = items.sorted { order($0, $1) < 0 }
    for index in sorted.indices.dropFirst() where order(sorted[index - 1], sorted[index]) == 0 {
      throw writer.invalid("two keys of a map, or two elements of a set, have the same bytes")
    }
    let count = writer.count - start
    withUnsafeTemporaryAllocation(byteCount: count, alignment: 1) { scratch in
      guard let address = scratch.baseAddress else { return }
      address.copyMemory(from: memory + start, byteCount: count)
      var next = writer.start + start
      for item in sorted {
        next.copyMemory(from: address + (item.start - start), byteCount: item.end - item.start)
        next += item.end - item.start
      }
    }
  }
}
