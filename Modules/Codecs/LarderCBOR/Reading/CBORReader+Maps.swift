extension CBORReader {
  /// Reads a map by its fields.
  ///
  /// Fields that are asked for in the order in which they were written are found at once; another order, and fields that
  /// nobody asks for, are fine too. A map that has a key twice is refused.
  ///
  /// - Parameter body: Reads fields by ``read(_:forKey:)`` and ``readIfPresent(_:forKey:)``, and nothing else.
  /// - Returns: What `body` returns.
  /// - Throws: `DecodingError` where the next item is no map, or what `body` throws.
  @inlinable @inline(__always)
  public mutating func readMap<Value>(_ body: (inout CBORReader) throws -> Value) throws -> Value {
    let outer = map
    try openMap()
    let value = try body(&self)
    // All the pairs were read in their order, so nothing is left to check.
    if map.remaining == 0, map.listed < 0 { depth &-= 1 } else { try closeMap() }
    map = outer
    return value
  }

  /// Reads a field of a map.
  ///
  /// - Parameters:
  ///   - type: The type of the value; it is usually known from where it goes.
  ///   - key: The name of the field.
  /// - Throws: `DecodingError` where the map has no such field or it is no such value, or what the type throws.
  @inlinable @inline(__always)
  public mutating func read<Value: CBORConvertible>(
    _ type: Value.Type = Value.self, forKey key: StaticString
  ) throws -> Value {
    if !isNext(key) { try seekRequired(key) }
    return try Value(from: &self)
  }

  /// Reads a field of a map that may be missing or `null`.
  ///
  /// - Parameters:
  ///   - type: The type of the value; it is usually known from where it goes.
  ///   - key: The name of the field.
  /// - Returns: The value, or `nil`.
  /// - Throws: `DecodingError` where the field is no such value, or what the type throws.
  @inlinable @inline(__always)
  public mutating func readIfPresent<Value: CBORConvertible>(
    _ type: Value.Type = Value.self, forKey key: StaticString
  ) throws -> Value? {
    if !isNext(key) {
      guard try seek(key) else { return nil }
    }
    return readNull() ? nil : try Value(from: &self)
  }

  /// Reads a field of a map that is a `Codable` value.
  ///
  /// - Parameters:
  ///   - type: The type of the value; it is usually known from where it goes.
  ///   - key: The name of the field.
  /// - Throws: `DecodingError` where the map has no such field or it is no such value, or what the type throws.
  @inlinable
  public mutating func decode<Value: Decodable>(
    _ type: Value.Type = Value.self, forKey key: StaticString
  ) throws -> Value {
    if !isNext(key) { try seekRequired(key) }
    return try decode(type)
  }

  /// Reads a map by its pairs.
  ///
  /// - Parameter body: Reads one key and then its value; it is called as long as there is a pair.
  /// - Throws: `DecodingError` where the next item is no map, or what `body` throws.
  @inlinable
  public mutating func readPairs(_ body: (inout CBORReader) throws -> Void) throws {
    var remaining = try openPairs()
    while try hasElement(&remaining) { try body(&self) }
    depth &-= 1
  }

  // MARK: By pairs

  /// Reads the head of a map; gives the number of its pairs, or -1 if its length is indefinite.
  ///
  /// - Parameter keys: The keys that are read. A map with tag 259, whose keys may be of any kind, is refused for all others.
  ///   Defaults to ``DictionaryKeys/items``, which takes every map.
  @usableFromInline
  mutating func openPairs(_ keys: DictionaryKeys = .items) throws -> Int {
    if next < end, case let first = next.load(as: UInt8.self), first >= 0xA0, first < 0xB8 {
      try descend()
      next += 1
      return Int(first &- 0xA0)
    }
    return try openOtherPairs(keys)
  }

  private mutating func openOtherPairs(_ keys: DictionaryKeys) throws -> Int {
    let start = offset
    let tag = try readTag()
    let head = try readHead()
    guard head.major == .map, CBORReader.meaning(of: tag) == nil else {
      throw mismatch([String: Any].self, tag: tag, head, at: start)
    }
    if tag == DictionaryKeys.tag, keys != .items {
      throw DecodingError.typeMismatch(
        [String: Any].self, context("The keys of the map are neither texts nor numbers.", at: start))
    }
    try descend()
    if head.isIndefinite { return -1 }
    // A pair takes two bytes at least.
    guard head.argument <= UInt64(remainingCount / 2) else { throw truncated() }
    return Int(head.argument)
  }

  // MARK: By fields

  @usableFromInline
  mutating func openMap() throws {
    let count = try openPairs()
    map = MapCursor(start: next, count: count)
  }

  @usableFromInline
  mutating func closeMap() throws {
    var cursor = map
    if cursor.listed < 0 { cursor.next = next }
    next = try endOfMap(&cursor)
    if cursor.listed >= 0 { listing?.remove(from: cursor.listed) }
    depth &-= 1
  }

  /// Where a map ends; lists the keys if it was not read in order, so that one that comes twice is found.
  mutating func endOfMap(_ cursor: inout MapCursor) throws -> UnsafeRawPointer {
    if cursor.listed < 0 {
      if cursor.remaining == 0 { return cursor.next }
      if cursor.isIndefinite, cursor.next < end, cursor.next.load(as: UInt8.self) == 0xFF { return cursor.next + 1 }
    }
    let listing = try list(&cursor)
    return listing.maps[cursor.listed].end
  }

  /// Reads the key at the cursor where it is the one that is asked for.
  @inlinable @inline(__always)
  mutating func isNext(_ key: StaticString) -> Bool {
    let count = key.utf8CodeUnitCount
    guard map.remaining > 0, key.hasPointerRepresentation, count < 24, end - next > count,
      next.load(as: UInt8.self) == 0x60 | UInt8(truncatingIfNeeded: count),
      areEqual(next + 1, UnsafeRawPointer(key.utf8Start), count: count)
    else { return false }
    next += count &+ 1
    map.remaining &-= 1
    return true
  }

  /// Goes to the value of a field.
  @usableFromInline @inline(never)
  mutating func seek(_ key: StaticString) throws -> Bool {
    var cursor = map
    if cursor.listed < 0 { cursor.next = next }
    var text = "\(key)"
    let value = try text.withUTF8 { try seek(UnsafeRawBufferPointer($0), &cursor) }
    map = cursor
    if let value { next = value }
    return value != nil
  }

  @usableFromInline @inline(never)
  mutating func seekRequired(_ key: StaticString) throws {
    // The last byte of the head belongs to the map itself.
    guard try seek(key) else { throw missing(CBORPathKey(stringValue: "\(key)"), at: map.start - base - 1) }
  }

  /// Finds the value of a field that is not where the cursor stands.
  mutating func seek(_ key: UnsafeRawBufferPointer, _ cursor: inout MapCursor) throws -> UnsafeRawPointer? {
    try list(&cursor).value(of: key, in: cursor.listed)
  }

  /// Lists the keys of a map, unless they are listed.
  @discardableResult
  mutating func list(_ cursor: inout MapCursor) throws -> MapListing {
    let listing = listing ?? MapListing()
    if cursor.listed >= 0 { return listing }
    self.listing = listing
    let current = next
    defer { next = current }
    let index = listing.open(at: cursor.start)
    do {
      try list(&cursor, in: listing)
    } catch {
      // Who ignores it may ask for one field after another.
      listing.remove(from: index)
      throw error
    }
    cursor.remaining = 0
    cursor.listed = index
    return listing
  }

  /// Lists the keys of a map as the last one of a listing.
  private mutating func list(_ cursor: inout MapCursor, in listing: MapListing) throws {
    next = cursor.start
    var count = 0
    // Where the cursor stands in the list, as far as fields were read in their order.
    var likely = 0
    while true {
      if cursor.isIndefinite ? try readBreak() : count == cursor.count { break }
      if next == cursor.next { likely = count }
      let key = try readKey(listing)
      let value = next
      try skip()
      count += 1
      try checkIsNew(
        listing.append(MapEntry(key: key.start, keyCount: key.count, value: value, isText: key.isText)))
    }
    try checkIsNew(listing.close(end: next, likely: likely))
  }

  private mutating func checkIsNew(_ twin: UnsafeRawPointer?) throws {
    if let twin { throw corrupted("The map has this key twice.", at: twin - base) }
  }

  /// Reads any key: its text, or all of the item where it is not text.
  private mutating func readKey(
    _ listing: MapListing
  ) throws -> (start: UnsafeRawPointer, count: Int, isText: Bool) {
    let start = next
    let tag = try readTag()
    let head = try readHead()
    if tag == nil, let number = head.integer {
      // A dictionary with numbers for keys has their texts in its own `Codable`.
      let text = listing.own("\(number)")
      return (text.baseAddress ?? start, text.count, true)
    }
    guard head.major == .text else {
      next = start
      try skip()
      return (start, next - start, false)
    }
    let bytes =
      head.isIndefinite ? listing.own(String(decoding: try readChunks(.text), as: UTF8.self)) : try content(head)
    return (bytes.baseAddress ?? start, bytes.count, true)
  }
}
