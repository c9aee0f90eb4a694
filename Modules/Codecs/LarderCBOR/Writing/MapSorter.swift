/// Brings the keys of all maps of an item into the order of their bytes (RFC 8949, section 4.2.1).
enum MapSorter {
  /// Appends the next item of a reader, which has been checked, with its maps sorted.
  static func append(_ reader: inout CBORReader, to bytes: inout [UInt8]) throws {
    let start = reader.next
    let head = try reader.readHead()
    func appendAll(upTo end: UnsafeRawPointer) {
      bytes.append(contentsOf: UnsafeRawBufferPointer(start: start, count: end - start))
    }
    switch head.major {
    case .array, .map, .tag: appendAll(upTo: reader.next)
    default:
      reader.next = start
      try reader.skip()
      return appendAll(upTo: reader.next)
    }
    var remaining = head.isIndefinite ? -1 : head.major == .tag ? 1 : Int(head.argument)
    var pairs: [(key: [UInt8], value: [UInt8])] = []
    while try reader.hasElement(&remaining) {
      guard head.major == .map else {
        try append(&reader, to: &bytes)
        continue
      }
      var (key, value): ([UInt8], [UInt8]) = ([], [])
      try append(&reader, to: &key)
      try append(&reader, to: &value)
      pairs.append((key, value))
    }
    pairs.sort { $0.key.lexicographicallyPrecedes($1.key) }
    for pair in pairs { bytes += pair.key + pair.value }
    if head.isIndefinite { bytes.append(0xFF) }
  }
}
