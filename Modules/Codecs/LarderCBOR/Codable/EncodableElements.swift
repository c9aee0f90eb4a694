/// A collection or optional of values that encode themselves; those of ``CBORConvertible`` values write themselves.
protocol EncodableElements {
  func encodeElements(with state: EncodingState) throws
}

extension EncodingState {
  /// Writes an array or map of which the number of elements is known.
  @inline(__always)
  fileprivate func encodeElements(
    _ major: UInt8, count: Int, _ body: (UnsafeMutablePointer<CBORWriter>) throws -> Void
  ) throws {
    guard let writer else { throw EncodingHandle.finished(()) }
    let outerCount = writer.pointee.itemCount
    try writer.pointee.descend()
    writer.pointee.putHead(major, UInt64(count))
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
    try state.encodeElements(0x80, count: count) { _ in
      for element in self { try state.encode(element) }
    }
  }
}

extension Set: EncodableElements where Element: Encodable {
  func encodeElements(with state: EncodingState) throws {
    try state.encodeElements(0x80, count: count) { writer in
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
    try state.encodeElements(0xA0, count: count) { writer in
      var sorter = ItemSorter(writer.pointee, count: count)
      for (key, value) in self {
        try state.encode(key)
        sorter.noteKey(writer.pointee)
        try state.encode(value)
        sorter.noteValue(writer.pointee)
      }
      try sorter.sort(&writer.pointee)
    }
  }
}
