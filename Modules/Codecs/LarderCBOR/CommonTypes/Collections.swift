extension Array: CBORConvertible where Element == UInt8 {
  /// Writes a byte string with tag 64 (RFC 8746).
  func write(to writer: inout CBORWriter) throws {
    try writer.put(tag: CBORWriter.tagOfBytes) { writer in withUnsafeBytes { writer.put(bytes: $0) } }
  }

  /// Reads a byte string, with or without the tag, or an array of numbers.
  ///
  /// - Throws: `DecodingError` if the item is neither, or an element is out of range.
  init(from reader: inout CBORReader) throws {
    if let bytes = try reader.readBytesIfNext() {
      self = bytes
      return
    }
    self = []
    var remaining = try reader.openArray()
    if remaining > 0 { reserveCapacity(reader.capacity(remaining, ofStride: 1)) }
    while try reader.hasElement(&remaining) { append(try reader.readInteger(UInt8.self)) }
    reader.depth &-= 1
  }
}

/// An array of text is so common that it is written and read without looking up the type of each element.
extension [String] {
  func write(to writer: inout CBORWriter) throws {
    let outerCount = try writer.openCollection(0x80, count: count)
    for text in self { writer.put(text: text) }
    writer.closeCollection(outerCount: outerCount)
  }

  init(from reader: inout CBORReader) throws {
    self = []
    var remaining = try reader.openArray()
    if remaining > 0 { reserveCapacity(reader.capacity(remaining, ofStride: MemoryLayout<String>.stride)) }
    while try reader.hasElement(&remaining) { append(try reader.readText()) }
    reader.depth &-= 1
  }
}

extension CBORWriter {
  /// The tag of a byte string whose bytes are the elements of an array.
  ///
  /// See [RFC 8746](https://www.rfc-editor.org/rfc/rfc8746).
  static var tagOfBytes: UInt64 { 64 }
}

extension CBORReader {
  /// Reads the next item if it is a byte string, with or without tags.
  mutating func readBytesIfNext() throws -> [UInt8]? {
    let start = next
    _ = try readTag()
    guard next < end, next.load(as: UInt8.self) &>> 5 == 2 else { return nil }
    next = start
    return try readBytes()
  }
}

/// The form of a dictionary's keys, chosen so that the `Codable` conformance of `Dictionary` can read them.
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
  @inline(__always)
  mutating func openCollection(_ major: UInt8, count: Int) throws -> Int {
    try descend()
    putHead(major, UInt64(truncatingIfNeeded: count))
    defer { itemCount = 0 }
    return itemCount
  }

  /// Closes an array or map with a known number of items.
  @inline(__always)
  mutating func closeCollection(outerCount: Int) {
    depth &-= 1
    itemCount = outerCount &+ 1
  }

  /// Opens the map of a dictionary.
  ///
  /// - Returns: The number of items in the enclosing container.
  mutating func openDictionary(_ keys: DictionaryKeys, count: Int) throws -> Int {
    if keys == .items {
      try descend()
      putHead(0xC0, DictionaryKeys.tag)
    }
    return try openCollection(0xA0, count: count)
  }

  /// Closes the map of a dictionary.
  mutating func closeDictionary(_ keys: DictionaryKeys, outerCount: Int) {
    closeCollection(outerCount: outerCount)
    if keys == .items { depth &-= 1 }
  }

  /// Writes the coding key of a key.
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
  mutating func openDictionary(_ keys: DictionaryKeys) throws -> Int {
    guard keys == .items, isNextAnArray else { return try openPairs(keys) }
    let start = offset
    let count = try openArray()
    // In an array of indefinite length, a key without a value is detected where the array ends.
    guard count < 0 || count.isMultiple(of: 2) else { throw corrupted("the last key has no value", at: start) }
    return count < 0 ? count : count / 2
  }

  /// Reads a key whose form is not that of its type, or returns `nil` if the key has the form of its type.
  @inline(__always)
  mutating func readKey<Key>(_ type: Key.Type, _ keys: DictionaryKeys) throws -> Key? {
    guard keys != .items, next < end, case let major = next.load(as: UInt8.self) &>> 5,
      keys == .codingKeys || major != (keys == .texts ? 3 : 0)
    else { return nil }
    return try readOtherKey(type, keys)
  }

  @inline(never)
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
