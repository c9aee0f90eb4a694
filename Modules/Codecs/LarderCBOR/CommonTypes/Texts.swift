extension Bool: CBORConvertible {
  /// Writes `true` or `false`.
  @inlinable @inline(__always)
  public func write(to writer: inout CBORWriter) {
    writer.put(self)
  }

  /// Reads `true` or `false`.
  ///
  /// - Throws: `DecodingError` where the item is neither.
  @inlinable @inline(__always)
  public init(from reader: inout CBORReader) throws {
    self = try reader.readBool()
  }
}

extension CBORReader {
  @usableFromInline
  mutating func readBool() throws -> Bool {
    let start = offset
    let head = try readUntaggedHead(Bool.self)
    guard head.major == .simple, head.information == 20 || head.information == 21 else {
      throw mismatch(Bool.self, head, at: start)
    }
    return head.information == 21
  }
}

extension CBORWriter {
  @inlinable @inline(__always)
  mutating func put(_ value: Bool) {
    reserve(1)
    putByte(value ? 0xF5 : 0xF4)
    itemCount &+= 1
  }

  @usableFromInline
  mutating func put(text: String) {
    let isDone: Void? = text.utf8.withContiguousStorageIfAvailable { putString(0x60, UnsafeRawBufferPointer($0)) }
    if isDone == nil {
      // A string of another language's, which is copied first.
      var copy = text
      copy.withUTF8 { putString(0x60, UnsafeRawBufferPointer($0)) }
    }
    itemCount &+= 1
  }

  /// Writes a key of a map.
  @inline(__always)
  mutating func put(key: String) {
    put(text: key)
    let count = key.utf8.count
    noteKey(next - count, count: count)
  }
}

extension String: CBORConvertible {
  /// Writes the text in UTF-8.
  @inlinable @inline(__always)
  public func write(to writer: inout CBORWriter) {
    writer.put(text: self)
  }

  /// Reads text, of whatever lengths and chunks.
  ///
  /// - Throws: `DecodingError` where the item is none, or not UTF-8.
  @inlinable @inline(__always)
  public init(from reader: inout CBORReader) throws {
    self = try reader.readText()
  }
}
