/// The name of an entry in a store: a byte string, compared byte by byte, unsigned.
///
/// A key is made from a string literal or interpolation, from a `String` (its UTF-8), from bytes, from an integer or a
/// `UUID` in a form that keeps their order, or from several components (``init(components:)``).
///
/// ```swift
/// let key: StoreKey = "user:\(id)"
/// ```
///
/// Keys are bytes, not characters: the composed and the decomposed "é" are two keys, and so are "A" and "a". NUL, "/",
/// "..", 0x80 and emoji are ordinary content.
///
/// A store takes keys of 1 to 511 bytes (``maximumLength``, the limit of LMDB). A `StoreKey` itself may be empty or
/// longer, for instance as the bound of a ``KeyRange``; every operation that takes a key refuses such a one with
/// ``StoreError/Code/invalidKey``.
///
/// Keys of up to 23 bytes are stored inline: making, copying and comparing them allocates nothing.
public struct StoreKey: Sendable {
  /// The most bytes that the key of an entry may have.
  public static let maximumLength = 511

  /// The most bytes that are kept inline.
  private static let inlineCapacity = 23

  /// What the last byte of ``word2`` says of a key that does not fit inline: more than any inline length.
  private static let overflowMark: UInt64 = 24

  // The first 23 bytes, padded with zeros, as three big-endian words; the last byte is the length, or the overflow mark.
  // So the words, compared as integers, order keys as bytes do: the padding sorts first, and where a padded zero meets a
  // real one the length decides. A key has exactly one representation, so that equal keys have equal words.
  @usableFromInline var word0: UInt64
  @usableFromInline var word1: UInt64
  @usableFromInline var word2: UInt64

  /// Every byte of a key that does not fit inline.
  @usableFromInline var overflow: [UInt8]?

