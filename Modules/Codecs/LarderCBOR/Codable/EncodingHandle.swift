/// The encoder of a level, which is also its container for a single value.
struct EncodingHandle: BitwiseCopyable {
  let state: EncodingState
  let index: Int
  let id: Int

  /// The state that writes the level.
  @inline(__always)
  func reach() throws -> EncodingState {
    if state.topID == id || state.topContainerID == id { return state }
    return try state.reach(self)
  }

  /// The writer, which stands where the level goes on.
  @inline(__always)
  func writer() throws -> UnsafeMutablePointer<CBORWriter> {
    // The level is the innermost one only while there is a writer.
    if state.topID == id || state.topContainerID == id { return state.writer.unsafelyUnwrapped }
    guard let writer = try state.reach(self).writer else { throw EncodingHandle.finished(()) }
    return writer
  }

  /// A handle to which nothing can be written.
  static func dead(_ state: EncodingState) -> EncodingHandle { EncodingHandle(state: state, index: 0, id: -1) }

  @inline(never)
  static func finished(_ value: Any) -> EncodingError {
    EncodingError.invalidValue(
      value,
      EncodingError.Context(
        codingPath: [],
        debugDescription: "The container was finished before, or the encoder has another one, or nests too deep."))
  }
}

extension EncodingHandle: Encoder {
  var codingPath: [any CodingKey] { state.path(to: self) }

  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    let handle = state.container(.map, self) ?? .dead(state)
    return handle.state.keyedContainer(handle, keyedBy: type)
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    UnkeyedCBOREncodingContainer(handle: state.container(.array, self) ?? .dead(state))
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

extension EncodingHandle: SingleValueEncodingContainer {
  mutating func encodeNil() throws { try writer().pointee.writeNull() }
  mutating func encode<Value: Encodable>(_ value: Value) throws { try reach().encodeItem(value) }
  mutating func encode(_ value: Bool) throws { try writer().pointee.put(value) }
  mutating func encode(_ value: String) throws { try writer().pointee.put(text: value) }
  mutating func encode(_ value: Double) throws { try writer().pointee.putFloat(value) }
  mutating func encode(_ value: Float) throws { try writer().pointee.putFloat(value) }
  mutating func encode(_ value: Int) throws { try writer().pointee.putInteger(Int64(value)) }
  mutating func encode(_ value: Int8) throws { try writer().pointee.putInteger(Int64(value)) }
  mutating func encode(_ value: Int16) throws { try writer().pointee.putInteger(Int64(value)) }
  mutating func encode(_ value: Int32) throws { try writer().pointee.putInteger(Int64(value)) }
  mutating func encode(_ value: Int64) throws { try writer().pointee.putInteger(value) }
  mutating func encode(_ value: UInt) throws { try writer().pointee.putInteger(UInt64(value)) }
  mutating func encode(_ value: UInt8) throws { try writer().pointee.putInteger(UInt64(value)) }
  mutating func encode(_ value: UInt16) throws { try writer().pointee.putInteger(UInt64(value)) }
  mutating func encode(_ value: UInt32) throws { try writer().pointee.putInteger(UInt64(value)) }
  mutating func encode(_ value: UInt64) throws { try writer().pointee.putInteger(value) }
  mutating func encode(_ value: Int128) throws { try writer().pointee.put(value) }
  mutating func encode(_ value: UInt128) throws { try writer().pointee.put(value) }
}
