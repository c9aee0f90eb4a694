/// A position for one value, and the map or array that is written there.
///
/// Levels are stored in the order they were opened. Closed levels stay until their value is finished, because its type
/// may still write to them.
struct EncodingLevel {
  /// The container that was requested at the position, whose raw value is the major type in a head.
  enum Kind: UInt8 {
    /// No container yet, or a single value.
    case single = 0
    case map = 0xA0
    case array = 0x80
  }

  /// An ID that no other level of the same state has.
  let id: Int

  /// The ID by which its keyed container refers to it, or 0 if it doesn't have one.
  var containerID = 0

  /// The index of the enclosing level, or -1.
  let parent: Int

  /// The offset of its first byte.
  var start: Int

  /// The offset after its last byte, once it is closed.
  var end = 0

  /// The number of its items, valid while it is not the innermost open level.
  var itemCount = 0

  /// The bits of its keys, valid while it is not the innermost open level.
  var keyBits: UInt64 = 0

  /// The nesting depth of the position.
  let depth: Int

  var kind: Kind
  var isOpen = true

  /// The index of the fragment that was written after the level was closed, or -1.
  var fragment = -1
}

extension EncodingState {
  /// Opens a level in the innermost one.
  @discardableResult
  func open(_ kind: EncodingLevel.Kind, start: Int) -> Int {
    guard let writer else { return 0 }
    if top >= 0 {
      levels[top].itemCount = writer.pointee.itemCount
      levels[top].keyBits = writer.pointee.keyBits
    }
    fields.pointee.lastID += 1
    let id = fields.pointee.lastID
    top = fields.pointee.levels.append(
      EncodingLevel(id: id, parent: top, start: start, depth: writer.pointee.depth, kind: kind))
    (topID, topContainerID) = (id, 0)
    writer.pointee.itemCount = 0
    return top
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
        // A value that encodes nothing becomes an empty map, as in JSON.
        guard writer.pointee.depth < CBORWriter.maximumDepth else { throw writer.pointee.tooDeep() }
        writer.pointee.reserve(1)
        writer.pointee.putByte(0xA0)
      } else if itemCount > 1 {
        throw writer.pointee.invalid(
          "a value must be encoded as one data item, not \(itemCount)", at: level.pointee.start)
      }
      writer.pointee.itemCount = outerCount + 1
      writer.pointee.keyBits = outerKeyBits
    case .map: try writer.pointee.closeMap(container)
    case .array: writer.pointee.closeArray(container)
    }
    // A longer head has moved the levels that were closed before.
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

  /// Returns whether the level of a handle still exists.
  func isLevel(_ handle: EncodingHandle) -> Bool {
    guard handle.index < levelCount else { return false }
    let level = levels + handle.index
    return level.pointee.id == handle.id || level.pointee.containerID == handle.id
  }

  /// Throws if the level of a handle cannot be written to.
  private func check(_ handle: EncodingHandle) throws {
    if handle.id < 0, let refusal = fields.pointee.refusals.first(where: { $0.id == handle.id }) { throw refusal.error }
    guard let writer, isLevel(handle) else { throw EncodingHandle.finished(()) }
    guard handle.index >= scope else {
      throw writer.pointee.invalid(
        "a container must not be written to while a value inside it is being encoded", at: levels[handle.index].start)
    }
  }

  /// Returns a handle for a container that could not be created.
  ///
  /// The first write to it throws the error.
  ///
  /// - Parameters:
  ///   - error: The error.
  ///   - handle: The handle of the container or encoder that was asked.
  func refuse(_ error: any Error, by handle: EncodingHandle) -> EncodingHandle {
    // A handle that a type has kept has no level here, and this may be the state of another value, on another thread,
    // by now. A refused one has its refusal already. Both throw at each use.
    guard isLevel(handle) else { return handle }
    fields.pointee.lastID += 1
    let id = -fields.pointee.lastID
    fields.pointee.refusals.append((id, error))
    fields.pointee.isUnusual = true
    return EncodingHandle(state: self, index: 0, id: id)
  }

  /// Prepares for writing to a level.
  ///
  /// - Returns: The state that writes the level, and in which the level is the innermost one.
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

  /// Opens the map or array of a level, or continues with the container that is already open.
  ///
  /// - Returns: The handle to write to. The first write fails if the level already has another container or value.
  func container(_ kind: EncodingLevel.Kind, _ handle: EncodingHandle) -> EncodingHandle {
    do {
      try open(kind, handle)
      return handle
    } catch {
      return refuse(error, by: handle)
    }
  }

  private func open(_ kind: EncodingLevel.Kind, _ handle: EncodingHandle) throws {
    try check(handle)
    guard let writer else { return }
    let level = levels + handle.index
    if level.pointee.kind == kind { return }
    guard level.pointee.kind == .single else {
      throw writer.pointee.invalid(
        "an encoder must have either a keyed or an unkeyed container, not both", at: level.pointee.start)
    }
    // The level is the innermost one, or becomes it when it is written to.
    if level.pointee.isOpen { while top != handle.index { try closeTop() } }
    let itemCount = level.pointee.isOpen ? writer.pointee.itemCount : level.pointee.itemCount
    guard itemCount == 0, level.pointee.fragment < 0 else {
      throw writer.pointee.invalid(
        "an encoder that has encoded a single value must not have another container", at: level.pointee.start)
    }
    if level.pointee.isOpen {
      _ = try writer.pointee.open(kind.rawValue)
    } else {
      // It was closed as an empty map, and becomes an empty array if nothing is written to it.
      writer.pointee.start.storeBytes(of: kind.rawValue, toByteOffset: level.pointee.start, as: UInt8.self)
    }
    level.pointee.kind = kind
  }

  /// Returns the container for the fields of a level's map, which must be open.
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

  /// Returns a container that cannot be written to.
  @inline(never)
  private func refusedKeyedContainer<Key: CodingKey>(
    _ handle: EncodingHandle, keyedBy type: Key.Type
  ) -> KeyedEncodingContainer<Key> {
    KeyedEncodingContainer(KeyedCBOREncodingContainer<Key>(handle: handle))
  }

  /// Creates a container.
  ///
  /// It is separate from the common path, which needs no generic types.
  @inline(never)
  private func newKeyedContainer<Key: CodingKey>(
    _ handle: EncodingHandle, keyedBy type: Key.Type, isFirst: Bool
  ) -> KeyedEncodingContainer<Key> {
    let level = levels + handle.index
    // Later containers use the ID of the level, which is never reused. The ID of the first container is reused with it.
    let id = isFirst ? level.pointee.containerID : level.pointee.id
    let container = KeyedEncodingContainer(
      KeyedCBOREncodingContainer<Key>(handle: EncodingHandle(state: self, index: handle.index, id: id)))
    if isFirst { fields.pointee.containers.keep(container, keyedBy: type, at: handle.index, id: id) }
    return container
  }

  /// Opens a level in the innermost one, for a container that the caller keeps.
  func nest(_ kind: EncodingLevel.Kind) throws -> EncodingHandle {
    guard let writer else { throw EncodingHandle.finished(()) }
    // Checked before the level is opened, because a level without its container would be closed as if it had one.
    if kind != .single { try writer.pointee.checkDepth(1) }
    let index = open(kind, start: writer.pointee.count)
    if kind != .single {
      _ = try writer.pointee.open(kind.rawValue)
    }
    return EncodingHandle(state: self, index: index, id: topID)
  }

  /// Returns the number of items in a level.
  func itemCount(_ handle: EncodingHandle) -> Int {
    guard isLevel(handle) else { return 0 }
    if top == handle.index, let writer { return writer.pointee.itemCount }
    let level = levels[handle.index]
    var added = 0
    if level.fragment >= 0 {
      let state = fields.pointee.fragments[level.fragment].state
      added = state.itemCount(EncodingHandle(state: state, index: 0, id: state.levels[0].id))
    }
    // An open level contains one more item that has been started, because otherwise it would be the innermost level.
    return level.itemCount + (level.isOpen ? 1 : 0) + added
  }

  /// Returns the path to a level.
  func path(to handle: EncodingHandle) -> [any CodingKey] {
    let prefix = fields.pointee.owner.map { $0.state.path(to: $0) } ?? []
    guard let writer, isLevel(handle) else { return prefix }
    return prefix + writer.pointee.path(to: levels[handle.index].start)
  }
}
