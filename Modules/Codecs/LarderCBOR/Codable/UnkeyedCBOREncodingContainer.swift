/// The elements of an array.
struct UnkeyedCBOREncodingContainer: UnkeyedEncodingContainer {
  let handle: EncodingHandle

  var codingPath: [any CodingKey] { handle.codingPath }

  var count: Int { handle.state.itemCount(handle) }

  mutating func encodeNil() throws { try handle.writer(for: ()).pointee.writeNull() }

  mutating func encode<Value: Encodable>(_ value: Value) throws { try handle.reach(for: value).encodeItem(value) }

  mutating func encode(_ value: Bool) throws { try handle.writer(for: value).pointee.put(value) }
  mutating func encode(_ value: String) throws { try handle.writer(for: value).pointee.put(text: value) }
  mutating func encode(_ value: Double) throws { try handle.writer(for: value).pointee.putFloat(value) }
  mutating func encode(_ value: Float) throws { try handle.writer(for: value).pointee.putFloat(value) }
  mutating func encode(_ value: Int) throws { try handle.writer(for: value).pointee.putInteger(Int64(value)) }
  mutating func encode(_ value: Int8) throws { try handle.writer(for: value).pointee.putInteger(Int64(value)) }
  mutating func encode(_ value: Int16) throws { try handle.writer(for: value).pointee.putInteger(Int64(value)) }
  mutating func encode(_ value: Int32) throws { try handle.writer(for: value).pointee.putInteger(Int64(value)) }
  mutating func encode(_ value: Int64) throws { try handle.writer(for: value).pointee.putInteger(value) }
  mutating func encode(_ value: UInt) throws { try handle.writer(for: value).pointee.putInteger(UInt64(value)) }
  mutating func encode(_ value: UInt8) throws { try handle.writer(for: value).pointee.putInteger(UInt64(value)) }
  mutating func encode(_ value: UInt16) throws { try handle.writer(for: value).pointee.putInteger(UInt64(value)) }
  mutating func encode(_ value: UInt32) throws { try handle.writer(for: value).pointee.putInteger(UInt64(value)) }
  mutating func encode(_ value: UInt64) throws { try handle.writer(for: value).pointee.putInteger(value) }
  mutating func encode(_ value: Int128) throws { try handle.writer(for: value).pointee.put(value) }
  mutating func encode(_ value: UInt128) throws { try handle.writer(for: value).pointee.put(value) }

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
      return handle.state.refuse(error)
    }
  }
}
