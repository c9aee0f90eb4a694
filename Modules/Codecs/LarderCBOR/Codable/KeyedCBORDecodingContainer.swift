/// The fields of a map.
struct KeyedCBORDecodingContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let handle: DecodingHandle

  private var state: DecodingState { handle.state }

  var codingPath: [any CodingKey] { handle.codingPath }

  var allKeys: [Key] {
    do {
      state.willList(handle)
      guard let keys = try state.level(handle).pointee.map.keys(state.reader) else {
        state.suppress(
          DecodingError.typeMismatch(
            String.self,
            DecodingError.Context(
              codingPath: codingPath, debugDescription: "the map has a key that is neither UTF-8 text nor a number")
          ))
        return []
      }
      return keys.compactMap { Key(stringValue: $0) }
    } catch {
      // This property cannot throw. The error is thrown at the end of the value.
      return []
    }
  }

  func contains(_ key: Key) -> Bool {
    do {
      return try find(key) != nil
    } catch {
      // The next call that decodes throws the error.
      return true
    }
  }

  // MARK: Finding

  /// Returns the value at the cursor if its key is the requested one.
  @inline(__always)
  private func valueAtCursor(
    _ key: Key, _ level: UnsafeMutablePointer<DecodingLevel>, _ reader: UnsafeMutablePointer<CBORReader>
  ) -> UnsafeRawPointer? {
    guard level.pointee.map.remaining > 0 else { return nil }
    let place = level.pointee.map.next
    let end = reader.pointee.end
    let value: UnsafeRawPointer?? = key.stringValue.utf8.withContiguousStorageIfAvailable { text in
      let count = text.count
      guard count < 24, end - place > count, place.load(as: UInt8.self) == 0x60 | UInt8(truncatingIfNeeded: count),
        count == 0 || areEqual(place + 1, UnsafeRawPointer(text.baseAddress.unsafelyUnwrapped), count: count)
      else { return nil }
      return place + 1 + count
    }
    // A bridged string has no contiguous UTF-8 and is found by the search.
    return value ?? nil
  }

  /// Returns a value that is not at the cursor.
  @inline(never)
  private func search(_ key: String) throws -> UnsafeRawPointer? {
    let level = try state.level(handle)
    guard let reader = state.reader else { throw DecodingHandle.finished() }
    reader.pointee.depth = level.pointee.depth + 1
    state.willList(handle)
    var text = key
    let value = try text.withUTF8 { try reader.pointee.seek(UnsafeRawBufferPointer($0), &level.pointee.map) }
    guard value == nil, !key.utf8.allSatisfy({ $0 < 0x80 }) else { return value }
    // To the coders of Foundation, composed and decomposed "é" are the same field, because they are the same `String`.
    guard var equivalent = try level.pointee.map.keys(reader)?.first(where: { $0 == key }) else { return nil }
    return try equivalent.withUTF8 { try reader.pointee.seek(UnsafeRawBufferPointer($0), &level.pointee.map) }
  }

  private func find(_ key: Key) throws -> UnsafeRawPointer? {
    let level = try state.level(handle)
    guard let reader = state.reader else { throw DecodingHandle.finished() }
    return try valueAtCursor(key, level, reader) ?? search(key.stringValue)
  }

  /// The location of a value.
  private enum Place {
    case cursor
    case elsewhere
    case nowhere
  }

  /// Moves to the value of a key.
  @inline(__always)
  private func seekIfPresent(_ key: Key, _ reader: UnsafeMutablePointer<CBORReader>) throws -> Place {
    let level = try state.level(handle)
    if let value = valueAtCursor(key, level, reader) {
      reader.pointee.next = value
      reader.pointee.depth = level.pointee.depth + 1
      return .cursor
    }
    guard let value = try search(key.stringValue) else { return .nowhere }
    reader.pointee.next = value
    reader.pointee.depth = level.pointee.depth + 1
    return .elsewhere
  }

  @inline(__always)
  private func seek(_ key: Key, _ reader: UnsafeMutablePointer<CBORReader>) throws -> Place {
    let place = try seekIfPresent(key, reader)
    if place == .nowhere { throw missing(key) }
    return place
  }

  /// Moves the cursor past a value that was read there.
  ///
  /// It moves only after reading, so a type that ignores an error can read the field again.
  @inline(__always)
  private func advance(_ place: Place, _ reader: UnsafeMutablePointer<CBORReader>) {
    guard place == .cursor else { return }
    // The levels may have moved since.
    let level = state.levels + handle.index
    level.pointee.map.next = reader.pointee.next
    level.pointee.map.remaining &-= 1
  }

  @inline(__always)
  private func reader() throws -> UnsafeMutablePointer<CBORReader> {
    guard let reader = state.reader else { throw DecodingHandle.finished() }
    return reader
  }

  @inline(never)
  private func missing(_ key: any CodingKey) -> DecodingError {
    let context = DecodingError.Context(
      codingPath: codingPath, debugDescription: "the map has no key \"\(key.stringValue)\"")
    return DecodingError.keyNotFound(key, context)
  }

  // MARK: Values

  /// Reads the value of a key.
  @inline(__always)
  private func read<Value: Decodable>(_ type: Value.Type, _ key: Key) throws -> Value {
    let reader = try reader()
    let place = try seek(key, reader)
    let value = try state.decode(type, with: reader)
    advance(place, reader)
    return value
  }

  /// Reads the value of a key that may be missing or `null`.
  @inline(__always)
  private func readIfPresent<Value: Decodable>(_ type: Value.Type, _ key: Key) throws -> Value? {
    let reader = try reader()
    let place = try seekIfPresent(key, reader)
    if place == .nowhere { return nil }
    let value = reader.pointee.readNull() ? nil : try state.decode(type, with: reader)
    advance(place, reader)
    return value
  }

  func decodeNil(forKey key: Key) throws -> Bool {
    guard let place = try find(key) else { throw missing(key) }
    let reader = try reader()
    reader.pointee.next = place
    return reader.pointee.readNull()
  }

  @inline(__always)
  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value { try read(type, key) }

  func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
    try readIfPresent(type, key)
  }

  // The compiler prefers the default implementations of the standard library to the generic methods above.

  func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try read(type, key) }
  func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 { try read(type, key) }
  func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? { try readIfPresent(type, key) }
  func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? { try readIfPresent(type, key) }
  func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? { try readIfPresent(type, key) }
  func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? { try readIfPresent(type, key) }
  func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { try readIfPresent(type, key) }
  func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? { try readIfPresent(type, key) }
  func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? { try readIfPresent(type, key) }
  func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? { try readIfPresent(type, key) }
  func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? { try readIfPresent(type, key) }
  func decodeIfPresent(_ type: Int128.Type, forKey key: Key) throws -> Int128? { try readIfPresent(type, key) }
  func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? { try readIfPresent(type, key) }
  func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? { try readIfPresent(type, key) }
  func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? { try readIfPresent(type, key) }
  func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? { try readIfPresent(type, key) }
  func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? { try readIfPresent(type, key) }
  func decodeIfPresent(_ type: UInt128.Type, forKey key: Key) throws -> UInt128? { try readIfPresent(type, key) }

  // MARK: Containers

  /// Opens a level for the value of a key.
  private func nest(_ key: any CodingKey, _ place: UnsafeRawPointer?) throws -> DecodingHandle {
    guard let place, let reader = state.reader else { throw missing(key) }
    let depth = state.levels[handle.index].depth + 1
    if state.levels[handle.index].map.listed < 0 {
      // The next field is looked up after the value.
      reader.pointee.next = place
      reader.pointee.depth = depth
      try reader.pointee.skip()
      state.levels[handle.index].map.next = reader.pointee.next
      state.levels[handle.index].map.remaining &-= 1
    }
    return state.open(at: place, depth: depth)
  }

  func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<NestedKey> {
    try nest(key, find(key)).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try nest(key, find(key)).unkeyedContainer()
  }

  func superDecoder() throws -> any Decoder {
    try superDecoder(CBORPathKey(stringValue: "super"), search("super"))
  }

  func superDecoder(forKey key: Key) throws -> any Decoder {
    try superDecoder(key, find(key))
  }

  private func superDecoder(_ key: any CodingKey, _ place: UnsafeRawPointer?) throws -> any Decoder {
    // A superclass that encoded nothing may have left no key.
    if place == nil { return state.derive([0xF6], path: codingPath + [key]) }
    return try nest(key, place)
  }
}

extension MapCursor {
  /// Returns the keys, or `nil` if a key is neither text nor a number.
  fileprivate mutating func keys(_ reader: UnsafeMutablePointer<CBORReader>?) throws -> [String]? {
    guard let reader else { return [] }
    // The common case of an enumeration: one key, and nothing read yet.
    if listed < 0, count == 1, remaining == 1, next < reader.pointee.end, next.load(as: UInt8.self) &>> 5 == 3 {
      reader.pointee.next = next
      return [try reader.pointee.readText()]
    }
    return try reader.pointee.list(&self).textKeys(of: listed)
  }
}
