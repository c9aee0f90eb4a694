import Foundation

/// The state shared by the encoder and the containers of one value.
///
/// `Codable` uses containers in any order. Usually the innermost one is written to, and all bytes go directly into one
/// buffer. A container that is written to after another one was opened or closed gets a buffer of its own that is
/// inserted at its position at the end.
struct EncodingState: BitwiseCopyable {
  private static let pool = StatePool()

  struct Fields: ~Copyable {
    var writer: UnsafeMutablePointer<CBORWriter>?
    var topID = 0
    var topContainerID = 0
    var top = -1
    var scope = 0
    var lastID = 0
    var levels = LevelStack<EncodingLevel>()
    var strategies = TypeCache<CodingStrategy<any EncodableElements.Type>>()
    var containers = ContainerCache()
    /// The number of nested values that are being encoded.
    var valueCount = 0
    /// The bytes that were written to levels after they were closed.
    var fragments: [(level: Int, state: EncodingState)] = []
    /// A Boolean value that indicates whether there may be fragments or refusals.
    var isUnusual = false
    /// The errors of containers that could not be created.
    ///
    /// They are thrown by the first write to the container, or at the end of the value.
    var refusals: [(id: Int, error: any Error)] = []
    var ownWriter: UnsafeMutablePointer<CBORWriter>?
    /// The level that this state's fragment belongs to.
    var owner: EncodingHandle?
  }

  /// Memory from the pool.
  let fields: UnsafeMutablePointer<Fields>

  /// The writer, or `nil` after the end.
  var writer: UnsafeMutablePointer<CBORWriter>? {
    get { fields.pointee.writer }
    nonmutating set { fields.pointee.writer = newValue }
  }

  /// The ID of the innermost open level, or 0 if nothing may be written.
  ///
  /// IDs are never reused.
  var topID: Int {
    get { fields.pointee.topID }
    nonmutating set { fields.pointee.topID = newValue }
  }

  /// The ID by which the keyed container of the innermost level refers to it.
  var topContainerID: Int {
    get { fields.pointee.topContainerID }
    nonmutating set { fields.pointee.topContainerID = newValue }
  }

  /// The index of the innermost open level, or -1.
  var top: Int {
    get { fields.pointee.top }
    nonmutating set { fields.pointee.top = newValue }
  }

  /// The index of the level of the innermost value that is being encoded.
  ///
  /// Levels around it cannot be written to until the value is finished.
  var scope: Int {
    get { fields.pointee.scope }
    nonmutating set { fields.pointee.scope = newValue }
  }

  var levels: UnsafeMutablePointer<EncodingLevel> { fields.pointee.levels.start }

  var levelCount: Int {
    get { fields.pointee.levels.count }
    nonmutating set { fields.pointee.levels.count = newValue }
  }

  static func take() -> EncodingState {
    if let memory = pool.take() { return EncodingState(fields: memory.assumingMemoryBound(to: Fields.self)) }
    let fields = UnsafeMutablePointer<Fields>.allocate(capacity: 1)
    fields.initialize(to: Fields())
    return EncodingState(fields: fields)
  }

  /// Writes a value as one item.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - writer: The writer.
  ///   - inOwnForm: A Boolean value that indicates whether the value is written by its `Codable` conformance, even if
  ///     the codec has another form for its type. Defaults to `false`.
  static func encode(_ value: some Encodable, with writer: inout CBORWriter, inOwnForm: Bool = false) throws {
    let state = take()
    defer { state.finish() }
    try withUnsafeMutablePointer(to: &writer) { writer in
      state.writer = writer
      if inOwnForm { try state.encodeByCodable(value) } else { try state.encode(value) }
    }
  }

  /// Returns the memory to the pool.
  ///
  /// Encoders and containers that a type has kept no longer work.
  func finish() {
    writer = nil
    (topID, topContainerID) = (0, 0)
    top = -1
    fields.pointee.levels.removeAll(keepsMemory: fields.pointee.ownWriter == nil)
    scope = 0
    if fields.pointee.isUnusual {
      dropFragments(from: 0)
      fields.pointee.refusals = []
      fields.pointee.isUnusual = false
    }
    if let ownWriter = fields.pointee.ownWriter {
      ownWriter.deinitialize(count: 1)
      ownWriter.deallocate()
      fields.pointee.ownWriter = nil
      fields.pointee.owner = nil
      fields.pointee.valueCount = 0
    }
    EncodingState.pool.leave(fields)
  }

  // MARK: Values

  /// Writes a value for a container.
  ///
  /// If the value throws, nothing is written, because its type may continue without the value.
  ///
  /// - Parameter key: The key to write before the value.
  @inline(__always)
  func encodeItem<Value: Encodable>(_ value: Value, after key: String? = nil) throws {
    guard let writer else { throw EncodingHandle.finished(value) }
    let place = writer.pointee.place
    if let key { writer.pointee.put(key: key) }
    do {
      try encode(value)
    } catch {
      writer.pointee.rewind(to: place)
      throw error
    }
  }

