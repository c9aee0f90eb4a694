public import Foundation

/// The key of an entry, a byte string that is ordered byte by byte.
///
/// You can create a key from a string literal or interpolation, from a `String`, from bytes, from an integer or a
/// `UUID` in a form that keeps their order, or from several components
/// (``init(components:)-(KeyComponentConvertible...)``).
///
/// ```swift
/// let key: StoreKey = "user:\(id)"
/// ```
///
/// Keys consist of bytes, not characters. The composed and the decomposed "é" are two keys, and so are "A" and "a".
/// NUL, "/", "..", 0x80 and emoji have no special meaning.
///
/// A store accepts keys of 1 to 511 bytes (``maximumLength``, the limit of LMDB). A `StoreKey` itself may be empty or
/// longer, for example as a bound of a ``KeyRange``. Every operation that takes a key rejects such a key with
/// ``StoreError/Code/invalidKey``.
///
/// Keys of up to 23 bytes are stored inline, so creating, copying and comparing them does not allocate memory.
public struct StoreKey: Sendable {
  /// The maximum length of the key of an entry, in bytes.
  public static let maximumLength = 511

  /// The maximum length of a key that is stored inline, in bytes.
  private static let inlineCapacity = 23

  /// The last byte of ``word2`` for a key that does not fit inline, which is greater than any inline length.
  private static let overflowMark: UInt64 = 24

  // The first 23 bytes, padded with zeros, as three big-endian words. The last byte is the length or the overflow mark.
  // Compared as integers, the words order keys as their bytes do, because the padding sorts first, and if a padded zero
  // meets a real one, the length decides. A key has exactly one representation, so equal keys have equal words.
  @usableFromInline var word0: UInt64
  @usableFromInline var word1: UInt64
  @usableFromInline var word2: UInt64

  /// All bytes of a key that does not fit inline, otherwise `nil`.
  @usableFromInline var overflow: [UInt8]?

  /// Creates a key with a copy of the bytes in a buffer.
  ///
  /// - Parameter buffer: The bytes. There may be any number of them.
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

  /// Creates a key from bytes.
  ///
  /// ```swift
  /// let key = StoreKey(bytes: SHA256.hash(data: photo))  // 32 bytes
  /// ```
  ///
  /// - Parameter bytes: The bytes. Of a slice, for example of `Data`, the key contains only the bytes in the slice.
  @inlinable
  public init(bytes: some Sequence<UInt8>) {
    let key = bytes.withContiguousStorageIfAvailable { StoreKey(copying: UnsafeRawBufferPointer($0)) }
    self = key ?? Array(bytes).withUnsafeBytes { StoreKey(copying: $0) }
  }

  /// Creates a key from the UTF-8 of a string.
  ///
  /// - Parameter string: The string. It is not normalized.
  public init(_ string: String) {
    var string = string
    self = string.withUTF8 { StoreKey(copying: UnsafeRawBufferPointer($0)) }
  }

  /// Creates a key from the UTF-8 of a part of a string.
  ///
  /// - Parameter string: The text. It is not normalized.
  public init(_ string: Substring) {
    self.init(String(string))
  }

  /// Creates a key of 8 bytes from an integer, so keys have the order of the integers.
  ///
  /// The bytes are big-endian, with the sign bit flipped.
  ///
  /// ```swift
  /// let keys = [StoreKey(integer: Int64(-1)), StoreKey(integer: Int64(42))]  // in the order of the numbers
  /// ```
  ///
  /// - Parameter integer: The integer.
  public init(integer: Int64) {
    word0 = UInt64(bitPattern: integer) ^ (1 << 63)
    word1 = 0
    word2 = 8
    overflow = nil
  }

  /// Creates a key of 8 bytes from an integer, so keys have the order of the integers.
  ///
  /// The bytes are big-endian, with the sign bit flipped.
  ///
  /// - Parameter integer: The integer.
  public init(integer: Int) {
    self.init(integer: Int64(integer))
  }

  /// The number of bytes.
  @inlinable
  public var count: Int {
    overflow?.count ?? Int(word2 & 0xFF)
  }

  /// A Boolean value that indicates whether the key has no bytes.
  public var isEmpty: Bool {
    word2 & 0xFF == 0
  }

