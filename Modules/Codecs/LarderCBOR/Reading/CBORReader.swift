#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Reads CBOR (RFC 8949) from memory, without copying it: any well-formed item, in whatever form it was written.
///
/// A ``CBORConvertible`` type gets one to read itself from. Lengths are checked before anything is allocated by them,
/// nesting is bounded, and text must be UTF-8. Tags that a type does not ask for are passed over. After an error a reader
/// is of no further use.
public struct CBORReader: ~Copyable {
  /// The first byte of all there is.
  @usableFromInline let base: UnsafeRawPointer

  /// What follows the last byte.
  @usableFromInline let end: UnsafeRawPointer

  @usableFromInline var next: UnsafeRawPointer

  @usableFromInline var depth = 0

  /// The map whose fields are being read.
  @usableFromInline var map: MapCursor

  /// The keys of maps that could not be read in the order of their fields.
  @usableFromInline var listing: MapListing?

  /// Whether short text can be made without the library; asked once, not for every text.
  @usableFromInline let makesShortText: Bool

  /// Whether errors get a path; not where a path is looked for.
  @usableFromInline var findsPaths = true

  /// How many bytes of memory room may still be made for before there is something to put there.
  @usableFromInline var reservableCount: Int

  /// Makes the paths of errors.
  @usableFromInline var pathFinder: CBORPathFinder

  /// Not counted, so that nothing is released where there is none: the codec keeps it as long as this is there.
  @usableFromInline var sharedUserInfo: Unmanaged<CodingUserInfo>?

  /// The values of ``CBOROptions/userInfo``.
  public var userInfo: [CodingUserInfoKey: Any] { sharedUserInfo?.takeUnretainedValue().values ?? [:] }