  /// Makes a key of a copy of the bytes in a buffer.
  ///
  /// - Parameter buffer: The bytes; any number of them.
  public init(copying buffer: UnsafeRawBufferPointer) {
    var words: (UInt64, UInt64, UInt64) = (0, 0, 0)
    let fitsInline = buffer.count <= StoreKey.inlineCapacity
    Swift.withUnsafeMutableBytes(of: &words) { destination in
      destination.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer.prefix(StoreKey.inlineCapacity)))
    }
    word0 = UInt64(bigEndian: words.0)
    word1 = UInt64(bigEndian: words.1)
    word2 = UInt64(bigEndian: words.2) | (fitsInline ? UInt64(buffer.count) : StoreKey.overflowMark)
    overflow = fitsInline ? nil : Array(buffer)
  }

  /// Makes a key of bytes.
  ///
  /// - Parameter bytes: The bytes, in order. A slice, of `Data` for instance, gives just its own window.
  public init(bytes: some Sequence<UInt8>) {
    let key = bytes.withContiguousStorageIfAvailable { StoreKey(copying: UnsafeRawBufferPointer($0)) }
    self = key ?? Array(bytes).withUnsafeBytes { StoreKey(copying: $0) }
  }

  /// Makes a key of the UTF-8 of a string.
  ///
  /// - Parameter string: The text. It is not normalized.
  public init(_ string: String) {
    var string = string
    self = string.withUTF8 { StoreKey(copying: UnsafeRawBufferPointer($0)) }
  }

  /// Makes a key of 8 bytes whose order is the order of the integers: big-endian, with the sign bit flipped.
  ///
  /// - Parameter integer: Any integer.
  public init(integer: Int64) {
    word0 = UInt64(bitPattern: integer) ^ (1 << 63)
    word1 = 0
    word2 = 8
    overflow = nil
  }

  /// Makes a key of 8 bytes whose order is the order of the integers: big-endian, with the sign bit flipped.
  ///
  /// - Parameter integer: Any integer.
  public init(integer: Int) {
    self.init(integer: Int64(integer))
  }

  /// The number of bytes.
  @inlinable
  public var count: Int {
    overflow?.count ?? Int(word2 & 0xFF)
  }

  /// Whether the key has no byte at all.
  public var isEmpty: Bool {
    word2 & 0xFF == 0
  }

  /// Calls a closure with the key's bytes, without copying a long key.
  ///
  /// - Parameter body: Reads the bytes; the span is valid only during the call.
  /// - Returns: What `body` returns.
  /// - Throws: What `body` throws.
  @inlinable
  public func withBytes<Result, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withUnsafeBytes { (buffer: UnsafeRawBufferPointer) throws(Failure) -> Result in
      try body(buffer.bytes)
    }
  }

  /// Calls a closure with a pointer to the key's bytes, without copying a long key.
  ///
  /// - Parameter body: Reads the bytes; the pointer is valid only during the call.
  /// - Returns: What `body` returns.
  /// - Throws: What `body` throws.
  @inlinable
  public func withUnsafeBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    if let overflow {
      return try overflow.withUnsafeBufferPointer { (buffer: UnsafeBufferPointer<UInt8>) throws(Failure) -> Result in
        try body(UnsafeRawBufferPointer(buffer))
      }
    }
    return try Swift.withUnsafeBytes(of: (word0.bigEndian, word1.bigEndian, word2.bigEndian)) {
      (buffer: UnsafeRawBufferPointer) throws(Failure) -> Result in
      try body(UnsafeRawBufferPointer(rebasing: buffer.prefix(Int(word2 & 0xFF))))
    }
  }

  /// The key's bytes, as a new array.
  public var bytes: [UInt8] {
    overflow ?? withUnsafeBytes { Array($0) }
  }

  /// The key as text, or `nil` where its bytes are not well-formed UTF-8.
  public var string: String? {
    withUnsafeBytes { String(validating: $0, as: UTF8.self) }
  }

  /// The integer that ``init(integer:)-(Int64)`` made the key from, or `nil` where the key does not have 8 bytes.
  public var integer: Int64? {
    count == 8 ? Int64(bitPattern: word0 ^ (1 << 63)) : nil
  }

  /// Whether the key begins with all the bytes of another.
  ///
  /// - Parameter prefix: The bytes to look for; an empty key is a prefix of every key.
  public func hasPrefix(_ prefix: StoreKey) -> Bool {
    withUnsafeBytes { bytes in prefix.withUnsafeBytes { bytes.starts(with: $0) } }
  }

  /// The key that follows this one directly: there is no key between them.
  ///
  /// It is one NUL byte longer, so that of a key of ``maximumLength`` can only serve as the bound of a range.
  public var successor: StoreKey {
    StoreKey(bytes: bytes + [0])
  }
}

extension StoreKey: Equatable {
  /// Whether two keys have the same bytes.
  public static func == (left: StoreKey, right: StoreKey) -> Bool {
    left.word0 == right.word0 && left.word1 == right.word1 && left.word2 == right.word2
      && left.overflow == right.overflow
  }
}

extension StoreKey: Hashable {
  /// Feeds the key's bytes to a hasher: equal keys hash equal, however they were made.
  public func hash(into hasher: inout Hasher) {
    if let overflow {
      hasher.combine(overflow)
    } else {
      hasher.combine(word0)
      hasher.combine(word1)
      hasher.combine(word2)
    }
  }
}

extension StoreKey: Comparable {
  /// Whether a key comes before another: byte by byte, unsigned, a prefix before what it begins.
  public static func < (left: StoreKey, right: StoreKey) -> Bool {
    if left.word0 != right.word0 { return left.word0 < right.word0 }
    if left.word1 != right.word1 { return left.word1 < right.word1 }
    if left.word2 != right.word2 { return left.word2 < right.word2 }
    guard let leftBytes = left.overflow, let rightBytes = right.overflow else { return false }
    return leftBytes.lexicographicallyPrecedes(rightBytes)
  }
}

extension StoreKey: ExpressibleByStringInterpolation {
  /// Makes a key of the UTF-8 of a string literal or interpolation.
  ///
  /// - Parameter value: The text.
  public init(stringLiteral value: String) {
    self.init(value)
  }
}

extension StoreKey: CustomStringConvertible {
  /// The key for people to read: its text in quotes, or its bytes in hexadecimal where they are not UTF-8.
  public var description: String {
    string.map { $0.debugDescription } ?? "0x" + Hexadecimal.text(of: bytes)
  }
}
