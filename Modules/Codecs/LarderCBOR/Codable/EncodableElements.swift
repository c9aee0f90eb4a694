/// A collection or optional that encodes its elements.
///
/// The elements of a set and the pairs of a dictionary are sorted by the bytes of their keys, so that equal values have equal
/// bytes.
protocol EncodableElements {
  func encodeElements(with state: EncodingState) throws
}

extension EncodingState {
  /// Writes a collection or optional whose type is known to be `Elements`.
  // It stands in this file so that a linker that leaves out files of an archive to which nothing refers includes this
  // one.
  func encodeElements<Value, Elements: EncodableElements>(_ value: Value, as type: Elements.Type) throws {
    try withUnsafePointer(to: value) { value in
      try UnsafeRawPointer(value).assumingMemoryBound(to: Elements.self).pointee.encodeElements(with: self)
    }
  }
}

extension Optional: EncodableElements where Wrapped: Encodable {
  func encodeElements(with state: EncodingState) throws {
    guard let writer = state.writer else { throw EncodingHandle.finished(self as Any) }
    if let self { try state.encode(self) } else { writer.pointee.putNull() }
  }
}

extension Array: EncodableElements where Element: Encodable {
  func encodeElements(with state: EncodingState) throws {
    guard let writer = state.writer else { throw EncodingHandle.finished(self) }
    let outerCount = try writer.pointee.openCollection(0x80, count: count)
    for element in self { try state.encode(element) }
    writer.pointee.closeCollection(outerCount: outerCount)
  }
}

extension Set: EncodableElements where Element: Encodable {
  func encodeElements(with state: EncodingState) throws {
    guard let writer = state.writer else { throw EncodingHandle.finished(self) }
    let outerCount = try writer.pointee.openCollection(0x80, count: count)
    var sorter = ItemSorter(writer.pointee, count: count)
    for element in self {
      try state.encode(element)
      sorter.noteKey(writer.pointee)
    }
    try sorter.sort(&writer.pointee)
    writer.pointee.closeCollection(outerCount: outerCount)
  }
}

extension Dictionary: EncodableElements where Key: Encodable, Value: Encodable {
  func encodeElements(with state: EncodingState) throws {
    guard let writer = state.writer else { throw EncodingHandle.finished(self) }
    let keys = DictionaryKeys(of: Key.self)
    let outerCount = try writer.pointee.openDictionary(keys, count: count)
    var sorter = ItemSorter(writer.pointee, count: count)
    for (key, value) in self {
      if keys == .codingKeys { try writer.pointee.putCodingKey(of: key) } else { try state.encode(key) }
      sorter.noteKey(writer.pointee)
      try state.encode(value)
      sorter.noteValue(writer.pointee)
    }
    try sorter.sort(&writer.pointee)
    writer.pointee.closeDictionary(keys, outerCount: outerCount)
  }
}
