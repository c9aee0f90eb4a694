#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What the encoder and the containers of one value share.
///
/// `Codable` hands out containers in no fixed order. Mostly the innermost one is written to, and everything goes straight
/// into one buffer; a container that is written to after another was opened or closed gets a buffer of its own, which is
/// put into its place at the end.
struct EncodingState: BitwiseCopyable {
  private static let pool = StatePool()

  /// How many levels memory is kept for when a value is finished.
  private static let keptCapacity = 1024

  struct Fields: ~Copyable {
    var writer: UnsafeMutablePointer<CBORWriter>?
    var topID = 0
    var topContainerID = 0
    var top = -1
    var scope = 0
    var lastID = 0
    var levels = UnsafeMutablePointer<EncodingLevel>.allocate(capacity: 0)
    var levelCount = 0
    var levelCapacity = 0
    /// Where the levels lay before there were more of them.
    var formerLevels: [UnsafeMutablePointer<EncodingLevel>] = []
    var strategies = TypeCache<CodingStrategy<any EncodableElements.Type>>()
    var containers = ContainerCache()
    /// How many values are being encoded, each within the one before.
    var valueCount = 0
    /// What was written into levels that were closed.
    var fragments: [(level: Int, state: EncodingState)] = []
    /// Whether there may be fragments or refusals.
    var isUnusual = false
    /// The errors of containers that could not be made, which the first write to them gets, or the end of the value.
    var refusals: [(id: Int, error: any Error)] = []
    var ownWriter: UnsafeMutablePointer<CBORWriter>?
    /// The level to which a fragment belongs.
    var owner: EncodingHandle?

    /// Gives the memory of the levels back.
    mutating func resetLevels() {
      for levels in formerLevels + [levels] { levels.deallocate() }
      formerLevels = []
      levels = .allocate(capacity: 0)
      levelCapacity = 0
    }
  }

  /// Memory of the pool's.
  let fields: UnsafeMutablePointer<Fields>

  /// Where everything goes; `nil` while somebody else writes there, and after the end.
  var writer: UnsafeMutablePointer<CBORWriter>? {
    get { fields.pointee.writer }
    nonmutating set { fields.pointee.writer = newValue }
  }

  /// The number of the innermost level that is open; 0 where nothing may be written.
  ///
  /// No number comes twice.
  var topID: Int {
    get { fields.pointee.topID }
    nonmutating set { fields.pointee.topID = newValue }
  }

  /// The number under which the keyed container of the innermost level knows it.
  var topContainerID: Int {
    get { fields.pointee.topContainerID }
    nonmutating set { fields.pointee.topContainerID = newValue }
  }

  /// The innermost level that is open, or -1.
  var top: Int {
    get { fields.pointee.top }
    nonmutating set { fields.pointee.top = newValue }
  }

  /// The level of the innermost value that is being encoded.
  ///
  /// What lies around it is not written to meanwhile.
  private var scope: Int {
    get { fields.pointee.scope }
    nonmutating set { fields.pointee.scope = newValue }
  }

  var levels: UnsafeMutablePointer<EncodingLevel> { fields.pointee.levels }

  private var levelCount: Int {
    get { fields.pointee.levelCount }
    nonmutating set { fields.pointee.levelCount = newValue }
  }

  static func take() -> EncodingState {
    if let memory = pool.take() { return EncodingState(fields: memory.assumingMemoryBound(to: Fields.self)) }
    let fields = UnsafeMutablePointer<Fields>.allocate(capacity: 1)
    fields.initialize(to: Fields())
    return EncodingState(fields: fields)
  }

  /// Writes a value as one item.
  static func encode(_ value: some Encodable, with writer: inout CBORWriter) throws {
    let state = take()
    defer { state.finish() }
    try withUnsafeMutablePointer(to: &writer) { writer in
      state.writer = writer
      try state.encode(value)
    }
  }

