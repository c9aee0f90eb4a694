/// A reader that decodes CBOR (RFC 8949) from memory without copying it.
///
/// It accepts every well-formed item, in any form.
///
/// Lengths are checked before memory is allocated for them, nesting is limited, and text must be UTF-8. Tags that a type does
/// not read are skipped.
struct CBORReader: ~Copyable {
  /// The first byte of the memory.
  let base: UnsafeRawPointer

  /// The address after the last byte.
  let end: UnsafeRawPointer

  var next: UnsafeRawPointer

  var depth = 0

  /// The keys of maps that could not be read in order.
  var listing: MapListing?

  /// A Boolean value that indicates whether ``ShortText`` can create strings, cached here for every string.
  let makesShortText: Bool

  /// A Boolean value that indicates whether errors get a path.
  ///
  /// It is `false` while a path is being searched for.
  var findsPaths = true

  /// The number of bytes that may still be reserved for elements that have not been read.
  var reservableCount: Int

  /// The finder of the paths of errors.
  var pathFinder: CBORPathFinder

  /// The codec's `userInfo`, or `nil` if it doesn't have one.
  ///
  /// It is unmanaged, so that no reference is counted in the common case of `nil`. The codec outlives the reader and
  /// keeps the object.
  var sharedUserInfo: Unmanaged<CodingUserInfo>?

  /// The values of ``CBOROptions/userInfo``.
  var userInfo: [CodingUserInfoKey: Any] { sharedUserInfo?.takeUnretainedValue().values ?? [:] }

  /// Creates a reader of memory.
  ///
  /// The memory must outlive the reader.
  @inline(__always)
  init(_ bytes: UnsafeRawBufferPointer) {
    // An empty buffer may have no address. No byte is read at the address used instead.
    makesShortText = ShortText.isPossible
    base = bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1).unsafelyUnwrapped
    end = base + bytes.count
    next = base
    reservableCount = bytes.count &* 8
    pathFinder = CBORPathFinder()
  }

  /// Throws if bytes follow the value.
  @inline(__always)
  mutating func checkEnd() throws {
    if next != end { throw corrupted("unexpected bytes follow the value", at: offset) }
  }

  /// The number of bytes before the next item.
  var offset: Int { next - base }

  /// The number of bytes that have not been read.
  var remainingCount: Int { end - next }
  mutating func descend() throws {
    depth &+= 1
    if depth > CBORWriter.maximumDepth { throw tooDeep() }
  }

  // MARK: Items

  /// Reads the next item if it is `null` or `undefined`.
  ///
  /// - Returns: Whether there was such an item.
  @inline(__always)
  mutating func readNull() -> Bool {
    guard next < end else { return false }
    let first = next.load(as: UInt8.self)
    guard first == 0xF6 || first == 0xF7 else { return false }
    next += 1
    return true
  }

  /// Reads a byte string of definite or indefinite length.
  ///
  /// - Throws: `DecodingError` if the next item is not a byte string.
  mutating func readBytes() throws -> [UInt8] {
    let start = offset
    let head = try readUntaggedHead([UInt8].self)
    guard head.major == .bytes else { throw mismatch([UInt8].self, head, at: start) }
    if !head.isIndefinite { return Array(try content(head)) }
    return try readChunks(.bytes)
  }

  /// Reads the chunks of a string of indefinite length.
  mutating func readChunks(_ major: ItemHead.Major) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while try !readBreak() {
      let start = offset
      let head = try readHead()
      guard head.major == major, !head.isIndefinite else { throw malformed(at: start) }
      let chunk = try content(head)
      if major == .text { _ = try string(chunk, at: start) }
      bytes.append(contentsOf: chunk)
    }
    return bytes
  }

  /// Returns the bytes of a string whose head has been read, and skips them.
  mutating func content(_ head: ItemHead) throws -> UnsafeRawBufferPointer {
    guard head.argument <= UInt64(remainingCount) else { throw truncated() }
    let content = UnsafeRawBufferPointer(start: next, count: Int(head.argument))
    next += content.count
    return content
  }

  /// Reads the next item as its bytes, whatever its kind.
  ///
  /// - Throws: `DecodingError` if the item is malformed, nests too deep, or contains text that is not UTF-8.
  mutating func readItem() throws -> [UInt8] {
    let start = next
    try skip()
    let item = UnsafeRawBufferPointer(start: start, count: next - start)
    let end = next
    next = start
    while next < end {
      let place = next
      if try readBreak() { continue }
      let head = try readHead()
      if head.major == .text {
        next = place
        _ = try readText()
      } else if head.major == .bytes, !head.isIndefinite {
        _ = try content(head)
      }
    }
    return Array(item)
  }

  // MARK: Arrays

  /// Reads the head of an array.
  ///
  /// - Returns: The number of elements, or -1 if the length is indefinite.
  mutating func openArray() throws -> Int {
    if next < end, case let first = next.load(as: UInt8.self), first >= 0x80, first < 0x98 {
      try descend()
      next += 1
      return Int(first &- 0x80)
    }
    return try openOtherArray()
  }

  private mutating func openOtherArray() throws -> Int {
    let start = offset
    let tag = try readTag()
    let head = try readHead()
    // The `Codable` conformance of such a dictionary reads an array of alternating keys and values.
    let isDictionary = tag == DictionaryKeys.tag && head.major == .map
    guard head.major == .array || isDictionary, CBORReader.meaning(of: tag) == nil else {
      throw mismatch([Any].self, tag: tag, head, at: start)
    }
    try descend()
    if head.isIndefinite { return -1 }
    // An element takes at least one byte.
    let bytesOfEach = isDictionary ? 2 : 1
    guard head.argument <= UInt64(remainingCount / bytesOfEach) else { throw truncated() }
    return Int(head.argument) * bytesOfEach
  }

  /// Returns whether another element follows, and counts it or reads the break.
  @inline(__always)
  mutating func hasElement(_ remaining: inout Int) throws -> Bool {
    if remaining > 0 {
      remaining &-= 1
      return true
    }
    return try remaining < 0 && !readBreak()
  }

  /// Returns the number of elements to reserve memory for.
  ///
  /// It is the count of the array, as long as all memory reserved by this reader is at most eight times the number of
  /// bytes.
  ///
  /// The limit covers the whole value, because each of many nested arrays may claim as many elements as there are
  /// bytes.
  mutating func capacity(_ count: Int, ofStride stride: Int) -> Int {
    let capacity = min(max(count, 0), reservableCount / max(stride, 1))
    reservableCount &-= capacity &* stride
    return capacity
  }

  // MARK: Skipping

  /// Skips the next item, whatever its kind.
  ///
  /// - Throws: `DecodingError` if it is malformed, or nests too deep.
  mutating func skip() throws {
    try skip(depth: depth)
  }

  private mutating func skip(depth: Int) throws {
    let head = try readHead()
    switch head.major {
    case .unsigned, .negative, .simple:
      return
    case .bytes, .text:
      guard head.isIndefinite else {
        _ = try content(head)
        return
      }
      while try !readBreak() {
        let start = offset
        let chunk = try readHead()
        guard chunk.major == head.major, !chunk.isIndefinite else { throw malformed(at: start) }
        _ = try content(chunk)
      }
    case .tag:
      guard depth < CBORWriter.maximumDepth else { throw tooDeep() }
      try skip(depth: depth + 1)
    case .array, .map:
      guard depth < CBORWriter.maximumDepth else { throw tooDeep() }
      guard head.argument <= UInt64(remainingCount) else { throw truncated() }
      var remaining = head.isIndefinite ? -1 : Int(head.argument)
      while try hasElement(&remaining) {
        try skip(depth: depth + 1)
        if head.major == .map { try skip(depth: depth + 1) }
      }
    }
  }
}

