/// A collection or optional of values that decode themselves; those of ``CBORConvertible`` values read themselves.
protocol DecodableElements {
  init(elementsFrom state: DecodingState) throws
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
    self = []
    var remaining = try reader.pointee.openArray()
    if remaining > 0 { reserveCapacity(reader.pointee.capacity(remaining, ofStride: MemoryLayout<Element>.stride)) }
    while try reader.pointee.hasElement(&remaining) { append(try state.decode(Element.self)) }
    reader.pointee.depth -= 1
  }
}

extension Set: DecodableElements where Element: Decodable {
  init(elementsFrom state: DecodingState) throws {
    guard let reader = state.reader else { throw DecodingHandle.finished() }
    self = []
    var remaining = try reader.pointee.openArray()
    while try reader.pointee.hasElement(&remaining) {
      let start = reader.pointee.offset
      guard insert(try state.decode(Element.self)).inserted else {
        throw reader.pointee.corrupted("The set has this element twice.", at: start)
      }
    }
    reader.pointee.depth -= 1
  }
}

extension Dictionary: DecodableElements where Key: Decodable, Value: Decodable {
  init(elementsFrom state: DecodingState) throws {
    guard let reader = state.reader else { throw DecodingHandle.finished() }
    self = [:]
    var remaining = try reader.pointee.openPairs()
    while try reader.pointee.hasElement(&remaining) {
      let start = reader.pointee.offset
      let key = try state.decode(Key.self)
      if updateValue(try state.decode(Value.self), forKey: key) != nil {
        throw reader.pointee.corrupted("The map has this key twice.", at: start)
      }
    }
    reader.pointee.depth -= 1
  }
}
