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
  /// Writes the elements as an array; those of a `[UInt8]` as a byte string with tag 64, as RFC 8746 has it.
  @inlinable
  public func write(to writer: inout CBORWriter) throws {
    if Element.self == UInt8.self { return try withUnsafeBytes { try writer.put(arrayOfBytes: $0) } }
    let (outerCount, _) = (writer.itemCount, try writer.descend())
    writer.putHead(0x80, UInt64(truncatingIfNeeded: count))
    writer.itemCount = 0
    for element in self { try element.write(to: &writer) }
    if writer.itemCount != count { throw writer.invalid("An element of an array must be written as one data item.") }
    writer.depth &-= 1
    writer.itemCount = outerCount &+ 1
  }

  /// Reads an array, or a byte string with tag 64; a `[UInt8]` reads byte strings without the tag too.
  ///
  /// - Throws: `DecodingError` where the item is none, or what an element throws.
  @inlinable
  public init(from reader: inout CBORReader) throws {
    if Element.self == UInt8.self, let bytes = try reader.readBytesIfNext() {
      self = unsafeBitCast(bytes, to: Self.self)
      return
    }
    if try reader.isNextAnArrayOfBytes() {
      self = try reader.readBytesAsArray { try Self(from: &$0) }
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

  /// Reads an array, in which an element may come twice, or a byte string with tag 64.
  ///
  /// - Throws: `DecodingError` where the item is neither, or what an element throws.
  @inlinable
  public init(from reader: inout CBORReader) throws {
    if try reader.isNextAnArrayOfBytes() {
      self = try reader.readBytesAsArray { try Self(from: &$0) }
      return
    }
    self = []
    var remaining = try reader.openArray()
    while try reader.hasElement(&remaining) { insert(try Element(from: &reader)) }
    reader.depth &-= 1
  }
}

extension Dictionary: CBORConvertible where Key: CBORConvertible, Value: CBORConvertible {
  /// Writes the pairs as a map, in the order of the bytes of their keys, so that equal dictionaries have equal bytes.
  ///
  /// Keys that are neither text nor numbers nor `CodingKeyRepresentable` get the map tag 259.
  @inlinable
  public func write(to writer: inout CBORWriter) throws {
    let keys = DictionaryKeys(of: Key.self)
    let outerCount = writer.itemCount
    try writer.openDictionary(keys, count: count)
    var sorter = ItemSorter(writer, count: count)
    for (key, value) in self {
      if keys == .codingKeys { try writer.putCodingKey(of: key) } else { try key.write(to: &writer) }
      sorter.noteKey(writer)
      try value.write(to: &writer)
      sorter.noteValue(writer)
    }
    try sorter.sort(&writer)
    try writer.closeDictionary(keys, count: count, outerCount: outerCount)
  }

  /// Reads a map in which no key comes twice, or what the own `Codable` of `Dictionary` writes.
  ///
  /// - Throws: `DecodingError` where the item is none, or what a key or value throws.
  @inlinable
  public init(from reader: inout CBORReader) throws {
    self = [:]
    let keys = DictionaryKeys(of: Key.self)
    var remaining = try reader.openDictionary(keys)
    while try reader.hasElement(&remaining) {
      let start = reader.offset
      let key = try reader.readKey(Key.self, keys) ?? Key(from: &reader)
      if updateValue(try Value(from: &reader), forKey: key) != nil {
        throw reader.corrupted("The map has this key twice.", at: start)
      }
    }
    reader.depth &-= 1
  }
}

extension CBORWriter {
  /// The tag of an array whose elements are the bytes of a byte string; see
  /// [RFC 8746](https://www.rfc-editor.org/rfc/rfc8746).
  @usableFromInline static var tagOfBytes: UInt64 { 64 }

  @usableFromInline
  mutating func put(arrayOfBytes bytes: UnsafeRawBufferPointer) throws {
    try writeTag(CBORWriter.tagOfBytes) { $0.put(bytes: bytes) }
  }

  mutating func put(bytes: UnsafeRawBufferPointer) {
    putString(0x40, bytes)
    itemCount &+= 1
  }
}

extension CBORReader {
  /// Reads a byte string if one is next, tags before it aside.
  @usableFromInline
  mutating func readBytesIfNext() throws -> [UInt8]? {
    let start = next
    _ = try readTag()
    guard next < end, next.load(as: UInt8.self) &>> 5 == 2 else { return nil }
    next = start
    return try readBytes()
  }
}