extension CBORReader {
  @inline(never)
  mutating func context(_ message: String, at offset: Int) -> DecodingError.Context {
    DecodingError.Context(
      codingPath: findsPaths ? path(to: base + offset) : [], debugDescription: "\(message) (at byte \(offset))")
  }

  /// Returns the path to the item at an address.
  mutating func path(to place: UnsafeRawPointer) -> [any CodingKey] {
    pathFinder.path(to: place - base, in: UnsafeRawBufferPointer(start: base, count: end - base))
  }

  @inline(never)
  mutating func corrupted(_ message: String, at offset: Int) -> DecodingError {
    DecodingError.dataCorrupted(context(message, at: offset))
  }

  @inline(never)
  mutating func malformed(at offset: Int? = nil) -> DecodingError {
    corrupted("malformed CBOR", at: offset ?? self.offset)
  }

  @inline(never)
  mutating func truncated() -> DecodingError {
    corrupted("the bytes end before the value is complete", at: offset)
  }

  @inline(never)
  mutating func tooDeep() -> DecodingError {
    corrupted("the value nests more than \(CBORWriter.maximumDepth) levels deep", at: offset)
  }

  /// Returns the error for an item of another kind than the requested type.
  @inline(never)
  mutating func mismatch(
    _ type: Any.Type, tag: UInt64? = nil, _ head: ItemHead, at offset: Int
  ) -> DecodingError {
    if let meaning = CBORReader.meaning(of: tag) {
      return DecodingError.typeMismatch(type, context("found \(meaning) instead", at: offset))
    }
    if head.isNull {
      return DecodingError.valueNotFound(type, context("found null instead of a value", at: offset))
    }
    let kind =
      switch head.major {
      case .unsigned, .negative: "an integer"
      case .bytes: "a byte string"
      case .text: "text"
      case .array: "an array"
      case .map: "a map"
      case .tag: "a tag"
      case .simple: head.float != nil ? "a floating-point number" : "a simple value"
      }
    return DecodingError.typeMismatch(type, context("found \(kind) instead", at: offset))
  }
}