  /// Gives the memory back; encoders and containers that somebody keeps are of no more use.
  func finish() {
    writer = nil
    (topID, topContainerID) = (0, 0)
    top = -1
    levelCount = 0
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
      fields.pointee.resetLevels()
    } else if fields.pointee.levelCapacity > EncodingState.keptCapacity {
      fields.pointee.resetLevels()
    }
    EncodingState.pool.leave(fields)
  }

  // MARK: Values

  /// Writes a value for a container, or nothing where it throws: its type may go on without the value.
  ///
  /// - Parameter key: What stands before the value.
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

  /// Writes a value as one item, in the form that its own `Codable` gives it.
  static func encodeOwnForm(_ value: some Encodable, with writer: inout CBORWriter) throws {
    let state = take()
    defer { state.finish() }
    try withUnsafeMutablePointer(to: &writer) { writer in
      state.writer = writer
      try state.encodeByCodable(value)
    }
  }

  /// Writes a value of any type as one item.
  func encode<Value: Encodable>(_ value: Value) throws {
    guard let writer else { throw EncodingHandle.finished(value) }
    if Value.self == Date.self {
      try unsafeBitCast(value, to: Date.self).write(to: &writer.pointee)
    } else if Value.self == String.self {
      writer.pointee.put(text: unsafeBitCast(value, to: String.self))
    } else if Value.self == [String].self {
      try unsafeBitCast(value, to: [String].self).write(to: &writer.pointee)
    } else if Value.self == Int.self {
      writer.pointee.putInteger(Int64(unsafeBitCast(value, to: Int.self)))
    } else {
      switch fields.pointee.strategies.fact(of: Value.self, { CodingStrategy(of: Value.self) }) {
      case .codable: try encodeByCodable(value)
      case .convertible(let type): try encode(value, as: type)
      case .elements(let type): try encodeElements(value, as: type)
      }
    }
  }

  /// Lets a value write itself, and nobody else meanwhile.
  private func encode<Value, Convertible: CBORConvertible>(_ value: Value, as type: Convertible.Type) throws {
    guard let writer else { throw EncodingHandle.finished(value) }
    let outerIDs = (topID, topContainerID)
    let (itemCount, depth) = (writer.pointee.itemCount, writer.pointee.depth)
    self.writer = nil
    (topID, topContainerID) = (0, 0)
    defer {
      self.writer = writer
      (topID, topContainerID) = outerIDs
    }
    do {
      try withUnsafePointer(to: value) { value in
        try UnsafeRawPointer(value).assumingMemoryBound(to: Convertible.self).pointee.write(to: &writer.pointee)
      }
    } catch let error as EncodingError {
      throw error.naming(value)
    }
    guard writer.pointee.itemCount == itemCount + 1, writer.pointee.depth == depth else {
      throw writer.pointee.invalid("A \(type) must write itself as one data item.")
    }
  }

  /// Lets a value encode itself.
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
      // Values that hold values without a container of their own between them. Levels are more, because those of nested
      // containers stay until the value to which they belong is finished.
      if fields.pointee.valueCount > 4 * CBORWriter.maximumDepth { throw writer.pointee.tooDeep() }
      try value.encode(to: EncodingHandle(state: self, index: index, id: topID))
      if fields.pointee.isUnusual { try throwRefusal(from: refusalCount) }
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

  /// Throws the first refusal from one on: a container that could not be made, though nothing was written to it.
  private func throwRefusal(from first: Int) throws {
    if fields.pointee.refusals.count > first { throw fields.pointee.refusals[first].error }
  }

  // MARK: Levels

  /// Opens a level in the innermost one.
  @discardableResult
  func open(_ kind: EncodingLevel.Kind, start: Int) -> Int {
    guard let writer else { return 0 }
    if levelCount == fields.pointee.levelCapacity { growLevels() }
    if top >= 0 {
      levels[top].itemCount = writer.pointee.itemCount
      levels[top].keyBits = writer.pointee.keyBits
    }
    fields.pointee.lastID += 1
    let id = fields.pointee.lastID
    (levels + levelCount).initialize(
      to: EncodingLevel(id: id, parent: top, start: start, depth: writer.pointee.depth, kind: kind))
    writer.pointee.itemCount = 0
    top = levelCount
    (topID, topContainerID) = (id, 0)
    levelCount += 1
    return top
  }

  /// Makes room for more levels.
  ///
  /// The old memory stays, because somebody may have kept what points there.
  private func growLevels() {
    let capacity = max(fields.pointee.levelCapacity * 2, 16)
    let larger = UnsafeMutablePointer<EncodingLevel>.allocate(capacity: capacity)
    larger.update(from: levels, count: levelCount)
    fields.pointee.formerLevels.append(levels)
    fields.pointee.levels = larger
    fields.pointee.levelCapacity = capacity
  }

  /// Closes the innermost level.
  func closeTop() throws {
    guard let writer else { return }
    let index = top
    let level = levels + index
    let itemCount = writer.pointee.itemCount
    let before = writer.pointee.count
    let (outerCount, outerKeyBits) =
      level.pointee.parent >= 0
      ? (levels[level.pointee.parent].itemCount, levels[level.pointee.parent].keyBits) : (0, 0)
    let container = CBORWriter.Container(
      offset: level.pointee.start, outerCount: outerCount, outerKeyBits: outerKeyBits)
    switch level.pointee.kind {
    case .single:
      if itemCount == 0 {
        // A value that encodes nothing is an empty map, as it is with JSON.
        guard writer.pointee.depth < CBORWriter.maximumDepth else { throw writer.pointee.tooDeep() }
        writer.pointee.reserve(1)
        writer.pointee.putByte(0xA0)
      } else if itemCount > 1 {
        throw writer.pointee.invalid(
          "A value must be encoded as one data item, not as \(itemCount).", at: level.pointee.start)
      }
      writer.pointee.itemCount = outerCount + 1
      writer.pointee.keyBits = outerKeyBits
    case .map: try writer.pointee.closeMap(container)
    case .array: writer.pointee.closeArray(container)
    }
    // A longer head has moved what was closed before.
    if level.pointee.kind != .single, writer.pointee.count != before {
      let distance = writer.pointee.count - before
      for later in index + 1..<levelCount {
        levels[later].start += distance
        levels[later].end += distance
      }
    }
    level.pointee.itemCount = itemCount
    level.pointee.end = writer.pointee.count
    level.pointee.isOpen = false
    top = level.pointee.parent
    (topID, topContainerID) = top >= 0 ? (levels[top].id, levels[top].containerID) : (0, 0)
  }

  /// Whether a handle is that of a level there is.
  private func isLevel(_ handle: EncodingHandle) -> Bool {
    guard handle.index < levelCount else { return false }
    let level = levels + handle.index
    return level.pointee.id == handle.id || level.pointee.containerID == handle.id
  }

  /// Refuses a handle that cannot be written to.
  private func check(_ handle: EncodingHandle) throws {
    if handle.id < 0, let refusal = fields.pointee.refusals.first(where: { $0.id == handle.id }) { throw refusal.error }
    guard let writer, isLevel(handle) else { throw EncodingHandle.finished(()) }
    guard handle.index >= scope else {
      throw writer.pointee.invalid(
        "A container is written to while a value within it is being encoded.", at: levels[handle.index].start)
    }
  }

  /// Makes a handle of a container that could not be made; the error is thrown by the first write to it.
  func refuse(_ error: any Error) -> EncodingHandle {
    fields.pointee.lastID += 1
    let id = -fields.pointee.lastID
    fields.pointee.refusals.append((id, error))
    fields.pointee.isUnusual = true
    return EncodingHandle(state: self, index: 0, id: id)
  }

  /// Gets ready to write into a level.
  ///
  /// - Returns: The state that writes it, in which it is the innermost level.
  func reach(_ handle: EncodingHandle) throws -> EncodingState {
    try check(handle)
    if levels[handle.index].isOpen {
      while top != handle.index { try closeTop() }
      return self
    }
    if levels[handle.index].fragment < 0 {
      levels[handle.index].fragment = fields.pointee.fragments.count
      fields.pointee.fragments.append((handle.index, takeFragment(of: handle)))
      fields.pointee.isUnusual = true
    }
    let fragment = fields.pointee.fragments[levels[handle.index].fragment].state
    while fragment.top != 0 { try fragment.closeTop() }
    return fragment
  }

  /// Opens the map or array of a level, or goes on with the one that is there.
  ///
  /// - Returns: Where to write; the first write there is refused if something else is there already.
  func container(_ kind: EncodingLevel.Kind, _ handle: EncodingHandle) -> EncodingHandle {
    do {
      try open(kind, handle)
      return handle
    } catch {
      return refuse(error)
    }
  }

  private func open(_ kind: EncodingLevel.Kind, _ handle: EncodingHandle) throws {
    try check(handle)
    guard let writer else { return }
    let level = levels + handle.index
    if level.pointee.kind == kind { return }
    guard level.pointee.kind == .single else {
      throw writer.pointee.invalid(
        "An encoder has either a keyed or an unkeyed container, not both.", at: level.pointee.start)
    }
    // The innermost one, or one that the writing will reach.
    if level.pointee.isOpen { while top != handle.index { try closeTop() } }
    let itemCount = level.pointee.isOpen ? writer.pointee.itemCount : level.pointee.itemCount
    guard itemCount == 0, level.pointee.fragment < 0 else {
      throw writer.pointee.invalid(
        "An encoder that has encoded a single value has no other container.", at: level.pointee.start)
    }
    if level.pointee.isOpen {
      _ = try writer.pointee.open(kind.major)
    } else {
      // It was closed as an empty map, and is an empty array if nothing is written into it.
      writer.pointee.start.storeBytes(of: kind.major, toByteOffset: level.pointee.start, as: UInt8.self)
    }
    level.pointee.kind = kind
  }

  /// The container for the fields of the map of a level, which is there.
  func keyedContainer<Key: CodingKey>(_ handle: EncodingHandle, keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    guard isLevel(handle) else { return refusedKeyedContainer(handle, keyedBy: type) }
    let level = levels + handle.index
    let isFirst = level.pointee.containerID == 0
    if isFirst {
      let unused = fields.pointee.containers.unused(keyedBy: type, at: handle.index)
      if unused == nil { fields.pointee.lastID += 1 }
      level.pointee.containerID = unused?.id ?? fields.pointee.lastID
      if top == handle.index { topContainerID = level.pointee.containerID }
      if let unused { return unused.container(KeyedEncodingContainer<Key>.self) }
    }
    return newKeyedContainer(handle, keyedBy: type, isFirst: isFirst)
  }

  /// A container that nothing can be written to.
  @inline(never)
  private func refusedKeyedContainer<Key: CodingKey>(
    _ handle: EncodingHandle, keyedBy type: Key.Type
  ) -> KeyedEncodingContainer<Key> {
    KeyedEncodingContainer(KeyedCBOREncodingContainer<Key>(handle: handle))
  }

  /// Makes a container; apart from what is done for most values, which needs no generic types.
  @inline(never)
  private func newKeyedContainer<Key: CodingKey>(
    _ handle: EncodingHandle, keyedBy type: Key.Type, isFirst: Bool
  ) -> KeyedEncodingContainer<Key> {
    let level = levels + handle.index
    // A further one has the number of the level, which never comes twice: the first one's does, with its container.
    let id = isFirst ? level.pointee.containerID : level.pointee.id
    let container = KeyedEncodingContainer(
      KeyedCBOREncodingContainer<Key>(handle: EncodingHandle(state: self, index: handle.index, id: id)))
    if isFirst { fields.pointee.containers.keep(container, keyedBy: type, at: handle.index, id: id) }
    return container
  }

  /// Opens a level in the innermost one, for a container that the caller keeps.
  func nest(_ kind: EncodingLevel.Kind) throws -> EncodingHandle {
    guard let writer else { throw EncodingHandle.finished(()) }
    // Before the level: one without its container would be closed as if it had one.
    if kind != .single { try writer.pointee.checkDepth(1) }
    let index = open(kind, start: writer.pointee.count)
    if kind != .single {
      _ = try writer.pointee.open(kind.major)
    }
    return EncodingHandle(state: self, index: index, id: topID)
  }

  /// How many items there are in a level.
  func itemCount(_ handle: EncodingHandle) -> Int {
    guard isLevel(handle) else { return 0 }
    if top == handle.index, let writer { return writer.pointee.itemCount }
    let level = levels[handle.index]
    var added = 0
    if level.fragment >= 0 {
      let state = fields.pointee.fragments[level.fragment].state
      added = state.itemCount(EncodingHandle(state: state, index: 0, id: state.levels[0].id))
    }
    // Of a level that is open one item more has begun, or it would be the innermost one.
    return level.itemCount + (level.isOpen ? 1 : 0) + added
  }

  /// The path to a level.
  func path(to handle: EncodingHandle) -> [any CodingKey] {
    let prefix = fields.pointee.owner.map { $0.state.path(to: $0) } ?? []
    guard let writer, isLevel(handle) else { return prefix }
    return prefix + writer.pointee.path(to: levels[handle.index].start)
  }
}
