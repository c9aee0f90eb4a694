extension CBORReader {
  /// Reads a map by its pairs.
  ///
  /// - Parameter body: A closure that reads one key and then its value. It is called once for each pair.
  /// - Throws: `DecodingError` if the next item is not a map, or an error of `body`.
  mutating func readPairs(_ body: (inout CBORReader) throws -> Void) throws {
    var remaining = try openPairs()
    while try hasElement(&remaining) { try body(&self) }
    depth &-= 1
  }

  // MARK: By pairs

  /// Reads the head of a map.
  ///
  /// - Parameter keys: The kind of keys to read. A map with tag 259, whose keys may be of any kind, is accepted only
  ///   for ``DictionaryKeys/items``. Defaults to ``DictionaryKeys/items``. It accepts every map.
  /// - Returns: The number of pairs, or -1 if the length is indefinite.
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
        [String: Any].self, context("the keys of the map are neither text nor numbers", at: start))
    }
    try descend()
    if head.isIndefinite { return -1 }
    // A pair takes at least two bytes.
    guard head.argument <= UInt64(remainingCount / 2) else { throw truncated() }
    return Int(head.argument)
  }

  // MARK: By fields

  /// Returns the end of a map.
  ///
  /// If the map was not read in order, its keys are listed to detect duplicates.
  mutating func endOfMap(_ cursor: inout MapCursor) throws -> UnsafeRawPointer {
    if cursor.listed < 0 {
      if cursor.remaining == 0 { return cursor.next }
      if cursor.isIndefinite, cursor.next < end, cursor.next.load(as: UInt8.self) == 0xFF { return cursor.next + 1 }
    }
    let listing = try list(&cursor)
    return listing.maps[cursor.listed].end
  }

  /// Returns the value of a field that is not at the cursor.
  mutating func seek(_ key: UnsafeRawBufferPointer, _ cursor: inout MapCursor) throws -> UnsafeRawPointer? {
    try list(&cursor).value(of: key, in: cursor.listed)
  }

  /// Lists the keys of a map if they are not listed yet.
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
      // A type that ignores the error may ask for one field after another.
      listing.remove(from: index)
      throw error
    }
    cursor.remaining = 0
    cursor.listed = index
    return listing
  }

  /// Adds a map to the end of a listing and lists its keys.
  private mutating func list(_ cursor: inout MapCursor, in listing: MapListing) throws {
    next = cursor.start
    var count = 0
    // The index of the key at the cursor, if the fields have been read in order so far.
    var likely = 0
    while true {
      if cursor.isIndefinite ? try readBreak() : count == cursor.count { break }
      if next == cursor.next { likely = count }
      let key = try readKey(listing)
      let value = next
      try skip()
      count += 1
      let twin = listing.append(MapEntry(key: key.start, keyCount: key.count, value: value, isText: key.isText))
      if let twin { throw corrupted("the map contains this key twice", at: twin - base) }
    }
    listing.close(end: next, likely: likely)
  }

  /// Reads any key.
  ///
  /// The result is its text, or the whole item if the key is not text.
  private mutating func readKey(
    _ listing: MapListing
  ) throws -> (start: UnsafeRawPointer, count: Int, isText: Bool) {
    let start = next
    let tag = try readTag()
    let head = try readHead()
    if tag == nil, let number = head.integer {
      // The `Codable` conformance of a dictionary with integer keys uses their text.
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

/// The progress of reading a map.
///
/// Fields are first looked up at the cursor, because types usually read fields in the order they were written. The keys
/// are listed only if another field is at the cursor.
struct MapCursor {
  /// The first key.
  let start: UnsafeRawPointer

  /// The next key, until the keys are listed.
  var next: UnsafeRawPointer

  /// The number of pairs after the cursor.
  ///
  /// It is `Int.max` in a map of indefinite length, and 0 once the keys are listed.
  var remaining: Int

  /// The number of pairs, or -1 if the map has an indefinite length.
  let count: Int

  /// The index of the map in the listing, or -1 while its keys are not listed.
  var listed = -1

  var isIndefinite: Bool { count < 0 }

  @inline(__always)
  init(start: UnsafeRawPointer, count: Int) {
    self.start = start
    next = start
    remaining = count < 0 ? .max : count
    self.count = count
  }
}