  /// Calls a closure with the bytes of the key, without copying a long key.
  ///
  /// - Parameter body: A closure that receives the bytes. The span is valid only during the call.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws.
  @inlinable
  public func withBytes<Result, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withUnsafeBytes { (buffer: UnsafeRawBufferPointer) throws(Failure) -> Result in
      try body(buffer.bytes)
    }
  }

  /// Calls a closure with a pointer to the bytes of the key, without copying a long key.
  ///
  /// - Parameter body: A closure that receives the bytes. The pointer is valid only during the call.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws.
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

  /// The bytes of the key, as a new array.
  public var bytes: [UInt8] {
    overflow ?? withUnsafeBytes { Array($0) }
  }

  /// The key as text, or `nil` if its bytes are not well-formed UTF-8.
  public var string: String? {
    withUnsafeBytes { String(validating: $0, as: UTF8.self) }
  }

  /// The integer from which ``init(integer:)-(Int64)`` created the key, or `nil` if the key does not have 8 bytes.
  public var integer: Int64? {
    count == 8 ? Int64(bitPattern: word0 ^ (1 << 63)) : nil
  }

  /// Returns whether the key begins with the bytes of another key.
  ///
  /// ```swift
  /// let isUser = key.hasPrefix("user:")
  /// ```
  ///
  /// - Parameter prefix: The prefix. An empty key is a prefix of every key.
  public func hasPrefix(_ prefix: StoreKey) -> Bool {
    withUnsafeBytes { bytes in prefix.withUnsafeBytes { bytes.starts(with: $0) } }
  }

  /// Returns the key that has the bytes of this key, followed by those of another one.
  ///
  /// ```swift
  /// let key = StoreKey("user:").appending(StoreKey(userID))  // 16 bytes of a UUID after the text
  /// ```
  ///
  /// - Parameter other: The key whose bytes follow.
  public func appending(_ other: StoreKey) -> StoreKey {
    withUnsafeBytes { first in
      other.withUnsafeBytes { second in
        // On the stack, because layers do this in each read.
        withUnsafeTemporaryAllocation(byteCount: first.count + second.count, alignment: 1) { buffer in
          buffer.copyMemory(from: first)
          UnsafeMutableRawBufferPointer(rebasing: buffer[first.count...]).copyMemory(from: second)
          return StoreKey(copying: UnsafeRawBufferPointer(buffer))
        }
      }
    }
  }

  /// The direct successor of this key, with no other key between them.
  ///
  /// It is one NUL byte longer, so the successor of a key of ``maximumLength`` can only be the bound of a range.
  public var successor: StoreKey {
    StoreKey(bytes: bytes + [0])
  }
}

extension StoreKey: Equatable {
  /// Returns whether two keys have the same bytes.
  public static func == (left: StoreKey, right: StoreKey) -> Bool {
    left.word0 == right.word0 && left.word1 == right.word1 && left.word2 == right.word2
      && left.overflow == right.overflow
  }
}

extension StoreKey: Hashable {
  /// Hashes the bytes of the key.
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
  /// Returns whether a key precedes another, compared as unsigned bytes.
  ///
  /// A prefix of a key precedes the key.
  public static func < (left: StoreKey, right: StoreKey) -> Bool {
    if left.word0 != right.word0 { return left.word0 < right.word0 }
    if left.word1 != right.word1 { return left.word1 < right.word1 }
    if left.word2 != right.word2 { return left.word2 < right.word2 }
    guard let leftBytes = left.overflow, let rightBytes = right.overflow else { return false }
    return leftBytes.lexicographicallyPrecedes(rightBytes)
  }
}

extension StoreKey: ExpressibleByStringInterpolation {
  /// Creates a key from the UTF-8 of a string literal or interpolation.
  ///
  /// - Parameter value: The text.
  public init(stringLiteral value: String) {
    self.init(value)
  }
}

extension StoreKey: CustomStringConvertible {
  /// The key as text for people: its text in quotes, or its bytes in hexadecimal if they are not UTF-8.
  public var description: String {
    string.map { $0.debugDescription } ?? "0x" + hexadecimal
  }
}

extension StoreKey {
  /// Creates a key from its bytes in hexadecimal, or returns `nil` if the text is not pairs of hexadecimal digits.
  ///
  /// ```swift
  /// guard let key = StoreKey(hexadecimal: "00ff17") else { throw InvalidArgument() }
  /// ```
  ///
  /// - Parameter hexadecimal: Two digits for each byte, in upper or lower case.
  public init?(hexadecimal: String) {
    guard let bytes = Hexadecimal.bytes(of: hexadecimal.utf8) else { return nil }
    self.init(bytes: bytes)
  }

  /// The bytes in hexadecimal, with two lower-case digits for each byte.
  public var hexadecimal: String { Hexadecimal.text(of: bytes) }
}

extension StoreKey {
  /// Creates a key from the 16 bytes of a UUID.
  ///
  /// ```swift
  /// let id = UUID()
  /// try await store.setValue(user, forKey: StoreKey(id))
  /// ```
  ///
  /// - Parameter uuid: The UUID. The bytes keep their order, so UUIDs of version 7 sort by time.
  public init(_ uuid: UUID) {
    self = Swift.withUnsafeBytes(of: uuid.uuid) { StoreKey(copying: $0) }
  }

  /// The UUID that the key was created from, or `nil` if the key does not have 16 bytes.
  public var uuid: UUID? {
    guard count == 16 else { return nil }
    return withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
  }
}
