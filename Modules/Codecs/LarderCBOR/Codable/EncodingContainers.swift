/// The encoder of a level, which is also its single-value container.
struct EncodingHandle: BitwiseCopyable {
  let state: EncodingState
  let index: Int
  let id: Int

  /// Returns the state that writes the level.
  ///
  /// Errors name the value.
  @inline(__always)
  func reach<Value>(for value: Value) throws -> EncodingState {
    if state.topID == id || state.topContainerID == id { return state }
    do {
      return try state.reach(self)
    } catch let error as EncodingError {
      throw error.naming(value)
    }
  }

  /// Returns the writer, positioned at the end of the level.
  ///
  /// Errors name the value.
  @inline(__always)
  func writer<Value>(for value: Value) throws -> UnsafeMutablePointer<CBORWriter> {
    // The level is the innermost one only while there is a writer.
    if state.topID == id || state.topContainerID == id { return state.writer.unsafelyUnwrapped }
    return try writerElsewhere(for: value)
  }

  @inline(never)
  private func writerElsewhere(for value: Any) throws -> UnsafeMutablePointer<CBORWriter> {
    guard let writer = try reach(for: value).writer else { throw EncodingHandle.finished(value) }
    return writer
  }

  @inline(never)
  static func finished(_ value: Any) -> EncodingError {
    EncodingError.invalidValue(
      value, EncodingError.Context(codingPath: [], debugDescription: "the container is already finished"))
  }
}

extension EncodingHandle: Encoder {
  var codingPath: [any CodingKey] { state.path(to: self) }

  /// Empty once the value of this encoder is finished, because its state may be that of another value by then.
  var userInfo: [CodingUserInfoKey: Any] { state.isLevel(self) ? state.writer?.pointee.userInfo ?? [:] : [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    let handle = state.container(.map, self)
    return handle.state.keyedContainer(handle, keyedBy: type)
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    UnkeyedCBOREncodingContainer(handle: state.container(.array, self))
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

extension EncodingHandle: SingleValueEncodingContainer {
  mutating func encodeNil() throws { try writer(for: ()).pointee.putNull() }
  @inline(__always)
  mutating func encode<Value: Encodable>(_ value: Value) throws { try reach(for: value).encodeItem(value) }

  // The compiler prefers the default implementations of the standard library to the generic method above.

  mutating func encode(_ value: Int128) throws { try reach(for: value).encodeItem(value) }
  mutating func encode(_ value: UInt128) throws { try reach(for: value).encodeItem(value) }
}

/// The fields of a map.
struct KeyedCBOREncodingContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let handle: EncodingHandle

  var codingPath: [any CodingKey] { handle.codingPath }

  mutating func encodeNil(forKey key: Key) throws {
    let writer = try handle.writer(for: ())
    writer.pointee.put(key: key.stringValue)
    writer.pointee.putNull()
  }

  @inline(__always)
  mutating func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
    try handle.reach(for: value).encodeItem(value, after: key.stringValue)
  }

  // The compiler prefers the default implementations of the standard library to the generic method above.

  mutating func encode(_ value: Int128, forKey key: Key) throws {
    try handle.reach(for: value).encodeItem(value, after: key.stringValue)
  }

  mutating func encode(_ value: UInt128, forKey key: Key) throws {
    try handle.reach(for: value).encodeItem(value, after: key.stringValue)
  }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy keyType: NestedKey.Type, forKey key: Key
  ) -> KeyedEncodingContainer<NestedKey> {
    let handle = nest(.map, named: key.stringValue)
    return handle.state.keyedContainer(handle, keyedBy: keyType)
  }

  mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    UnkeyedCBOREncodingContainer(handle: nest(.array, named: key.stringValue))
  }

  mutating func superEncoder() -> any Encoder {
    nest(.single, named: "super")
  }

  mutating func superEncoder(forKey key: Key) -> any Encoder {
    nest(.single, named: key.stringValue)
  }

  private func nest(_ kind: EncodingLevel.Kind, named key: String) -> EncodingHandle {
    do {
      let state = try handle.reach(for: ())
      state.writer?.pointee.put(key: key)
      return try state.nest(kind)
    } catch {
      return handle.state.refuse(error, by: handle)
    }
  }
}

/// The elements of an array.
struct UnkeyedCBOREncodingContainer: UnkeyedEncodingContainer {
  let handle: EncodingHandle

  var codingPath: [any CodingKey] { handle.codingPath }

  var count: Int { handle.state.itemCount(handle) }

  mutating func encodeNil() throws { try handle.writer(for: ()).pointee.putNull() }

  @inline(__always)
  mutating func encode<Value: Encodable>(_ value: Value) throws { try handle.reach(for: value).encodeItem(value) }

  // The compiler prefers the default implementations of the standard library to the generic method above.

  mutating func encode(_ value: Int128) throws { try handle.reach(for: value).encodeItem(value) }
  mutating func encode(_ value: UInt128) throws { try handle.reach(for: value).encodeItem(value) }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy keyType: NestedKey.Type
  ) -> KeyedEncodingContainer<NestedKey> {
    let handle = nest(.map)
    return handle.state.keyedContainer(handle, keyedBy: keyType)
  }

  mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    UnkeyedCBOREncodingContainer(handle: nest(.array))
  }

  mutating func superEncoder() -> any Encoder { nest(.single) }

  private func nest(_ kind: EncodingLevel.Kind) -> EncodingHandle {
    do {
      return try handle.reach(for: ()).nest(kind)
    } catch {
      return handle.state.refuse(error, by: handle)
    }
  }
}

extension EncodingError {
  /// Returns the error with the value that could not be encoded, if the error does not name a value yet.
  func naming(_ value: Any) -> EncodingError {
    guard case .invalidValue(is Void, let context) = self else { return self }
    return .invalidValue(value, context)
  }
}
