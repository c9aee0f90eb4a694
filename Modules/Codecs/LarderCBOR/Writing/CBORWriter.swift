/// Writes CBOR (RFC 8949) into memory that grows: the shortest form of each number, and definite lengths.
///
/// A ``CBORConvertible`` type gets one to write itself to. Whatever is written through it is well-formed: what would not
/// be, like a key without a value, throws.
public struct CBORWriter: ~Copyable {
  /// How deep arrays, maps and tags may nest: 512.
  ///
  /// What nests deeper is neither written nor read.
  public static var maximumDepth: Int { 512 }

  @usableFromInline var start: UnsafeMutableRawPointer
  @usableFromInline var next: UnsafeMutableRawPointer
  @usableFromInline var end: UnsafeMutableRawPointer

  /// How many items were written into the innermost array, map or tag that is open, keys included.
  @usableFromInline var itemCount = 0

  @usableFromInline var depth = 0

  /// Which keys were written by name into the innermost map that is open: a bit for each, and the highest bit where two
  /// of them may be the same.
  @usableFromInline var keyBits: UInt64 = 0

  /// Not counted, so that nothing is released where there is none: the codec keeps it as long as this is there.
  @usableFromInline var sharedUserInfo: Unmanaged<CodingUserInfo>?

  /// The values of ``CBOROptions/userInfo``.
  public var userInfo: [CodingUserInfoKey: Any] { sharedUserInfo?.takeUnretainedValue().values ?? [:] }

  /// Whether the memory is this writer's own, not that of a caller.
  @usableFromInline var isOwner: Bool