  /// Makes a reader of memory that outlives it.
  @inlinable @inline(__always)
  init(_ bytes: UnsafeRawBufferPointer) {
    // An empty buffer may have no address; no byte is ever read at this one.
    makesShortText = ShortText.isPossible
    base = bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1).unsafelyUnwrapped
    end = base + bytes.count
    next = base
    map = MapCursor(start: base, count: 0)
    reservableCount = bytes.count &* 8
    pathFinder = CBORPathFinder()
  }

  /// Reads one value of all the given bytes.
  @inlinable
  @inline(__always)
  static func read<Value>(_ bytes: RawSpan, _ body: (inout CBORReader) throws -> Value) throws -> Value {
    try bytes.withUnsafeBytes { bytes in
      var reader = CBORReader(bytes)
      let value = try body(&reader)
      try reader.checkEnd()
      return value
    }
  }

  /// Reads one value of all the given bytes, with the values of `userInfo`.
  static func read<Value>(
    _ bytes: RawSpan, userInfo: CodingUserInfo?, _ body: (inout CBORReader) throws -> Value
  ) throws -> Value {
    try read(bytes) { reader in
      reader.sharedUserInfo = userInfo.map { Unmanaged.passUnretained($0) }
      return try body(&reader)
    }
  }

  /// Refuses bytes behind the value that was read.
  @inlinable @inline(__always)
  mutating func checkEnd() throws {
    if next != end { throw corrupted("Bytes follow the value.", at: offset) }
  }

  /// How many bytes stand before the next item.
  @usableFromInline var offset: Int { next - base }

  /// How many bytes there still are.
  @usableFromInline var remainingCount: Int { end - next }

  // MARK: Heads

  /// Reads the head of the next item.
  mutating func readHead() throws -> ItemHead {
    guard next < end else { throw truncated() }
    let first = next.load(as: UInt8.self)
    let information = first & 0x1F
    var argument = UInt64(information)
    var count = 1
    switch information {
    case 0..<24: break
    case 24...27:
      count = 1 + 1 &<< Int(information - 24)
      guard remainingCount >= count else { throw truncated() }
      argument =
        switch information {
        case 24: UInt64(next.load(fromByteOffset: 1, as: UInt8.self))
        case 25: UInt64(UInt16(bigEndian: next.loadUnaligned(fromByteOffset: 1, as: UInt16.self)))
        case 26: UInt64(UInt32(bigEndian: next.loadUnaligned(fromByteOffset: 1, as: UInt32.self)))
        default: UInt64(bigEndian: next.loadUnaligned(fromByteOffset: 1, as: UInt64.self))
        }
    case 31:
      argument = 0
    default:
      throw malformed()
    }
    guard let major = ItemHead.Major(rawValue: first &>> 5) else { throw malformed() }
    switch major {
    case .unsigned, .negative, .tag:
      if information == 31 { throw malformed() }
    case .simple:
      // A break belongs to the item that it ends, which looks for it.
      if information == 31 || (information == 24 && argument < 32) { throw malformed() }
    default: break
    }
    next += count
    return ItemHead(major: major, information: information, argument: argument)
  }

  /// Reads the head of the next item, and passes over the tags before it; not over those that make it another thing than
  /// its content is, like a date.
  mutating func readUntaggedHead(_ type: Any.Type) throws -> ItemHead {
    let start = offset
    let tag = try readTag()
    let head = try readHead()
    if CBORReader.meaning(of: tag) != nil { throw mismatch(type, tag: tag, head, at: start) }
    return head
  }

  /// What an item with a tag is, if its content must not be taken for the value.
  static func meaning(of tag: UInt64?) -> String? {
    switch tag {
    case 1, 1001: "a date"
    case 2, 3: "an integer of more than 64 bits"
    case 4: "a decimal fraction"
    case 5: "a binary fraction"
    default: nil
    }
  }

  /// Passes over the tags before the next item, and reads their numbers.
  ///
  /// - Returns: The number of the last of them, which says what the item is, or `nil` where there is none.
  /// - Throws: `DecodingError` where a tag is not well-formed, or they nest too deep.
  public mutating func readTag() throws -> UInt64? {
    var tag: UInt64?
    var count = depth
    while next < end, next.load(as: UInt8.self) &>> 5 == 6 {
      count += 1
      if count > CBORWriter.maximumDepth { throw tooDeep() }
      tag = try readHead().argument
    }
    return tag
  }

  /// Reads the break that ends an item of indefinite length, if it is there.
  mutating func readBreak() throws -> Bool {
    guard next < end else { throw truncated() }
    guard next.load(as: UInt8.self) == 0xFF else { return false }
    next += 1
    return true
  }

  @inlinable
  mutating func descend() throws {
    depth &+= 1
    if depth > CBORWriter.maximumDepth { throw tooDeep() }
  }

  // MARK: Items

  /// Reads a value of any type that adopts ``CBORConvertible``.
  ///
  /// - Parameter type: The type; it is usually known from where the value goes.
  /// - Throws: `DecodingError` where the next item is no such value, or what the type throws.
  @inlinable @inline(__always)
  public mutating func read<Value: CBORConvertible>(_ type: Value.Type = Value.self) throws -> Value {
    try Value(from: &self)
  }

  /// Reads a `Codable` value.
  ///
  /// - Parameter type: The type; it is usually known from where the value goes.
  /// - Throws: `DecodingError` where the next item is no such value, or what the type throws.
  public mutating func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
    try DecodingState.decode(type, with: &self)
  }

  /// Reads a `null` or `undefined`, if that is the next item.
  ///
  /// - Returns: Whether it was.
  @inlinable @inline(__always)
  public mutating func readNull() -> Bool {
    guard next < end else { return false }
    let first = next.load(as: UInt8.self)
    guard first == 0xF6 || first == 0xF7 else { return false }
    next += 1
    return true
  }

  /// Reads a byte string, of whatever lengths and chunks.
  ///
  /// - Throws: `DecodingError` where the next item is none.
  public mutating func readBytes() throws -> [UInt8] {
    let start = offset
    let head = try readUntaggedHead([UInt8].self)
    guard head.major == .bytes else { throw mismatch([UInt8].self, head, at: start) }
    if !head.isIndefinite { return Array(try content(head)) }
    return try readChunks(.bytes)
  }

  /// Reads the parts of a string of indefinite length.
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

  /// The bytes of a string whose head has been read, which are passed over.
  mutating func content(_ head: ItemHead) throws -> UnsafeRawBufferPointer {
    guard head.argument <= UInt64(remainingCount) else { throw truncated() }
    let content = UnsafeRawBufferPointer(start: next, count: Int(head.argument))
    next += content.count
    return content
  }

  @usableFromInline
  mutating func readText() throws -> String {
    let start = next
    if end - start > ShortText.readableCount, makesShortText {
      let first = start.load(as: UInt8.self)
      if first & 0xF0 == 0x60, let short = ShortText.string(start + 1, count: Int(first & 0x0F)) {
        next = start + 1 + Int(first & 0x0F)
        return short
      }
    }
    return try readLongText()
  }

  // A function of its own, so that the one above needs few registers.
  @inline(never)
  private mutating func readLongText() throws -> String {
    let start = next
    if start < end {
      let first = start.load(as: UInt8.self)
      if first >= 0x60, first < 0x78, case let count = Int(first &- 0x60), count < end - start {
        next += count + 1
        // As it often is at the end of a value, where not so many bytes are readable.
        if count <= ShortText.maximumCount, makesShortText, let short = ShortText.string(only: start + 1, count: count)
        {
          return short
        }
        return try string(UnsafeRawBufferPointer(start: start + 1, count: count), at: start - base)
      }
      if first == 0x78, end - start > 2, case let count = Int(start.load(fromByteOffset: 1, as: UInt8.self)),
        count <= end - start - 2
      {
        next += count + 2
        return try string(UnsafeRawBufferPointer(start: start + 2, count: count), at: start - base)
      }
    }
    return try readOtherText()
  }

  @inline(never)
  private mutating func readOtherText() throws -> String {
    let start = offset
    let tag = try readTag()
    let head = try readHead()
    if tag == 37, head.major == .bytes, !head.isIndefinite, head.argument == 16 {
      // As a UUID's own `Codable` has it.
      return UUID(uuid: try content(head).loadUnaligned(as: uuid_t.self)).uuidString
    }
    guard head.major == .text else { throw mismatch(String.self, tag: tag, head, at: start) }
    if !head.isIndefinite { return try string(try content(head), at: start) }
    // Each chunk has been checked, and none may end within a character.
    return String(decoding: try readChunks(.text), as: UTF8.self)
  }

  @inline(__always)
  private mutating func string(_ bytes: UnsafeRawBufferPointer, at start: Int) throws -> String {
    let string = String(decoding: bytes, as: UTF8.self)
    // What is not UTF-8 was replaced; ASCII is always.
    if !isASCII(bytes), !string.utf8.elementsEqual(bytes) { throw corrupted("The text is not UTF-8.", at: start) }
    return string
  }

  // MARK: Arrays

  /// Reads an array.
  ///
  /// - Parameter body: Reads one element; it is called as long as there is one.
  /// - Throws: `DecodingError` where the next item is no array, or what `body` throws.
  @inlinable
  public mutating func readArray(_ body: (inout CBORReader) throws -> Void) throws {
    var remaining = try openArray()
    while try hasElement(&remaining) { try body(&self) }
    depth &-= 1
  }

  /// Reads the head of an array; gives the number of its elements, or -1 where its length is indefinite.
  @usableFromInline
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
    // A dictionary whose own `Codable` has an array of its keys and values in turn.
    let isDictionary = tag == DictionaryKeys.tag && head.major == .map
    guard head.major == .array || isDictionary, CBORReader.meaning(of: tag) == nil else {
      throw mismatch([Any].self, tag: tag, head, at: start)
    }
    try descend()
    if head.isIndefinite { return -1 }
    // An element takes one byte at least.
    let bytesOfEach = isDictionary ? 2 : 1
    guard head.argument <= UInt64(remainingCount / bytesOfEach) else { throw truncated() }
    return Int(head.argument) * bytesOfEach
  }

  /// Whether another element follows; counts it, or reads the break.
  @inlinable @inline(__always)
  mutating func hasElement(_ remaining: inout Int) throws -> Bool {
    if remaining > 0 {
      remaining &-= 1
      return true
    }
    return try remaining < 0 && !readBreakOfArray()
  }

  @usableFromInline
  mutating func readBreakOfArray() throws -> Bool {
    try readBreak()
  }

  /// How many elements to make room for: what an array says, as long as all that was made room for is no more than eight
  /// times the bytes there are.
  ///
  /// Arrays within arrays may each say as much as there are bytes.
  @inlinable
  mutating func capacity(_ count: Int, ofStride stride: Int) -> Int {
    let capacity = min(max(count, 0), reservableCount / max(stride, 1))
    reservableCount &-= capacity &* stride
    return capacity
  }

  // MARK: Skipping

  /// Passes over the next item, whatever it is.
  ///
  /// - Throws: `DecodingError` where it is not well-formed, or nests too deep.
  public mutating func skip() throws {
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
      if head.isIndefinite {
        while try !readBreak() {
          try skip(depth: depth + 1)
          if head.major == .map { try skip(depth: depth + 1) }
        }
        return
      }
      guard head.argument <= UInt64(remainingCount) else { throw truncated() }
      for _ in 0..<Int(head.argument) {
        try skip(depth: depth + 1)
        if head.major == .map { try skip(depth: depth + 1) }
      }
    }
  }
}
