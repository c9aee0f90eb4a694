/// The elements of an array.
struct UnkeyedCBORDecodingContainer: UnkeyedDecodingContainer {
  private let handle: DecodingHandle
  private var next: UnsafeRawPointer

  /// How many elements follow; -1 where the length is indefinite.
  private var remaining: Int

  private(set) var currentIndex = 0

  init(_ handle: DecodingHandle) throws {
    self.handle = handle
    let level = try handle.state.level(handle)
    guard let reader = handle.state.reader else { throw DecodingHandle.finished() }
    reader.pointee.next = level.pointee.start
    reader.pointee.depth = level.pointee.depth
    remaining = try reader.pointee.openArray()
    next = reader.pointee.next
    level.pointee.kind = .array
    level.pointee.remaining = remaining
    level.pointee.next = next
  }

  var codingPath: [any CodingKey] { handle.codingPath }

  var count: Int? { remaining < 0 ? nil : currentIndex + remaining }

  var isAtEnd: Bool {
    if remaining >= 0 { return remaining == 0 }
    guard handle.state.isLevel(handle), let reader = handle.state.reader else { return true }
    return next >= reader.pointee.end || next.load(as: UInt8.self) == 0xFF
  }

  /// Reads the next element.
  @inline(__always)
  private mutating func read<Value>(
    _ type: Any.Type, _ body: (UnsafeMutablePointer<CBORReader>) throws -> Value
  ) throws -> Value {
    let level = try handle.state.level(handle)
    guard let reader = handle.state.reader else { throw DecodingHandle.finished() }
    guard !isAtEnd else {
      let context = DecodingError.Context(
        codingPath: codingPath + [CBORPathKey(intValue: currentIndex)],
        debugDescription: "The array has no more elements.")
      throw DecodingError.valueNotFound(type, context)
    }
    reader.pointee.next = next
    reader.pointee.depth = level.pointee.depth + 1
    let value = try body(reader)
    advance(reader)
    return value
  }

  private mutating func advance(_ reader: UnsafeMutablePointer<CBORReader>) {
    next = reader.pointee.next
    currentIndex += 1
    if remaining > 0 { remaining -= 1 }
    let level = handle.state.levels + handle.index
    if next > level.pointee.next {
      level.pointee.next = next
      level.pointee.remaining = remaining
    }
  }

  mutating func decodeNil() throws -> Bool {
    _ = try handle.state.level(handle)
    guard !isAtEnd, let reader = handle.state.reader else {
      return try read(Never?.self) { _ in false }
    }
    reader.pointee.next = next
    guard reader.pointee.readNull() else { return false }
    advance(reader)
    return true
  }

  mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    let state = handle.state
    return try read(type) { _ in try state.decode(type) }
  }

  mutating func decode(_ type: Bool.Type) throws -> Bool { try read(type) { try $0.pointee.readBool() } }
  mutating func decode(_ type: String.Type) throws -> String { try read(type) { try $0.pointee.readText() } }
  mutating func decode(_ type: Double.Type) throws -> Double {
    try read(type) { try $0.pointee.readFloat(Double.self) }
  }
  mutating func decode(_ type: Float.Type) throws -> Float { try read(type) { try Float(from: &$0.pointee) } }
  mutating func decode(_ type: Int.Type) throws -> Int { try read(type) { try $0.pointee.readInteger(Int.self) } }
  mutating func decode(_ type: Int8.Type) throws -> Int8 { try read(type) { try $0.pointee.readInteger(Int8.self) } }
  mutating func decode(_ type: Int16.Type) throws -> Int16 { try read(type) { try $0.pointee.readInteger(Int16.self) } }
  mutating func decode(_ type: Int32.Type) throws -> Int32 { try read(type) { try $0.pointee.readInteger(Int32.self) } }
  mutating func decode(_ type: Int64.Type) throws -> Int64 { try read(type) { try $0.pointee.readInteger(Int64.self) } }
  mutating func decode(_ type: UInt.Type) throws -> UInt { try read(type) { try $0.pointee.readInteger(UInt.self) } }
  mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try read(type) { try $0.pointee.readInteger(UInt8.self) } }
  mutating func decode(_ type: UInt16.Type) throws -> UInt16 {
    try read(type) { try $0.pointee.readInteger(UInt16.self) }
  }
  mutating func decode(_ type: UInt32.Type) throws -> UInt32 {
    try read(type) { try $0.pointee.readInteger(UInt32.self) }
  }
  mutating func decode(_ type: UInt64.Type) throws -> UInt64 {
    try read(type) { try $0.pointee.readInteger(UInt64.self) }
  }
  mutating func decode(_ type: Int128.Type) throws -> Int128 { try read(type) { try Int128(from: &$0.pointee) } }
  mutating func decode(_ type: UInt128.Type) throws -> UInt128 { try read(type) { try UInt128(from: &$0.pointee) } }

  /// Opens a level for the next element.
  private mutating func nest(_ type: Any.Type) throws -> DecodingHandle {
    let place = next
    try read(type) { try $0.pointee.skip() }
    return handle.state.open(at: place, depth: try handle.state.level(handle).pointee.depth + 1)
  }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type
  ) throws -> KeyedDecodingContainer<NestedKey> {
    try nest([String: Any].self).container(keyedBy: type)
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try nest([Any].self).unkeyedContainer()
  }

  mutating func superDecoder() throws -> any Decoder { try nest((any Decoder).self) }
}
