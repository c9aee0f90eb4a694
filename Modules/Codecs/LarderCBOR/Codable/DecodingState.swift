import Foundation

/// The state shared by the decoder and the containers of one value.
struct DecodingState: BitwiseCopyable {
  private static let pool = StatePool()

  private struct Fields: ~Copyable {
    var reader: UnsafeMutablePointer<CBORReader>?
    /// Memory for the reader of a state that decodes bytes without an existing reader.
    let ownReader = UnsafeMutablePointer<CBORReader>.allocate(capacity: 1)
    var levels = LevelStack<DecodingLevel>()
    var lastID = 0
    var strategies = TypeCache<CodingStrategy<any DecodableElements.Type>>()
    var containers = ContainerCache()
    /// The index of the level of the innermost value that is being decoded.
    var scope = 0
    /// The number of nested values that are being decoded.
    var valueCount = 0
    /// A Boolean value that indicates whether a container of an outer value listed its keys after those of an inner
    /// value.
    var keepsListings = false
    /// A Boolean value that indicates whether there may be a suppressed error or a derived decoder.
    var isUnusual = false
    /// The error of a method that cannot throw.
    ///
    /// It is thrown at the end of the value.
    var suppressedError: DecodingError?
    /// Decoders of bytes that were converted to the requested form, each with memory of its own.
    var derived: [(state: DecodingState, bytes: UnsafeMutableRawBufferPointer)] = []
  }

  /// Memory from the pool.
  private let fields: UnsafeMutablePointer<Fields>

  /// The reader, or `nil` after the end.
  private(set) var reader: UnsafeMutablePointer<CBORReader>? {
    get { fields.pointee.reader }
    nonmutating set { fields.pointee.reader = newValue }
  }

  var levels: UnsafeMutablePointer<DecodingLevel> { fields.pointee.levels.start }

  private var levelCount: Int {
    get { fields.pointee.levels.count }
    nonmutating set { fields.pointee.levels.count = newValue }
  }

  private static func take() -> DecodingState {
    if let memory = pool.take() { return DecodingState(fields: memory.assumingMemoryBound(to: Fields.self)) }
    let fields = UnsafeMutablePointer<Fields>.allocate(capacity: 1)
    fields.initialize(to: Fields())
    return DecodingState(fields: fields)
  }

  /// Reads a value that takes up all bytes.
  static func decode<Value: Decodable>(
    _ type: Value.Type, from bytes: RawSpan, userInfo: CodingUserInfo?
  ) throws -> Value {
    try bytes.withUnsafeBytes { bytes in
      let state = take()
      let reader = state.fields.pointee.ownReader
      reader.initialize(to: CBORReader(bytes))
      reader.pointee.sharedUserInfo = userInfo.map { Unmanaged.passUnretained($0) }
      state.reader = reader
      defer {
        reader.deinitialize(count: 1)
        state.finish()
      }
      let value = try state.decode(type)
      try reader.pointee.checkEnd()
      return value
    }
  }

  /// Reads the next item.
  ///
  /// - Parameters:
  ///   - type: The type of the value.
  ///   - reader: The reader.
  ///   - inOwnForm: A Boolean value that indicates whether the value is read by its `Codable` conformance, even if the
  ///     codec has another form for its type. Defaults to `false`.
  static func decode<Value: Decodable>(
    _ type: Value.Type, with reader: inout CBORReader, inOwnForm: Bool = false
  ) throws -> Value {
    let state = take()
    defer { state.finish() }
    return try withUnsafeMutablePointer(to: &reader) { reader in
      state.reader = reader
      return inOwnForm ? try state.decodeByCodable(type) : try state.decode(type)
    }
  }

  /// Returns the memory to the pool.
  ///
  /// Decoders and containers that a type has kept no longer work.
  private func finish(keepsMemory: Bool = true) {
    reader = nil
    fields.pointee.levels.removeAll(keepsMemory: keepsMemory)
    fields.pointee.keepsListings = false
    if fields.pointee.isUnusual {
      dropDerived(from: 0)
      fields.pointee.suppressedError = nil
      fields.pointee.isUnusual = false
    }
    DecodingState.pool.leave(fields)
  }

