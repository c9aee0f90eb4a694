extension Optional: CBORConvertible where Wrapped: CBORConvertible {
  /// Writes the value, or `null` for `nil`.
  @inlinable @inline(__always)
  public func write(to writer: inout CBORWriter) throws {
    if let self { try self.write(to: &writer) } else { writer.writeNull() }
  }

  /// Reads a value, or `nil` if the item is `null` or `undefined`.
  ///
  /// - Throws: `DecodingError` if the item is neither `null` nor such a value.
  @inlinable @inline(__always)
  public init(from reader: inout CBORReader) throws {
    self = reader.readNull() ? nil : try Wrapped(from: &reader)
  }
}

extension Array: CBORConvertible where Element: CBORConvertible {
  /// Writes the elements as an array.
  ///
  /// A `[UInt8]` becomes a byte string with tag 64 (RFC 8746).
  @inlinable
  public func write(to writer: inout CBORWriter) throws {
    if Element.self == UInt8.self { return try withUnsafeBytes { try writer.put(arrayOfBytes: $0) } }
    let outerCount = try writer.openCollection(0x80, count: count)
    for element in self { try element.write(to: &writer) }
    try writer.closeCollection(itemCount: count, outerCount: outerCount)
  }

  /// Reads an array, or a byte string with tag 64.
  ///
  /// A `[UInt8]` also reads byte strings without the tag.
  ///
  /// - Throws: `DecodingError` if the item is neither, or an error that an element throws.
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
    // Not by `init(unsafeUninitializedCapacity:)`, which the compiler does not specialize and which is slower for few
    // elements.
    if remaining > 0 { reserveCapacity(reader.capacity(remaining, ofStride: MemoryLayout<Element>.stride)) }
    while try reader.hasElement(&remaining) { append(try Element(from: &reader)) }
    reader.depth &-= 1
  }
}

extension Set: CBORConvertible where Element: CBORConvertible {
  /// Writes the elements as an array sorted by their bytes, so equal sets have equal bytes.
  @inlinable
  public func write(to writer: inout CBORWriter) throws {
    let outerCount = try writer.openCollection(0x80, count: count)
    var sorter = ItemSorter(writer, count: count)
    for element in self {
      try element.write(to: &writer)
      sorter.noteKey(writer)
    }
    try sorter.sort(&writer)
    try writer.closeCollection(itemCount: count, outerCount: outerCount)
  }

  /// Reads an array, which may contain duplicates, or a byte string with tag 64.
  ///
  /// - Throws: `DecodingError` if the item is neither, or an error that an element throws.
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
  /// Writes the pairs as a map sorted by the bytes of the keys, so equal dictionaries have equal bytes.
  ///
  /// The map has tag 259 if its keys are neither text nor numbers nor `CodingKeyRepresentable`.
  @inlinable
  public func write(to writer: inout CBORWriter) throws {
    let keys = DictionaryKeys(of: Key.self)
    let outerCount = try writer.openDictionary(keys, count: count)
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

  /// Reads a map without duplicate keys, or the form that the `Codable` conformance of `Dictionary` writes.
  ///
  /// - Throws: `DecodingError` if the item is neither, or an error that a key or value throws.
  @inlinable
  public init(from reader: inout CBORReader) throws {
    self = [:]
    let keys = DictionaryKeys(of: Key.self)
    var remaining = try reader.openDictionary(keys)
    while try reader.hasElement(&remaining) {
      let start = reader.offset
      let key = try reader.readKey(Key.self, keys) ?? Key(from: &reader)
      if updateValue(try Value(from: &reader), forKey: key) != nil {
        throw reader.corrupted("the map contains this key twice", at: start)
      }
    }
    reader.depth &-= 1
  }
}

extension CBORWriter {
  /// The tag of a byte string whose bytes are the elements of an array.
  ///
  /// See [RFC 8746](https://www.rfc-editor.org/rfc/rfc8746).
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
  /// Reads the next item if it is a byte string, with or without tags.
  @usableFromInline
  mutating func readBytesIfNext() throws -> [UInt8]? {
    let start = next
    _ = try readTag()
    guard next < end, next.load(as: UInt8.self) &>> 5 == 2 else { return nil }
    next = start
    return try readBytes()
  }
}

/// The form of a dictionary's keys, chosen so that the `Codable` conformance of `Dictionary` can read them.
@usableFromInline
enum DictionaryKeys {
  /// `String`: text.
  case texts
  /// `Int`: integers. The `Codable` conformance writes their digits as text.
  case integers
  /// `CodingKeyRepresentable`: the text or the integer of the coding key.
  case codingKeys
  /// All others: any items, in a map with tag 259. The `Codable` conformance writes an array of alternating keys and
  /// values.
  case items

