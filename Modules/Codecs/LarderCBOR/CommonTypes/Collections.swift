extension Optional: CBORConvertible where Wrapped: CBORConvertible {
  /// Writes the value, or `null` for `nil`.
  @inlinable @inline(__always)
  public func write(to writer: inout CBORWriter) throws {
    if let self { try self.write(to: &writer) } else { writer.writeNull() }
  }

  /// Reads a value, or `nil` where there is `null` or `undefined`.
  ///
  /// - Throws: `DecodingError` where the item is neither.
  @inlinable @inline(__always)
  public init(from reader: inout CBORReader) throws {
    self = reader.readNull() ? nil : try Wrapped(from: &reader)
  }
}

extension Array: CBORConvertible where Element: CBORConvertible {
  /// Writes the elements as an array; those of a `[UInt8]` as a byte string.
  @inlinable
  public func write(to writer: inout CBORWriter) throws {
    if Element.self == UInt8.self { return withUnsafeBytes { writer.put(bytes: $0) } }
    let (outerCount, _) = (writer.itemCount, try writer.descend())
    writer.putHead(0x80, UInt64(truncatingIfNeeded: count))
    writer.itemCount = 0
    for element in self { try element.write(to: &writer) }
    if writer.itemCount != count { throw writer.invalid("An element of an array must be written as one data item.") }
    writer.depth &-= 1
    writer.itemCount = outerCount &+ 1
  }

  /// Reads an array; for a `[UInt8]` also a byte string.
  ///
  /// - Throws: `DecodingError` where the item is none, or what an element throws.
  @inlinable
  public init(from reader: inout CBORReader) throws {
    if Element.self == UInt8.self, let bytes = try reader.readBytesIfNext() {
      self = unsafeBitCast(bytes, to: Self.self)
      return
    }
    self = []
    var remaining = try reader.openArray()
    // Not by `init(unsafeUninitializedCapacity:)`, which the compiler leaves generic and is slower for a few elements.
    if remaining > 0 { reserveCapacity(reader.capacity(remaining, ofStride: MemoryLayout<Element>.stride)) }
    while try reader.hasElement(&remaining) { append(try Element(from: &reader)) }
    reader.depth &-= 1
  }
}

extension Set: CBORConvertible where Element: CBORConvertible {
  /// Writes the elements as an array, in the order of their bytes, so that equal sets have equal bytes.
  @inlinable
  public func write(to writer: inout CBORWriter) throws {
    let (outerCount, _) = (writer.itemCount, try writer.descend())
    writer.putHead(0x80, UInt64(truncatingIfNeeded: count))
    writer.itemCount = 0
    var sorter = ItemSorter(writer, count: count)
    for element in self {
      try element.write(to: &writer)
      sorter.noteKey(writer)
    }
    try sorter.sort(&writer)
    if writer.itemCount != count { throw writer.invalid("An element of a set must be written as one data item.") }
    writer.depth &-= 1
    writer.itemCount = outerCount &+ 1
  }

  /// Reads an array in which no element comes twice.
  ///
  /// - Throws: `DecodingError` where the item is none, or what an element throws.
  @inlinable
  public init(from reader: inout CBORReader) throws {
    self = []
    var remaining = try reader.openArray()
    while try reader.hasElement(&remaining) {
      let start = reader.offset
      guard insert(try Element(from: &reader)).inserted else {
        throw reader.corrupted("The set has this element twice.", at: start)
      }
    }
    reader.depth &-= 1
  }
}

extension Dictionary: CBORConvertible where Key: CBORConvertible, Value: CBORConvertible {
  /// Writes the pairs as a map, in the order of the bytes of their keys, so that equal dictionaries have equal bytes.
  @inlinable
  public func write(to writer: inout CBORWriter) throws {
    let (outerCount, _) = (writer.itemCount, try writer.descend())
    writer.putHead(0xA0, UInt64(truncatingIfNeeded: count))
    writer.itemCount = 0
    var sorter = ItemSorter(writer, count: count)
    for (key, value) in self {
      try key.write(to: &writer)
      sorter.noteKey(writer)
      try value.write(to: &writer)
      sorter.noteValue(writer)
    }
    try sorter.sort(&writer)
    if writer.itemCount != 2 &* count {
      throw writer.invalid("A key or value of a map must be written as one data item.")
    }
    writer.depth &-= 1
    writer.itemCount = outerCount &+ 1
  }

  /// Reads a map in which no key comes twice.
  ///
  /// - Throws: `DecodingError` where the item is none, or what a key or value throws.
  @inlinable
  public init(from reader: inout CBORReader) throws {
    self = [:]
    var remaining = try reader.openPairs()
    while try reader.hasElement(&remaining) {
      let start = reader.offset
      let key = try Key(from: &reader)
      if updateValue(try Value(from: &reader), forKey: key) != nil {
        throw reader.corrupted("The map has this key twice.", at: start)
      }
    }
    reader.depth &-= 1
  }
}

extension CBORWriter {
  @usableFromInline
  mutating func put(bytes: UnsafeRawBufferPointer) {
    putString(0x40, bytes)
    itemCount &+= 1
  }
}

extension CBORReader {
  /// Reads a byte string if one is next, tags before it aside.
  @usableFromInline
  mutating func readBytesIfNext() throws -> [UInt8]? {
    try skipTags()
    guard next < end, next.load(as: UInt8.self) &>> 5 == 2 else { return nil }
    return try readBytes()
  }
}
