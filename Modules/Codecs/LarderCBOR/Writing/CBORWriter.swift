/// A writer that encodes CBOR (RFC 8949) into a growing buffer, with the shortest form of each number and definite
/// lengths.
///
/// The output is well-formed, because containers and values write complete items to it.
struct CBORWriter: ~Copyable {
  /// The maximum nesting depth of arrays, maps and tags: 512 levels.
  ///
  /// Items that nest deeper are neither written nor read.
  static var maximumDepth: Int { 512 }

  var start: UnsafeMutableRawPointer
  var next: UnsafeMutableRawPointer
  var end: UnsafeMutableRawPointer

  /// The number of items in the innermost open array, map or tag, including keys.
  var itemCount = 0

  var depth = 0

  /// A bit for each key that was written by name into the innermost open map.
  ///
  /// The highest bit indicates that two of the keys may be equal.
  var keyBits: UInt64 = 0

  /// The codec's `userInfo`, or `nil` if it doesn't have one.
  ///
  /// It is unmanaged, so that no reference is counted in the common case of `nil`. The codec outlives the writer and
  /// keeps the object.
  var sharedUserInfo: Unmanaged<CodingUserInfo>?

  /// The values of ``CBOROptions/userInfo``.
  var userInfo: [CodingUserInfoKey: Any] { sharedUserInfo?.takeUnretainedValue().values ?? [:] }

  /// A Boolean value that indicates whether the writer owns its buffer, instead of borrowing the caller's.
  var isOwner: Bool

  /// Creates a writer that starts in the caller's memory and moves to its own buffer when that is full.
  ///
  /// The caller's memory must outlive the writer.
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
  deinit {
    if isOwner { start.deallocate() }
  }

  /// Appends the one item that a closure writes.
  static func append(to bytes: inout [UInt8], _ body: (inout CBORWriter) throws -> Void) throws {
    // A size that is certain to be allocated on the stack.
    try withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 1) { scratch in
      var writer = CBORWriter(scratch: scratch)
      try body(&writer)
      bytes.append(contentsOf: writer.written)
    }
  }

  /// The bytes that have been written.
  var written: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

  /// The number of bytes that have been written.
  var count: Int { next - start }

  // MARK: Memory

  @inline(__always)
  mutating func reserve(_ byteCount: Int) {
    if end - next < byteCount { grow(by: byteCount) }
  }

  @inline(never)
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

  @inline(__always)
  mutating func putByte(_ byte: UInt8) {
    next.storeBytes(of: byte, as: UInt8.self)
    next += 1
  }

  @inline(__always)
  mutating func put<Number: FixedWidthInteger & BitwiseCopyable>(bigEndian number: Number) {
    next.storeBytes(of: number.bigEndian, as: Number.self)
    next += MemoryLayout<Number>.size
  }

  /// Writes the head of an item, a major type in the upper three bits and an argument in its shortest form.
  @inline(__always)
  mutating func putHead(_ major: UInt8, _ argument: UInt64) {
    if argument < 24 {
      reserve(1)
      putByte(major | UInt8(truncatingIfNeeded: argument))
    } else {
      putLongHead(major, argument)
    }
  }
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

  /// Records the key that was just written.
  ///
  /// Comparing a key with all others would take longer than writing it. The keys are compared only when the map is
  /// closed, and only if two of them have the same bit here.
  ///
  /// - Parameters:
  ///   - text: The text of the key.
  ///   - count: The number of bytes of the text.
  @inline(__always)
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

  /// Writes bytes as a byte string.
  mutating func put(bytes: UnsafeRawBufferPointer) {
    putString(0x40, bytes)
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
  mutating func putNull() {
    reserve(1)
    putByte(0xF6)
    itemCount &+= 1
  }

  /// Writes an item with a tag, which describes the meaning of the item.
  ///
  /// - Parameters:
  ///   - tag: The number of the tag, as registered with IANA.
  ///   - body: A closure that writes the item.
  /// - Throws: An error of `body`, or `EncodingError` if the tag nests too deep.
  mutating func put(tag: UInt64, _ body: (inout CBORWriter) throws -> Void) throws {
    putHead(0xC0, tag)
    try descend()
    try body(&self)
    depth &-= 1
  }

  // MARK: Errors

  /// Returns the path to the item at an offset.
  ///
  /// At the end of the bytes, it is the path to the last item written.
  func path(to offset: Int) -> [any CodingKey] {
    var finder = CBORPathFinder()
    return finder.path(to: offset, in: written)
  }

  @inline(never)
  func invalid(_ message: String) -> EncodingError {
    invalid(message, at: count)
  }

  func invalid(_ message: String, at offset: Int) -> EncodingError {
    EncodingError.invalidValue(
      (), EncodingError.Context(codingPath: path(to: offset), debugDescription: message))
  }

  @inline(never)
  func tooDeep() -> EncodingError {
    invalid("the value nests more than \(CBORWriter.maximumDepth) levels deep")
  }
}
