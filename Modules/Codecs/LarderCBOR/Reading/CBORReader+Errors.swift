extension CBORReader {
  @inline(never)
  mutating func context(_ message: String, at offset: Int) -> DecodingError.Context {
    DecodingError.Context(
      codingPath: findsPaths ? path(to: base + offset) : [], debugDescription: "\(message) (at byte \(offset))")
  }

  /// The path to the item at a place.
  mutating func path(to place: UnsafeRawPointer) -> [any CodingKey] {
    pathFinder.path(to: place - base, in: UnsafeRawBufferPointer(start: base, count: end - base))
  }

  @usableFromInline @inline(never)
  mutating func corrupted(_ message: String, at offset: Int) -> DecodingError {
    DecodingError.dataCorrupted(context(message, at: offset))
  }

  @inline(never)
  mutating func malformed(at offset: Int? = nil) -> DecodingError {
    corrupted("This is no CBOR.", at: offset ?? self.offset)
  }

  @inline(never)
  mutating func truncated() -> DecodingError {
    corrupted("The bytes end within the value.", at: offset)
  }

  @usableFromInline @inline(never)
  mutating func tooDeep() -> DecodingError {
    corrupted("The value nests more than \(CBORWriter.maximumDepth) deep.", at: offset)
  }

  /// The error of an item that is of another kind than the one that is asked for.
  @inline(never)
  mutating func mismatch(
    _ type: Any.Type, tag: UInt64? = nil, _ head: ItemHead, at offset: Int
  ) -> DecodingError {
    if let meaning = CBORReader.meaning(of: tag) {
      return DecodingError.typeMismatch(type, context("There is \(meaning) in its place.", at: offset))
    }
    if head.isNull {
      return DecodingError.valueNotFound(type, context("There is null in the place of a value.", at: offset))
    }
    let kind =
      switch head.major {
      case .unsigned, .negative: "an integer"
      case .bytes: "a byte string"
      case .text: "text"
      case .array: "an array"
      case .map: "a map"
      case .tag: "a tag"
      case .simple: head.float != nil ? "a floating-point number" : "a simple value"
      }
    return DecodingError.typeMismatch(type, context("There is \(kind) in its place.", at: offset))
  }

  @inline(never)
  mutating func missing(_ key: any CodingKey, at offset: Int) -> DecodingError {
    DecodingError.keyNotFound(key, context("The map has no key \"\(key.stringValue)\".", at: offset))
  }
}
