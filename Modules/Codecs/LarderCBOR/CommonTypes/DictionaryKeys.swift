/// How the keys of a dictionary are written, so that its own `Codable` can read them.
@usableFromInline
enum DictionaryKeys {
  /// `String`: text.
  case texts
  /// `Int`: integers. The own `Codable` has their digits as text.
  case integers
  /// `CodingKeyRepresentable`: the text or the integer of the coding key.
  case codingKeys
  /// All others: any items, in a map with tag 259. The own `Codable` has an array of the keys and values in turn.
  case items

  /// Explicit maps, whose keys may be of any kind: registered with IANA.
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
  /// Opens the map of a dictionary.
  @usableFromInline
  mutating func openDictionary(_ keys: DictionaryKeys, count: Int) throws {
    if keys == .items {
      try descend()
      putHead(0xC0, DictionaryKeys.tag)
    }
    try descend()
    putHead(0xA0, UInt64(truncatingIfNeeded: count))
    itemCount = 0
  }

  /// Closes the map of a dictionary.
  @usableFromInline
  mutating func closeDictionary(_ keys: DictionaryKeys, count: Int, outerCount: Int) throws {
    if itemCount != 2 &* count { throw invalid("A key or value of a map must be written as one data item.") }
    depth &-= keys == .items ? 2 : 1
    itemCount = outerCount &+ 1
  }

  /// Writes the coding key of a key.
  @usableFromInline
  mutating func putCodingKey(of key: some Any) throws {
    guard let key = (key as? any CodingKeyRepresentable)?.codingKey else {
      throw invalid("A key of a dictionary has no coding key.")
    }
    if let number = key.intValue, key.stringValue == "\(number)" {
      putInteger(Int64(number))
    } else {
      put(text: key.stringValue)
    }
  }
}

extension CBORReader {
  /// Opens the map of a dictionary, or the array that the own `Codable` of one with such keys writes; gives the number of
  /// its pairs, or -1 where its length is indefinite.
  @usableFromInline
  mutating func openDictionary(_ keys: DictionaryKeys) throws -> Int {
    guard keys == .items, isNextAnArray else { return try openPairs(keys) }
    let start = offset
    let count = try openArray()
    // One of indefinite length ends behind a key without a value, which is found there.
    guard count < 0 || count.isMultiple(of: 2) else { throw corrupted("The last key has no value.", at: start) }
    return count < 0 ? count : count / 2
  }

  /// Reads a key in a form that is not its type's own; `nil` where it has that one.
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
        throw DecodingError.typeMismatch(Int.self, context("The key \"\(text)\" is no number.", at: start))
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
