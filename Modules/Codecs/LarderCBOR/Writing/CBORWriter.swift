/// A writer that encodes CBOR (RFC 8949) into a growing buffer, with the shortest form of each number and definite
/// lengths.
///
/// A ``CBORConvertible`` type receives a writer to write itself to. The output is always well-formed. A call that would
/// make it malformed, for example by writing a key without a value, throws an error.
public struct CBORWriter: ~Copyable {
  /// The maximum nesting depth of arrays, maps and tags, which is 512 levels.
  ///
  /// Items that nest deeper are neither written nor read.
  public static var maximumDepth: Int { 512 }

  @usableFromInline var start: UnsafeMutableRawPointer
  @usableFromInline var next: UnsafeMutableRawPointer
  @usableFromInline var end: UnsafeMutableRawPointer

  /// The number of items in the innermost open array, map or tag, including keys.
  @usableFromInline var itemCount = 0

  @usableFromInline var depth = 0

  /// A bit for each key that was written by name into the innermost open map.
  ///
  /// The highest bit indicates that two of the keys may be equal.
  @usableFromInline var keyBits: UInt64 = 0

  /// The codec's `userInfo`, or `nil` if it doesn't have one.
  ///
  /// It is unmanaged, so no reference is counted in the common case of `nil`. The codec outlives the writer and keeps
  /// the object.
  @usableFromInline var sharedUserInfo: Unmanaged<CodingUserInfo>?

  /// The values of ``CBOROptions/userInfo``.
  public var userInfo: [CodingUserInfoKey: Any] { sharedUserInfo?.takeUnretainedValue().values ?? [:] }

  /// A Boolean value that indicates whether the writer owns its buffer, instead of borrowing the caller's.
  @usableFromInline var isOwner: Bool

  /// Creates a writer that starts in the caller's memory and moves to its own buffer when that is full.
  ///
  /// The caller's memory must outlive the writer.
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

  /// Creates a writer with a buffer of its own.
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

  /// Appends the one item that a closure writes.
  @inlinable
  static func append(to bytes: inout [UInt8], _ body: (inout CBORWriter) throws -> Void) throws {
    // A size that is certain to be allocated on the stack.
    try withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 1) { scratch in
      var writer = CBORWriter(scratch: scratch)
      try body(&writer)
      try writer.finish(into: &bytes)
    }
  }

  /// Appends the bytes that were written, which must be one item.
  @usableFromInline
  func finish(into bytes: inout [UInt8]) throws {
    try checkIsOneItem()
    bytes.append(contentsOf: written)
  }

  /// The bytes that have been written.
  var written: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

  /// The number of bytes that have been written.
  @usableFromInline var count: Int { next - start }

  func checkIsOneItem() throws {
    if depth != 0 { throw invalid("an error of the writer was ignored, so its output is incomplete") }
    if itemCount != 1 { throw invalid("a value must be written as one data item, not \(itemCount)") }
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

  /// Writes the head of an item, which is a major type in the upper three bits and an argument in its shortest form.
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
    // Computed from the literal, not from the copied bytes, so that the compiler knows the bit.
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

  /// Records the key that was just written.
  ///
  /// Comparing a key with all others would take longer than writing it. The keys are compared only when the map is
  /// closed, and only if two of them have the same bit here.
  ///
  /// - Parameters:
  ///   - text: The text of the key.
  ///   - count: The number of bytes of the text.
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
  /// - Throws: An error that the value throws.
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
  /// - Throws: An error that the value throws.
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

  /// Writes an item that is already encoded, for example by another version of a type.
  ///
  /// - Parameter item: The bytes that ``CBORReader/readItem()`` returns.
  /// - Throws: `EncodingError` if the bytes are not exactly one well-formed item, or if it nests too deep here.
  public mutating func write(item: RawSpan) throws {
    try item.withUnsafeBytes { bytes in
      var reader = CBORReader(bytes)
      reader.depth = depth
      do {
        _ = try reader.readItem()
        try reader.checkEnd()
      } catch {
        throw invalid("the bytes are not one CBOR item that can stand here: \(error)")
      }
      putRaw(bytes)
    }
    itemCount &+= 1
  }

  /// Writes bytes as they are.
  mutating func putRaw(_ bytes: UnsafeRawBufferPointer) {
    guard let address = bytes.baseAddress else { return }
    reserve(bytes.count)
    next.copyMemory(from: address, byteCount: bytes.count)
    next += bytes.count
  }

  /// Writes `null`, which represents `nil`.
  @inlinable
  public mutating func writeNull() {
    reserve(1)
    putByte(0xF6)
    itemCount &+= 1
  }

  /// Writes an array.
  ///
  /// - Parameter body: A closure that writes each element as one item.
  /// - Throws: An error of `body`, or `EncodingError` if the array nests too deep.
  @inlinable
  public mutating func writeArray(_ body: (inout CBORWriter) throws -> Void) throws {
    let container = try open(0x80)
    try body(&self)
    closeArray(container)
  }

  /// Writes a map.
  ///
  /// - Parameter body: A closure that writes the fields by ``write(_:forKey:)``, or keys and values alternately as
  ///   items. The map keeps the order in which the fields are written. No key may be written twice. Keys that are
  ///   written as items are not checked.
  /// - Throws: An error of `body`, or `EncodingError` if the map nests too deep, a key has no value, or a field is
  ///   written twice.
  @inlinable
  public mutating func writeMap(_ body: (inout CBORWriter) throws -> Void) throws {
    let container = try open(0xA0)
    try body(&self)
    try closeMap(container)
  }

  /// Writes an item with a tag, which describes the meaning of the item.
  ///
  /// - Parameters:
  ///   - tag: The number of the tag, as registered with IANA.
  ///   - body: A closure that writes the item.
  /// - Throws: An error of `body`, or `EncodingError` if it does not write exactly one item or the tag nests too deep.
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
    if itemCount != 1 { throw invalid("a tag must be followed by one data item, not \(itemCount)") }
  }

  // MARK: Fields

  /// Writes a field of a map.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The name of the field.
  /// - Throws: An error that the value throws, or `EncodingError` if it does not write itself as one item.
  @inlinable @inline(__always)
  public mutating func write(_ value: some CBORConvertible, forKey key: StaticString) throws {
    putKey(key)
    try write(value)
  }

  /// Writes a field of a map if the value is not `nil`.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The name of the field.
  /// - Throws: An error that the value throws.
  @inlinable @inline(__always)
  public mutating func writeIfPresent(_ value: (some CBORConvertible)?, forKey key: StaticString) throws {
    if let value { try write(value, forKey: key) }
  }

  /// Writes a `Codable` value as a field of a map.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The name of the field.
  /// - Throws: An error that the value throws.
  @inlinable
  public mutating func encode(_ value: some Encodable, forKey key: StaticString) throws {
    putKey(key)
    try encode(value)
  }

  // MARK: Errors

  /// Returns the path to the item at an offset.
  ///
  /// At the end of the bytes, it is the path to the last item written.
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

  /// Marks the output as incomplete, so it is not used if a type ignores an error.
  @usableFromInline @inline(never)
  mutating func noteError() {
    depth += 1
  }

  @usableFromInline @inline(never)
  func tooDeep() -> EncodingError {
    invalid("the value nests more than \(CBORWriter.maximumDepth) levels deep")
  }
}
