/// A collection or optional that decodes its elements.
protocol DecodableElements {
  init(elementsFrom state: DecodingState) throws
}

extension DecodingState {
  /// Reads a collection or optional whose type is known to be `Elements`.
  // It stands in this file so that a linker that leaves out files of an archive to which nothing refers includes this
  // one.
  func decodeElements<Value, Elements: DecodableElements>(
    _ type: Value.Type, as elements: Elements.Type
  ) throws -> Value {
    unsafeBitCast(try Elements(elementsFrom: self), to: type)
  }
}

extension Optional: DecodableElements where Wrapped: Decodable {
  init(elementsFrom state: DecodingState) throws {
    guard let reader = state.reader else { throw DecodingHandle.finished() }
    self = reader.pointee.readNull() ? nil : try state.decode(Wrapped.self)
  }
}

extension Array: DecodableElements where Element: Decodable {
  init(elementsFrom state: DecodingState) throws {
    guard let reader = state.reader else { throw DecodingHandle.finished() }
    if try reader.pointee.isNextAnArrayOfBytes() {
      self = try reader.pointee.readBytesAsArray { try DecodingState.decode(Self.self, with: &$0) }
      return
    }
    self = []
    var remaining = try reader.pointee.openArray()
    if remaining > 0 { reserveCapacity(reader.pointee.capacity(remaining, ofStride: MemoryLayout<Element>.stride)) }
    while try reader.pointee.hasElement(&remaining) { append(try state.decode(Element.self)) }
    reader.pointee.depth -= 1
  }
}

extension Set: DecodableElements where Element: Decodable {
  init(elementsFrom state: DecodingState) throws {
    self.init(try [Element](elementsFrom: state))
  }
}

extension Dictionary: DecodableElements where Key: Decodable, Value: Decodable {
  init(elementsFrom state: DecodingState) throws {
    guard let reader = state.reader else { throw DecodingHandle.finished() }
    self = [:]
    let keys = DictionaryKeys(of: Key.self)
    var remaining = try reader.pointee.openDictionary(keys)
    while try reader.pointee.hasElement(&remaining) {
      let start = reader.pointee.offset
      let key = try reader.pointee.readKey(Key.self, keys) ?? state.decode(Key.self)
      if updateValue(try state.decode(Value.self), forKey: key) != nil {
        throw reader.pointee.corrupted("the map contains this key twice", at: start)
      }
    }
    reader.pointee.depth -= 1
  }
}
