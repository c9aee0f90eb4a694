/// A collection or optional that encodes its elements.
///
/// With ``CBORConvertible`` elements, the whole collection writes itself.
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

  /// Writes an array with a known number of elements.
  @inline(__always)
  fileprivate func encodeElements(
    count: Int, _ body: (UnsafeMutablePointer<CBORWriter>) throws -> Void
  ) throws {
    guard let writer else { throw EncodingHandle.finished(()) }
    let outerCount = writer.pointee.itemCount
    try writer.pointee.descend()
    writer.pointee.putHead(0x80, UInt64(count))
    writer.pointee.itemCount = 0
    try body(writer)
    writer.pointee.depth -= 1
    writer.pointee.itemCount = outerCount + 1
  }
}

extension Optional: EncodableElements where Wrapped: Encodable {
  func encodeElements(with state: EncodingState) throws {
    guard let writer = state.writer else { throw EncodingHandle.finished(self as Any) }
    if let self { try state.encode(self) } else { writer.pointee.writeNull() }
  }
}

extension Array: EncodableElements where Element: Encodable {
  func encodeElements(with state: EncodingState) throws {
    try state.encodeElements(count: count) { _ in
      for element in self { try state.encode(element) }
    }
  }
}

extension Set: EncodableElements where Element: Encodable {
  func encodeElements(with state: EncodingState) throws {
    try state.encodeElements(count: count) { writer in
      var sorter = ItemSorter(writer.pointee, count: count)
      for element in self {
        try state.encode(element)
        sorter.noteKey(writer.pointee)
      }
      try sorter.sort(&writer.pointee)
    }
  }
}

extension Dictionary: EncodableElements where Key: Encodable, Value: Encodable {
  func encodeElements(with state: EncodingState) throws {
    guard let writer = state.writer else { throw EncodingHandle.finished(self) }
    let keys = DictionaryKeys(of: Key.self)
    let outerCount = writer.pointee.itemCount
    try writer.pointee.openDictionary(keys, count: count)
    var sorter = ItemSorter(writer.pointee, count: count)
    for (key, value) in self {
      if keys == .codingKeys { try writer.pointee.putCodingKey(of: key) } else { try state.encode(key) }
      sorter.noteKey(writer.pointee)
      try state.encode(value)
      sorter.noteValue(writer.pointee)
    }
    try sorter.sort(&writer.pointee)
    try writer.pointee.closeDictionary(keys, count: count, outerCount: outerCount)
  }
}