  /// Makes a writer that begins in the memory of a caller, which outlives it, and goes on in its own.
  @inlinable
  init(scratch: UnsafeMutableRawBufferPointer) {
    // An empty buffer may have no address.
    if let address = scratch.baseAddress {
      start = address
      end = address + scratch.count
      isOwner = false
    } else {
      start = UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 1)
      end = start + 64
      isOwner = true
    }
    next = start
  }

  /// Makes a writer with memory of its own.
  init(capacity: Int) {
    start = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 1)
    next = start
    end = start + capacity
    isOwner = true
  }

  @inlinable
  deinit {
    if isOwner { start.deallocate() }
  }

  /// Lets a closure write one item, and appends it to bytes.
  @inlinable
  static func append(to bytes: inout [UInt8], _ body: (inout CBORWriter) throws -> Void) throws {
    // As much as is certain to lie on the stack.
    try withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 1) { scratch in
      var writer = CBORWriter(scratch: scratch)
      try body(&writer)
      try writer.finish(into: &bytes)
    }
  }

  /// Lets a closure write one item with the values of `userInfo`, and appends it to bytes.
  static func append(
    to bytes: inout [UInt8], userInfo: CodingUserInfo?, _ body: (inout CBORWriter) throws -> Void
  ) throws {
    try append(to: &bytes) { writer in
      writer.sharedUserInfo = userInfo.map { Unmanaged.passUnretained($0) }
      try body(&writer)
    }
  }

  /// Appends what was written, which must be one item.
  @usableFromInline
  func finish(into bytes: inout [UInt8]) throws {
    try checkIsOneItem()
    bytes.append(contentsOf: written)
  }

  /// What has been written.
  var written: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

  /// How many bytes have been written.
  @usableFromInline var count: Int { next - start }

  func checkIsOneItem() throws {
    if depth != 0 { throw invalid("An error of the writer was ignored, so what it wrote is incomplete.") }
    if itemCount != 1 { throw invalid("A value must be written as one data item, not as \(itemCount).") }
  }

  // MARK: Memory

  @inlinable @inline(__always)
  mutating func reserve(_ byteCount: Int) {
    if end - next < byteCount { grow(by: byteCount) }
  }

  @usableFromInline @inline(never)
  mutating func grow(by byteCount: Int) {
    let written = count
    let capacity = max((end - start) * 2, written + byteCount, 256)
    let memory = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 1)
    memory.copyMemory(from: start, byteCount: written)
    if isOwner { start.deallocate() }
    start = memory
    next = memory + written
    end = memory + capacity
    isOwner = true
  }

  @inlinable @inline(__always)
  mutating func putByte(_ byte: UInt8) {
    next.storeBytes(of: byte, as: UInt8.self)
    next += 1
  }

  @inlinable @inline(__always)
  mutating func put<Number: FixedWidthInteger & BitwiseCopyable>(bigEndian number: Number) {
    next.storeBytes(of: number.bigEndian, as: Number.self)
    next += MemoryLayout<Number>.size
  }

  /// Writes the head of an item: a major type in the upper three bits, and its argument in the shortest form.
  @inlinable @inline(__always)
  mutating func putHead(_ major: UInt8, _ argument: UInt64) {
    if argument < 24 {
      reserve(1)
      putByte(major | UInt8(truncatingIfNeeded: argument))
    } else {
      putLongHead(major, argument)
    }
  }

  @usableFromInline
  mutating func putLongHead(_ major: UInt8, _ argument: UInt64) {
    reserve(9)
    if argument <= 0xFF {
      putByte(major | 24)
      putByte(UInt8(truncatingIfNeeded: argument))
    } else if argument <= 0xFFFF {
      putByte(major | 25)
      put(bigEndian: UInt16(truncatingIfNeeded: argument))
    } else if argument <= 0xFFFF_FFFF {
      putByte(major | 26)
      put(bigEndian: UInt32(truncatingIfNeeded: argument))
    } else {
      putByte(major | 27)
      put(bigEndian: argument)
    }
  }

  mutating func putString(_ major: UInt8, _ content: UnsafeRawBufferPointer) {
    let count = content.count
    reserve(count + 9)
    if count < 24 { putByte(major | UInt8(truncatingIfNeeded: count)) } else { putLongHead(major, UInt64(count)) }
    if let address = content.baseAddress { copy(address, into: next, count: count) }
    next += count
  }

  /// Writes a key of a map.
  @inlinable @inline(__always)
  mutating func putKey(_ key: StaticString) {
    let count = key.utf8CodeUnitCount
    guard key.hasPointerRepresentation, count < 24 else { return putUnusualKey(key) }
    reserve(count + 1)
    putByte(0x60 | UInt8(truncatingIfNeeded: count))
    next.copyMemory(from: key.utf8Start, byteCount: count)
    next += count
    itemCount &+= 1
    // From the literal, not from what was copied: so the compiler knows the bit.
    noteKey(UnsafeRawPointer(key.utf8Start), count: count)
  }

  @usableFromInline
  mutating func putUnusualKey(_ key: StaticString) {
    let count = key.withUTF8Buffer { text in
      putString(0x60, UnsafeRawBufferPointer(text))
      return text.count
    }
    itemCount &+= 1
    noteKey(next - count, count: count)
  }

  /// Notes the key that was just written.
  ///
  /// To compare it with the others would take longer than to write it; so they are compared when the map is closed, and
  /// only where two of them look alike here.
  ///
  /// - Parameters:
  ///   - text: Its text.
  ///   - count: How many bytes that has.
  @inlinable @inline(__always)
  mutating func noteKey(_ text: UnsafeRawPointer, count: Int) {
    var mixed = UInt64(truncatingIfNeeded: count) &<< 24
    if count > 0 {
      mixed |= UInt64(text.load(as: UInt8.self))
      mixed |= UInt64(text.load(fromByteOffset: count &>> 1, as: UInt8.self)) &<< 8
      mixed |= UInt64(text.load(fromByteOffset: count &- 1, as: UInt8.self)) &<< 16
    }
    let bit = (1 as UInt64) &<< ((mixed &* 0x9E37_79B9_7F4A_7C15) &>> 40 % 63)
    keyBits |= bit | (keyBits & bit != 0 ? 1 &<< 63 : 0)
  }

  // MARK: Items

  /// Writes a value of any type that adopts ``CBORConvertible``.
  ///
  /// - Throws: What the value throws.
  @inlinable @inline(__always)
  public mutating func write(_ value: some CBORConvertible) throws {
    do {
      try value.write(to: &self)
    } catch {
      noteError()
      throw error
    }
  }

  /// Writes a `Codable` value.
  ///
  /// - Throws: What the value throws.
  public mutating func encode(_ value: some Encodable) throws {
    do {
      try EncodingState.encode(value, with: &self)
    } catch {
      noteError()
      throw error
    }
  }

  /// Writes bytes as a byte string.
  public mutating func write(bytes: RawSpan) {
    bytes.withUnsafeBytes { putString(0x40, $0) }
    itemCount &+= 1
  }

  /// Writes `null`, which stands for a `nil`.
  @inlinable
  public mutating func writeNull() {
    reserve(1)
    putByte(0xF6)
    itemCount &+= 1
  }

  /// Writes an array.
  ///
  /// - Parameter body: Writes the elements, each as one item.
  /// - Throws: What `body` throws, or `EncodingError` where the array nests too deep.
  @inlinable
  public mutating func writeArray(_ body: (inout CBORWriter) throws -> Void) throws {
    let container = try open(0x80)
    try body(&self)
    closeArray(container)
  }

  /// Writes a map.
  ///
  /// - Parameter body: Writes the fields by ``write(_:forKey:)``, or keys and values as items in turn. The fields stand in
  ///   the map in the order in which they are written. No key may come twice; one that is written as an item is not
  ///   looked at.
  /// - Throws: What `body` throws, or `EncodingError` where the map nests too deep, a key has no value, or a field is
  ///   written twice.
  @inlinable
  public mutating func writeMap(_ body: (inout CBORWriter) throws -> Void) throws {
    let container = try open(0xA0)
    try body(&self)
    try closeMap(container)
  }

  /// Writes an item with a tag, which says how it is meant.
  ///
  /// - Parameters:
  ///   - tag: The number of the tag, as registered with IANA.
  ///   - body: Writes the item.
  /// - Throws: What `body` throws, or `EncodingError` where it does not write one item or the tag nests too deep.
  @inlinable
  public mutating func writeTag(_ tag: UInt64, _ body: (inout CBORWriter) throws -> Void) throws {
    putHead(0xC0, tag)
    let outerCount = itemCount
    itemCount = 0
    try descend()
    try body(&self)
    try checkIsTagged()
    depth &-= 1
    itemCount = outerCount &+ 1
  }

  @usableFromInline
  func checkIsTagged() throws {
    if itemCount != 1 { throw invalid("A tag must stand before one data item, not before \(itemCount).") }
  }

  // MARK: Fields

  /// Writes a field of a map.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The name of the field.
  /// - Throws: What the value throws, or `EncodingError` where it does not write itself as one item.
  @inlinable @inline(__always)
  public mutating func write(_ value: some CBORConvertible, forKey key: StaticString) throws {
    putKey(key)
    try write(value)
  }

  /// Writes a field of a map, or nothing where the value is `nil`.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The name of the field.
  /// - Throws: What the value throws.
  @inlinable @inline(__always)
  public mutating func writeIfPresent(_ value: (some CBORConvertible)?, forKey key: StaticString) throws {
    if let value { try write(value, forKey: key) }
  }

  /// Writes a `Codable` value as a field of a map.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The name of the field.
  /// - Throws: What the value throws.
  @inlinable
  public mutating func encode(_ value: some Encodable, forKey key: StaticString) throws {
    putKey(key)
    try encode(value)
  }

  // MARK: Containers

  /// An array or map that is open.
  @usableFromInline
  struct Container {
    /// Where its head lies.
    @usableFromInline let offset: Int
    /// How many items there are around it.
    @usableFromInline let outerCount: Int
    /// Which keys there are around it.
    @usableFromInline let outerKeyBits: UInt64

    @inlinable
    init(offset: Int, outerCount: Int, outerKeyBits: UInt64) {
      self.offset = offset
      self.outerCount = outerCount
      self.outerKeyBits = outerKeyBits
    }
  }

  /// Refuses what would nest too deep.
  @inlinable @inline(__always)
  func checkDepth(_ count: Int) throws {
    if depth &+ count > CBORWriter.maximumDepth { throw tooDeep() }
  }

  @inlinable @inline(__always)
  mutating func descend() throws {
    if depth >= CBORWriter.maximumDepth { throw tooDeep() }
    depth &+= 1
  }

  @inlinable @inline(__always)
  mutating func open(_ major: UInt8) throws -> Container {
    try descend()
    let container = Container(offset: count, outerCount: itemCount, outerKeyBits: keyBits)
    reserve(1)
    // Until it is closed, an indefinite length: so the path to what is being written can be read from the bytes.
    putByte(major | 31)
    itemCount = 0
    keyBits = 0
    return container
  }

  @inlinable @inline(__always)
  mutating func closeArray(_ container: Container) {
    close(container, 0x80, itemCount)
  }

  @inlinable @inline(__always)
  mutating func closeMap(_ container: Container) throws {
    if itemCount & 1 != 0 { throw invalid("A key of a map has no value.") }
    if keyBits &>> 63 != 0 { try checkKeys(from: container.offset + 1) }
    close(container, 0xA0, itemCount &>> 1)
  }

  /// Refuses the pairs from an offset on where a key comes twice: what has them could not be read again.
  @usableFromInline @inline(never)
  func checkKeys(from offset: Int) throws {
    let pairs = UnsafeRawBufferPointer(rebasing: written[offset...])
    if let twin = try CBORWriter.keyThatComesTwice(pairs, count: itemCount / 2) { throw invalidTwin(twin) }
  }

  func invalidTwin(_ key: String) -> EncodingError {
    invalid("The map has the key \"\(key)\" twice.")
  }

  /// The text of a key that a map has twice, byte for byte, if there is one.
  ///
  /// - Parameters:
  ///   - pairs: All keys and values, without a head.
  ///   - count: How many pairs they are.
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
      return twin.map { CBORDiagnostics.key(keys[$0]) }
    }
  }

  @inlinable @inline(__always)
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

  /// Gives a container of more elements than one byte can tell a longer head.
  @usableFromInline @inline(never)
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

  /// A place between two items, to which the writer can go back.
  struct Place {
    let offset: Int
    let itemCount: Int
    let depth: Int
    let keyBits: UInt64
  }

  /// Where the writer stands.
  var place: Place { Place(offset: count, itemCount: itemCount, depth: depth, keyBits: keyBits) }

  /// Drops what was written from a place on.
  mutating func rewind(to place: Place) {
    next = start + place.offset
    itemCount = place.itemCount
    depth = place.depth
    keyBits = place.keyBits
  }

  // MARK: Errors

  /// The path to what lies at an offset, or for the end of what was written, to what was written last.
  func path(to offset: Int) -> [any CodingKey] {
    var finder = CBORPathFinder()
    return finder.path(to: offset, in: written)
  }

  @usableFromInline @inline(never)
  func invalid(_ message: String) -> EncodingError {
    invalid(message, at: count)
  }

  func invalid(_ message: String, at offset: Int) -> EncodingError {
    EncodingError.invalidValue(
      (), EncodingError.Context(codingPath: path(to: offset), debugDescription: message))
  }

  /// Sees to it that nothing is made of what was written where somebody ignores an error.
  @usableFromInline @inline(never)
  mutating func noteError() {
    depth += 1
  }

  @usableFromInline @inline(never)
  func tooDeep() -> EncodingError {
    invalid("The value nests more than \(CBORWriter.maximumDepth) deep.")
  }
}
