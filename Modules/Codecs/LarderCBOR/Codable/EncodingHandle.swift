/// The encoder of a level, which is also its container for a single value.
struct EncodingHandle: BitwiseCopyable {
  let state: EncodingState
  let index: Int
  let id: Int

  /// The state that writes the level, for a value.
  @inline(__always)
  func reach<Value>(for value: Value) throws -> EncodingState {
    if state.topID == id || state.topContainerID == id { return state }
    do {
      return try state.reach(self)
    } catch let error as EncodingError {
      throw error.naming(value)
    }
  }

  /// The writer for a value, which stands where the level goes on.
  @inline(__always)
  func writer<Value>(for value: Value) throws -> UnsafeMutablePointer<CBORWriter> {
    // The level is the innermost one only while there is a writer.
    if state.topID == id || state.topContainerID == id { return state.writer.unsafelyUnwrapped }
    return try writerElsewhere(for: value)
  }

  @inline(never)
  private func writerElsewhere(for value: Any) throws -> UnsafeMutablePointer<CBORWriter> {
    do {
      guard let writer = try state.reach(self).writer else { throw EncodingHandle.finished(value) }
      return writer
    } catch let error as EncodingError {
      throw error.naming(value)
    }
  }

  @inline(never)
  static func finished(_ value: Any) -> EncodingError {
    EncodingError.invalidValue(
      value, EncodingError.Context(codingPath: [], debugDescription: "The container was finished before."))
  }
}

extension EncodingHandle: Encoder {
  var codingPath: [any CodingKey] { state.path(to: self) }

  var userInfo: [CodingUserInfoKey: Any] { state.writer?.pointee.userInfo ?? [:] }

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
  mutating func encodeNil() throws { try writer(for: ()).pointee.writeNull() }
  mutating func encode<Value: Encodable>(_ value: Value) throws { try reach(for: value).encodeItem(value) }
  mutating func encode(_ value: Bool) throws { try writer(for: value).pointee.put(value) }
  mutating func encode(_ value: String) throws { try writer(for: value).pointee.put(text: value) }
  mutating func encode(_ value: Double) throws { try writer(for: value).pointee.putFloat(value) }
  mutating func encode(_ value: Float) throws { try writer(for: value).pointee.putFloat(value) }
  mutating func encode(_ value: Int) throws { try writer(for: value).pointee.putInteger(Int64(value)) }
  mutating func encode(_ value: Int8) throws { try writer(for: value).pointee.putInteger(Int64(value)) }
  mutating func encode(_ value: Int16) throws { try writer(for: value).pointee.putInteger(Int64(value)) }
  mutating func encode(_ value: Int32) throws { try writer(for: value).pointee.putInteger(Int64(value)) }
  mutating func encode(_ value: Int64) throws { try writer(for: value).pointee.putInteger(value) }
  mutating func encode(_ value: UInt) throws { try writer(for: value).pointee.putInteger(UInt64(value)) }
  mutating func encode(_ value: UInt8) throws { try writer(for: value).pointee.putInteger(UInt64(value)) }
  mutating func encode(_ value: UInt16) throws { try writer(for: value).pointee.putInteger(UInt64(value)) }
  mutating func encode(_ value: UInt32) throws { try writer(for: value).pointee.putInteger(UInt64(value)) }
  mutating func encode(_ value: UInt64) throws { try writer(for: value).pointee.putInteger(value) }
  mutating func encode(_ value: Int128) throws { try writer(for: value).pointee.put(value) }
  mutating func encode(_ value: UInt128) throws { try writer(for: value).pointee.put(value) }
}
