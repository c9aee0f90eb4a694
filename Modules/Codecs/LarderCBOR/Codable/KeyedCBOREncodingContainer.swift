/// The fields of a map.
struct KeyedCBOREncodingContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let handle: EncodingHandle

  var codingPath: [any CodingKey] { handle.codingPath }

  /// Writes a key; its value must follow.
  @inline(__always)
  private func writer<Value>(after key: Key, for value: Value) throws -> UnsafeMutablePointer<CBORWriter> {
    let writer = try handle.writer(for: value)
    writer.pointee.put(key: key.stringValue)
    return writer
  }

  mutating func encodeNil(forKey key: Key) throws { try writer(after: key, for: ()).pointee.writeNull() }

  mutating func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
    try handle.reach(for: value).encodeItem(value, after: key.stringValue)
  }

  mutating func encode(_ value: Bool, forKey key: Key) throws { try writer(after: key, for: value).pointee.put(value) }
  mutating func encode(_ value: String, forKey key: Key) throws {
    try writer(after: key, for: value).pointee.put(text: value)
  }
  mutating func encode(_ value: Double, forKey key: Key) throws {
    try writer(after: key, for: value).pointee.putFloat(value)
  }
  mutating func encode(_ value: Float, forKey key: Key) throws {
    try writer(after: key, for: value).pointee.putFloat(value)
  }
  mutating func encode(_ value: Int, forKey key: Key) throws {
    try writer(after: key, for: value).pointee.putInteger(Int64(value))
  }
  mutating func encode(_ value: Int8, forKey key: Key) throws {
    try writer(after: key, for: value).pointee.putInteger(Int64(value))
  }
  mutating func encode(_ value: Int16, forKey key: Key) throws {
    try writer(after: key, for: value).pointee.putInteger(Int64(value))
  }
  mutating func encode(_ value: Int32, forKey key: Key) throws {
    try writer(after: key, for: value).pointee.putInteger(Int64(value))
  }
  mutating func encode(_ value: Int64, forKey key: Key) throws {
    try writer(after: key, for: value).pointee.putInteger(value)
  }
  mutating func encode(_ value: UInt, forKey key: Key) throws {
    try writer(after: key, for: value).pointee.putInteger(UInt64(value))
  }
  mutating func encode(_ value: UInt8, forKey key: Key) throws {
    try writer(after: key, for: value).pointee.putInteger(UInt64(value))
  }
  mutating func encode(_ value: UInt16, forKey key: Key) throws {
    try writer(after: key, for: value).pointee.putInteger(UInt64(value))
  }
  mutating func encode(_ value: UInt32, forKey key: Key) throws {
    try writer(after: key, for: value).pointee.putInteger(UInt64(value))
  }
  mutating func encode(_ value: UInt64, forKey key: Key) throws {
    try writer(after: key, for: value).pointee.putInteger(value)
  }
  mutating func encode(_ value: Int128, forKey key: Key) throws {
    try writer(after: key, for: value).pointee.put(value)
  }
  mutating func encode(_ value: UInt128, forKey key: Key) throws {
    try writer(after: key, for: value).pointee.put(value)
  }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy keyType: NestedKey.Type, forKey key: Key
  ) -> KeyedEncodingContainer<NestedKey> {
    let handle = nest(.map, forKey: key)
    return handle.state.keyedContainer(handle, keyedBy: keyType)
  }

  mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    UnkeyedCBOREncodingContainer(handle: nest(.array, forKey: key))
  }

  mutating func superEncoder() -> any Encoder {
    nest(.single, named: "super")
  }

  mutating func superEncoder(forKey key: Key) -> any Encoder {
    nest(.single, forKey: key)
  }

  private func nest(_ kind: EncodingLevel.Kind, forKey key: Key) -> EncodingHandle {
    nest(kind, named: key.stringValue)
  }

  private func nest(_ kind: EncodingLevel.Kind, named key: String) -> EncodingHandle {
    do {
      let state = try handle.reach(for: ())
      state.writer?.pointee.put(key: key)
      return try state.nest(kind)
    } catch {
      return handle.state.refuse(error)
    }
  }
}
