import Foundation

/// The decoder of a level, which is also its single-value container.
struct DecodingHandle: BitwiseCopyable {
  let state: DecodingState
  let index: Int
  let id: Int

  @inline(never)
  static func finished() -> DecodingError {
    DecodingError.dataCorrupted(
      DecodingError.Context(codingPath: [], debugDescription: "the decoder is already finished"))
  }
}

extension DecodingHandle: Decoder {
  var codingPath: [any CodingKey] { state.path(to: self) }

  /// Empty once the value of this decoder is finished, because its state may be that of another value by then.
  var userInfo: [CodingUserInfoKey: Any] { state.isLevel(self) ? state.reader?.pointee.userInfo ?? [:] : [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    try state.keyedContainer(self, keyedBy: type)
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    if let first = try state.firstByte(self), first &>> 5 != 4, let own = try state.ownForm(self, as: .array) {
      return try UnkeyedCBORDecodingContainer(own)
    }
    return try UnkeyedCBORDecodingContainer(self)
  }

  func singleValueContainer() throws -> any SingleValueDecodingContainer { self }
}

extension DecodingHandle: SingleValueDecodingContainer {
  func decodeNil() -> Bool {
    do {
      let level = try state.level(self)
      guard let reader = state.reader else { return false }
      reader.pointee.next = level.pointee.start
      guard reader.pointee.readNull() else { return false }
      level.pointee.end = reader.pointee.next
      return true
    } catch {
      // This method cannot throw. The next call that decodes the value throws the error.
      return false
    }
  }

  /// Reads the whole value of the level.
  @inline(__always)
  private func read<Value>(_ body: (UnsafeMutablePointer<CBORReader>) throws -> Value) throws -> Value {
    let level = try state.level(self)
    guard let reader = state.reader else { throw DecodingHandle.finished() }
    reader.pointee.next = level.pointee.start
    reader.pointee.depth = level.pointee.depth
    let value = try body(reader)
    // The levels may have moved.
    state.levels[index].end = reader.pointee.next
    return value
  }

  @inline(__always)
  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    try read { reader in
      // The call may come from `Date(from: decoder)`. A field or an element that is a date is not read as a number.
      if type == Double.self, reader.pointee.isNextADate {
        return unsafeBitCast(try Date(from: &reader.pointee).timeIntervalSinceReferenceDate, to: type)
      }
      return try state.decode(type, with: reader)
    }
  }

  // The compiler prefers the default implementations of the standard library to the generic method above.

  func decode(_ type: Int128.Type) throws -> Int128 { try read { try Int128(from: &$0.pointee) } }
  func decode(_ type: UInt128.Type) throws -> UInt128 { try read { try UInt128(from: &$0.pointee) } }
}

/// The elements of an array.
struct UnkeyedCBORDecodingContainer: UnkeyedDecodingContainer {
  private let handle: DecodingHandle
  private var next: UnsafeRawPointer

  /// The number of remaining elements, or -1 if the length is indefinite.
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
        debugDescription: "the array has no more elements")
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

  @inline(__always)
  mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    let state = handle.state
    return try read(type) { try state.decode(type, with: $0) }
  }

  // The compiler prefers the default implementations of the standard library to the generic method above.

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

/// A position with one value, and how far the value has been read.
struct DecodingLevel {
  /// An ID that no other level of the same state has.
  let id: Int

  /// The ID by which its keyed container refers to it, or 0 if it doesn't have one.
  var containerID = 0

  /// The first byte of the value.
  let start: UnsafeRawPointer

  /// The nesting depth of the position.
  let depth: Int

  /// The container that was requested at the position.
  var kind = Kind.single

  /// The end of the value, once it is known.
  var end: UnsafeRawPointer?

  /// The fields, if the value is a map.
  var map: MapCursor

  /// The next element, if the value is an array.
  var next: UnsafeRawPointer

  /// The number of remaining elements, or -1 if the length is indefinite.
  var remaining = 0

  enum Kind {
    /// No container yet, or a single value.
    case single
    case map
    case array
  }

  init(id: Int, start: UnsafeRawPointer, depth: Int) {
    self.id = id
    self.start = start
    self.depth = depth
    next = start
    map = MapCursor(start: start, count: 0)
  }
}