  // MARK: Values

  /// Reads the next item as a value of any type.
  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    guard let reader else { throw DecodingHandle.finished() }
    return try decode(type, with: reader)
  }

  /// Reads the next item as a value of any type, with the reader of this state.
  ///
  /// It is inlined into each method that a container has for one type, where the compiler knows all comparisons.
  @inline(__always)
  func decode<Value: Decodable>(_ type: Value.Type, with reader: UnsafeMutablePointer<CBORReader>) throws -> Value {
    if type == String.self { return unsafeBitCast(try reader.pointee.readText(), to: type) }
    if type == Int.self { return unsafeBitCast(try reader.pointee.readInteger(Int.self), to: type) }
    if type == Date.self { return unsafeBitCast(try Date(from: &reader.pointee), to: type) }
    if type == [String].self { return unsafeBitCast(try [String](from: &reader.pointee), to: type) }
    if type == Bool.self { return unsafeBitCast(try reader.pointee.readBool(), to: type) }
    if type == Double.self { return unsafeBitCast(try reader.pointee.readFloat(Double.self), to: type) }
    if type == Float.self { return unsafeBitCast(try Float(from: &reader.pointee), to: type) }
    if type == Int8.self { return unsafeBitCast(try Int8(from: &reader.pointee), to: type) }
    if type == Int16.self { return unsafeBitCast(try Int16(from: &reader.pointee), to: type) }
    if type == Int32.self { return unsafeBitCast(try Int32(from: &reader.pointee), to: type) }
    if type == Int64.self { return unsafeBitCast(try Int64(from: &reader.pointee), to: type) }
    if type == UInt.self { return unsafeBitCast(try UInt(from: &reader.pointee), to: type) }
    if type == UInt8.self { return unsafeBitCast(try UInt8(from: &reader.pointee), to: type) }
    if type == UInt16.self { return unsafeBitCast(try UInt16(from: &reader.pointee), to: type) }
    if type == UInt32.self { return unsafeBitCast(try UInt32(from: &reader.pointee), to: type) }
    if type == UInt64.self { return unsafeBitCast(try UInt64(from: &reader.pointee), to: type) }
    return try decodeOther(type)
  }

  /// Reads a value in the way of its type.
  private func decodeOther<Value: Decodable>(_ type: Value.Type) throws -> Value {
    switch fields.pointee.strategies.fact(of: type, { CodingStrategy(of: type) }) {
    case .codable: return try decodeByCodable(type)
    case .convertible(let convertible): return try decode(type, as: convertible)
    case .elements(let elements): return try decodeElements(type, as: elements)
    }
  }

  /// Reads a value in the form that the codec defines for its type.
  private func decode<Value, Convertible: CBORConvertible>(
    _ type: Value.Type, as convertible: Convertible.Type
  ) throws -> Value {
    guard let reader else { throw DecodingHandle.finished() }
    let depth = reader.pointee.depth
    defer { reader.pointee.depth = depth }
    return unsafeBitCast(try Convertible(from: &reader.pointee), to: type)
  }

  /// Reads a value by its `Codable` conformance.
  private func decodeByCodable<Value: Decodable>(_ type: Value.Type) throws -> Value {
    guard let reader else { throw DecodingHandle.finished() }
    let (depth, scope) = (reader.pointee.depth, fields.pointee.scope)
    let derivedCount = fields.pointee.isUnusual ? fields.pointee.derived.count : 0
    let handle = open(at: reader.pointee.next, depth: depth)
    fields.pointee.scope = handle.index
    fields.pointee.valueCount += 1
    defer {
      if reader.pointee.listing != nil { forgetMaps(from: handle.index) }
      if fields.pointee.isUnusual { dropDerived(from: derivedCount) }
      levelCount = handle.index
      fields.pointee.scope = scope
      fields.pointee.valueCount -= 1
      reader.pointee.depth = depth
    }
    // The limit covers values that contain each other without a container between them. More levels are allowed,
    // because the levels of nested containers stay until their value is finished.
    if fields.pointee.valueCount > 4 * CBORWriter.maximumDepth { throw reader.pointee.tooDeep() }
    let suppressed = fields.pointee.isUnusual ? fields.pointee.suppressedError : nil
    let value: Value
    do {
      value = try Value(from: handle)
    } catch {
      // A caller that catches this error must not get an earlier error of the value later.
      if fields.pointee.isUnusual { fields.pointee.suppressedError = suppressed }
      throw error
    }
    if fields.pointee.isUnusual { try throwSuppressedError() }
    try finish(handle.index)
    return value
  }

  // MARK: Levels

  /// Opens a level for the item at an address.
  func open(at start: UnsafeRawPointer, depth: Int) -> DecodingHandle {
    fields.pointee.lastID += 1
    let id = fields.pointee.lastID
    let index = fields.pointee.levels.append(DecodingLevel(id: id, start: start, depth: depth))
    return DecodingHandle(state: self, index: index, id: id)
  }

  /// Returns the level of a handle.
  ///
  /// - Throws: `DecodingError` if the level is finished.
  @inline(__always)
  func level(_ handle: DecodingHandle) throws -> UnsafeMutablePointer<DecodingLevel> {
    guard isLevel(handle) else { throw DecodingHandle.finished() }
    return levels + handle.index
  }

  /// Returns whether a level is still being decoded.
  func isLevel(_ handle: DecodingHandle) -> Bool {
    guard reader != nil, handle.index < levelCount else { return false }
    let level = levels + handle.index
    return level.pointee.id == handle.id || level.pointee.containerID == handle.id
  }

  /// Removes the listed keys of a level's map and of all levels after it.
  private func forgetMaps(from index: Int) {
    if fields.pointee.keepsListings { return }
    let first = (index..<levelCount).lazy.map { self.levels[$0].map.listed }.filter { $0 >= 0 }.min()
    if let first { reader?.pointee.listing?.remove(from: first) }
  }

  /// Records that the keys of a level's map are about to be listed.
  func willList(_ handle: DecodingHandle) {
    // A value may read a map around it, whose keys are then listed after its own. All of them are kept in this case.
    if handle.index < fields.pointee.scope, isLevel(handle) { fields.pointee.keepsListings = true }
  }

  /// Opens a level in a state of its own for bytes that were converted to the requested form.
  ///
  /// - Parameter path: The path to the item that the bytes represent.
  func derive(_ bytes: [UInt8], path: [any CodingKey]) -> DecodingHandle {
    let state = DecodingState.take()
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
    memory.copyBytes(from: bytes)
    let reader = state.fields.pointee.ownReader
    reader.initialize(to: CBORReader(UnsafeRawBufferPointer(memory)))
    reader.pointee.pathFinder = CBORPathFinder(prefix: path)
    reader.pointee.sharedUserInfo = self.reader?.pointee.sharedUserInfo
    state.reader = reader
    fields.pointee.derived.append((state, memory))
    fields.pointee.isUnusual = true
    return state.open(at: reader.pointee.base, depth: 0)
  }

  private func dropDerived(from first: Int) {
    for (state, bytes) in fields.pointee.derived[first...] {
      state.fields.pointee.ownReader.deinitialize(count: 1)
      state.finish(keepsMemory: false)
      bytes.deallocate()
    }
    fields.pointee.derived.removeSubrange(first...)
  }

  /// Returns the decoder of a level's item in the form that the `Codable` conformance of its type writes, or `nil` if
  /// that is not another form.
  func ownForm(
    _ handle: DecodingHandle, as kind: DecodingLevel.Kind, asksFor: (String) -> Bool = { _ in true }
  ) throws -> DecodingHandle? {
    let level = try level(handle)
    guard let reader else { throw DecodingHandle.finished() }
    reader.pointee.next = level.pointee.start
    reader.pointee.depth = level.pointee.depth
    guard let bytes = try reader.pointee.ownForm(as: kind, asksFor: asksFor) else { return nil }
    return derive(bytes, path: reader.pointee.path(to: level.pointee.start))
  }

  /// Stores the error of a method that cannot throw.
  ///
  /// It is thrown at the end of the value.
  func suppress(_ error: DecodingError) {
    fields.pointee.suppressedError = error
    fields.pointee.isUnusual = true
  }

  // A function of its own, because decoding a record takes 7 % longer if this stands where it is called.
  private func throwSuppressedError() throws {
    guard let error = fields.pointee.suppressedError else { return }
    fields.pointee.suppressedError = nil
    throw error
  }

  /// Moves the reader to the end of a value that may have been read only in part.
  private func finish(_ index: Int) throws {
    guard let reader else { throw DecodingHandle.finished() }
    let level = levels + index
    reader.pointee.depth = level.pointee.depth + 1
    if let end = level.pointee.end {
      reader.pointee.next = end
      return
    }
    switch level.pointee.kind {
    case .map:
      reader.pointee.next = try reader.pointee.endOfMap(&level.pointee.map)
    case .array:
      reader.pointee.next = level.pointee.next
      while try reader.pointee.hasElement(&level.pointee.remaining) { try reader.pointee.skip() }
    case .single:
      reader.pointee.next = level.pointee.start
      reader.pointee.depth = level.pointee.depth
      try reader.pointee.skip()
    }
  }

  /// Returns the first byte of a level's item, or `nil` if no bytes are left.
  @inline(__always)
  func firstByte(_ handle: DecodingHandle) throws -> UInt8? {
    let start = try level(handle).pointee.start
    guard let reader, start < reader.pointee.end else { return nil }
    return start.load(as: UInt8.self)
  }

  /// Opens the map at a level, or continues with the map that is already open.
  func openMap(_ handle: DecodingHandle) throws {
    let level = try level(handle)
    guard let reader, level.pointee.kind != .map else { return }
    reader.pointee.next = level.pointee.start
    reader.pointee.depth = level.pointee.depth
    let count = try reader.pointee.openPairs(.texts)
    level.pointee.map = MapCursor(start: reader.pointee.next, count: count)
    level.pointee.kind = .map
  }

  /// Returns the container for the fields of the map at a level.
  func keyedContainer<Key: CodingKey>(_ handle: DecodingHandle, keyedBy type: Key.Type) throws
    -> KeyedDecodingContainer<Key>
  {
    // Any map is accepted, but an item with a tag may have another meaning.
    if let first = try firstByte(handle), first &>> 5 != 5 {
      let own = try ownForm(handle, as: .map) { type.init(stringValue: $0) != nil && type.init(stringValue: "") == nil }
      if let own { return try own.state.keyedContainer(own, keyedBy: type) }
    }
    try openMap(handle)
    let level = levels + handle.index
    let isFirst = level.pointee.containerID == 0
    if isFirst, let unused = fields.pointee.containers.unused(keyedBy: type, at: handle.index) {
      level.pointee.containerID = unused.id
      return unused.container(KeyedDecodingContainer<Key>.self)
    }
    return newKeyedContainer(handle, keyedBy: type, isFirst: isFirst)
  }

  /// Creates a container.
  ///
  /// It is separate from the common path, which needs no generic types.
  @inline(never)
  private func newKeyedContainer<Key: CodingKey>(
    _ handle: DecodingHandle, keyedBy type: Key.Type, isFirst: Bool
  ) -> KeyedDecodingContainer<Key> {
    let level = levels + handle.index
    if isFirst {
      fields.pointee.lastID += 1
      level.pointee.containerID = fields.pointee.lastID
    }
    // Later containers use the ID of the level, which is never reused. The ID of the first container is reused with it.
    let id = isFirst ? level.pointee.containerID : level.pointee.id
    let container = KeyedDecodingContainer(
      KeyedCBORDecodingContainer<Key>(handle: DecodingHandle(state: self, index: handle.index, id: id)))
    if isFirst { fields.pointee.containers.keep(container, keyedBy: type, at: handle.index, id: id) }
    return container
  }

  /// Returns the path to a level.
  func path(to handle: DecodingHandle) -> [any CodingKey] {
    do {
      let start = try level(handle).pointee.start
      return reader?.pointee.path(to: start) ?? []
    } catch {
      // The value is finished, so it has no path any more.
      return []
    }
  }
}