  /// The tag of explicit maps, whose keys may be of any kind, as registered with IANA.
  static let tag: UInt64 = 259

  @usableFromInline
  init(of type: Any.Type) {
    if type == String.self {
      self = .texts
    } else if type == Int.self {
      self = .integers
    } else {
      self = type is any CodingKeyRepresentable.Type ? .codingKeys : .items
    }
  }
}

extension CBORWriter {
  /// Opens an array or map with a known number of elements or pairs.
  ///
  /// - Returns: The number of items in the enclosing container.
  @inlinable @inline(__always)
  mutating func openCollection(_ major: UInt8, count: Int) throws -> Int {
    try descend()
    putHead(major, UInt64(truncatingIfNeeded: count))
    defer { itemCount = 0 }
    return itemCount
  }

  /// Closes an array or map with a known number of items.
  ///
  /// A pair has two items.
  @inlinable @inline(__always)
  mutating func closeCollection(itemCount expected: Int, outerCount: Int) throws {
    if itemCount != expected { throw invalid("each element of a collection must be written as one data item") }
    depth &-= 1
    itemCount = outerCount &+ 1
  }

  /// Opens the map of a dictionary.
  ///
  /// - Returns: The number of items in the enclosing container.
  @usableFromInline
  mutating func openDictionary(_ keys: DictionaryKeys, count: Int) throws -> Int {
    if keys == .items {
      try descend()
      putHead(0xC0, DictionaryKeys.tag)
    }
    return try openCollection(0xA0, count: count)
  }

  /// Closes the map of a dictionary.
  @usableFromInline
  mutating func closeDictionary(_ keys: DictionaryKeys, count: Int, outerCount: Int) throws {
    try closeCollection(itemCount: 2 &* count, outerCount: outerCount)
    if keys == .items { depth &-= 1 }
  }

  /// Writes the coding key of a key.
  @usableFromInline
  mutating func putCodingKey(of key: some Any) throws {
    guard let key = (key as? any CodingKeyRepresentable)?.codingKey else {
      throw invalid("a key of a dictionary has no coding key")
    }
    if let number = key.intValue, key.stringValue == "\(number)" {
      putInteger(Int64(number))
    } else {
      put(text: key.stringValue)
    }
  }
}

extension CBORReader {
  /// Opens the map of a dictionary, or the array that the `Codable` conformance of such a dictionary writes.
  ///
  /// - Returns: The number of pairs, or -1 if the length is indefinite.
  @usableFromInline
  mutating func openDictionary(_ keys: DictionaryKeys) throws -> Int {
    guard keys == .items, isNextAnArray else { return try openPairs(keys) }
    let start = offset
    let count = try openArray()
    // In an array of indefinite length, a key without a value is detected where the array ends.
    guard count < 0 || count.isMultiple(of: 2) else { throw corrupted("the last key has no value", at: start) }
    return count < 0 ? count : count / 2
  }

  /// Reads a key whose form is not that of its type, or returns `nil` if the key has the form of its type.
  @inlinable @inline(__always)
  mutating func readKey<Key>(_ type: Key.Type, _ keys: DictionaryKeys) throws -> Key? {
    guard keys != .items, next < end, case let major = next.load(as: UInt8.self) &>> 5,
      keys == .codingKeys || major != (keys == .texts ? 3 : 0)
    else { return nil }
    return try readOtherKey(type, keys)
  }

  @usableFromInline @inline(never)
  mutating func readOtherKey<Key>(_ type: Key.Type, _ keys: DictionaryKeys) throws -> Key? {
    let (start, place) = (offset, next)
    let tag = try readTag()
    let head = try readHead()
    next = place
    let text: String
    switch head.major {
    case .text:
      text = try readText()
    case .unsigned where tag == nil, .negative where tag == nil:
      if keys == .integers { return nil }
      try skip()
      text = "\(head.integer ?? 0)"
    default: return nil
    }
    let key = CBORPathKey(text: text)
    switch keys {
    case .texts: return text as? Key
    case .integers:
      guard let number = key.intValue, "\(number)" == text else {
        throw DecodingError.typeMismatch(Int.self, context("the key \"\(text)\" is not a number", at: start))
      }
      return number as? Key
    case .codingKeys:
      // Earlier versions wrote the key as a value.
      if let key = (type as? any CodingKeyRepresentable.Type)?.init(codingKey: key) as? Key { return key }
      next = place
      return nil
    case .items: return nil
    }
  }
}