  /// Writes a value of any type as one item.
  ///
  /// It is inlined into each method that a container has for one type, where the compiler knows all comparisons.
  @inline(__always)
  func encode<Value: Encodable>(_ value: Value) throws {
    guard let writer else { throw EncodingHandle.finished(value) }
    if Value.self == String.self { return writer.pointee.put(text: unsafeBitCast(value, to: String.self)) }
    if Value.self == Int.self { return try unsafeBitCast(value, to: Int.self).write(to: &writer.pointee) }
    if Value.self == Date.self { return try unsafeBitCast(value, to: Date.self).write(to: &writer.pointee) }
    if Value.self == [String].self { return try unsafeBitCast(value, to: [String].self).write(to: &writer.pointee) }
    if Value.self == Bool.self { return unsafeBitCast(value, to: Bool.self).write(to: &writer.pointee) }
    if Value.self == Double.self { return unsafeBitCast(value, to: Double.self).write(to: &writer.pointee) }
    if Value.self == Float.self { return unsafeBitCast(value, to: Float.self).write(to: &writer.pointee) }
    if Value.self == Int8.self { return try unsafeBitCast(value, to: Int8.self).write(to: &writer.pointee) }
    if Value.self == Int16.self { return try unsafeBitCast(value, to: Int16.self).write(to: &writer.pointee) }
    if Value.self == Int32.self { return try unsafeBitCast(value, to: Int32.self).write(to: &writer.pointee) }
    if Value.self == Int64.self { return try unsafeBitCast(value, to: Int64.self).write(to: &writer.pointee) }
    if Value.self == UInt.self { return try unsafeBitCast(value, to: UInt.self).write(to: &writer.pointee) }
    if Value.self == UInt8.self { return try unsafeBitCast(value, to: UInt8.self).write(to: &writer.pointee) }
    if Value.self == UInt16.self { return try unsafeBitCast(value, to: UInt16.self).write(to: &writer.pointee) }
    if Value.self == UInt32.self { return try unsafeBitCast(value, to: UInt32.self).write(to: &writer.pointee) }
    if Value.self == UInt64.self { return try unsafeBitCast(value, to: UInt64.self).write(to: &writer.pointee) }
    try encodeOther(value)
  }

  /// Writes a value in the way of its type.
  private func encodeOther<Value: Encodable>(_ value: Value) throws {
    switch fields.pointee.strategies.fact(of: Value.self, { CodingStrategy(of: Value.self) }) {
    case .codable: try encodeByCodable(value)
    case .convertible(let type): try encode(value, as: type)
    case .elements(let type): try encodeElements(value, as: type)
    }
  }

  /// Writes a value in the form that the codec defines for its type.
  private func encode<Value, Convertible: CBORConvertible>(_ value: Value, as type: Convertible.Type) throws {
    guard let writer else { throw EncodingHandle.finished(value) }
    do {
      try withUnsafePointer(to: value) { value in
        try UnsafeRawPointer(value).assumingMemoryBound(to: Convertible.self).pointee.write(to: &writer.pointee)
      }
    } catch let error as EncodingError {
      throw error.naming(value)
    }
  }

  /// Writes a value by its `Codable` conformance.
  func encodeByCodable<Value: Encodable>(_ value: Value) throws {
    guard let writer else { throw EncodingHandle.finished(value) }
    let outer = (scope, top, topID, topContainerID)
    let place = writer.pointee.place
    let (fragmentCount, refusalCount) =
      fields.pointee.isUnusual ? (fields.pointee.fragments.count, fields.pointee.refusals.count) : (0, 0)
    let index = open(.single, start: place.offset)
    scope = index
    fields.pointee.valueCount += 1
    defer { fields.pointee.valueCount -= 1 }
    do {
      // The limit covers values that contain each other without a container between them. More levels are allowed,
      // because the levels of nested containers stay until their value is finished.
      if fields.pointee.valueCount > 4 * CBORWriter.maximumDepth { throw writer.pointee.tooDeep() }
      try value.encode(to: EncodingHandle(state: self, index: index, id: topID))
      // A refusal is a container that could not be created, even if nothing was written to it.
      if fields.pointee.isUnusual, fields.pointee.refusals.count > refusalCount {
        throw fields.pointee.refusals[refusalCount].error
      }
      while top >= index { try closeTop() }
      if fields.pointee.isUnusual { try splice(from: fragmentCount) }
      levelCount = index
    } catch {
      if fields.pointee.isUnusual {
        dropFragments(from: fragmentCount)
        fields.pointee.refusals.removeSubrange(refusalCount...)
      }
      (scope, top, topID, topContainerID) = outer
      levelCount = index
      writer.pointee.rewind(to: place)
      throw (error as? EncodingError)?.naming(value) ?? error
    }
    (scope, top, topID, topContainerID) = outer
    writer.pointee.itemCount = place.itemCount + 1
    writer.pointee.keyBits = place.keyBits
  }
}
