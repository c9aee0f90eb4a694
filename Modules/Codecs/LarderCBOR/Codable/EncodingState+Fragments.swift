/// What is written into a container after another one was opened or closed: into a buffer of its own, which is put into its
/// place at the end.
extension EncodingState {
  /// Makes the state of what is written into a level that was closed.
  func takeFragment(of owner: EncodingHandle) -> EncodingState {
    let (state, level) = (EncodingState.take(), levels[owner.index])
    let writer = UnsafeMutablePointer<CBORWriter>.allocate(capacity: 1)
    writer.initialize(to: CBORWriter(capacity: 64))
    writer.pointee.depth = level.kind == .single ? level.depth : level.depth + 1
    writer.pointee.sharedUserInfo = self.writer?.pointee.sharedUserInfo
    state.fields.pointee.ownWriter = writer
    state.fields.pointee.owner = owner
    state.fields.pointee.valueCount = fields.pointee.valueCount
    state.writer = writer
    state.open(level.kind, start: 0)
    return state
  }

  /// Forgets the fragments from one on.
  func dropFragments(from first: Int) {
    guard fields.pointee.fragments.count > first else { return }
    for fragment in fields.pointee.fragments[first...] { fragment.state.finish() }
    fields.pointee.fragments.removeSubrange(first...)
  }

  /// A change to what was written.
  private struct Edit {
    let offset: Int
    let removedCount: Int
    let bytes: [UInt8]
    /// What comes first where two are made at the same place.
    let order: Int
  }

  /// Puts the fragments from one on, which belong to the innermost value, into their places.
  func splice(from firstFragment: Int) throws {
    guard let writer, fields.pointee.fragments.count > firstFragment else { return }
    var edits: [Edit] = []
    for (place, fragment) in fields.pointee.fragments[firstFragment...] {
      let level = levels[place]
      let (bytes, addedCount) = try fragment.finishFragment()
      let itemCount = level.itemCount + addedCount
      guard addedCount > 0 else { continue }
      var head = CBORWriter(capacity: 16)
      switch level.kind {
      case .single:
        guard itemCount == 1 else {
          throw writer.pointee.invalid("A value must be encoded as one data item, not as \(itemCount).")
        }
      case .map:
        guard itemCount.isMultiple(of: 2) else { throw writer.pointee.invalid("A key of a map has no value.") }
        head.putHead(0xA0, UInt64(itemCount / 2))
        var before = CBORReader(UnsafeRawBufferPointer(rebasing: writer.pointee.written[level.start..<level.end]))
        // Of one that was closed before it became a map it is the head alone, too.
        _ = try before.readHead()
        let pairs = Array(UnsafeRawBufferPointer(start: before.next, count: before.remainingCount)) + bytes
        let twin = try pairs.withUnsafeBytes { try CBORWriter.keyThatComesTwice($0, count: itemCount / 2) }
        if let twin { throw writer.pointee.invalidTwin(twin) }
      case .array: head.putHead(0x80, UInt64(itemCount))
      }
      // What was closed empty is one byte, whatever it became afterwards.
      var before = CBORWriter(capacity: 16)
      before.putHead(0, UInt64(level.kind == .map ? level.itemCount / 2 : level.itemCount))
      edits.append(
        Edit(offset: level.start, removedCount: before.count, bytes: Array(head.written), order: .max))
      // At the same place the end of an inner one comes before that of an outer one, and ends before beginnings.
      edits.append(Edit(offset: level.end, removedCount: 0, bytes: bytes, order: -level.start))
    }
    dropFragments(from: firstFragment)
    edits.sort { ($0.offset, $0.order) < ($1.offset, $1.order) }
    guard let first = edits.first else { return }
    let tail = Array(writer.pointee.written[first.offset...])
    writer.pointee.next = writer.pointee.start + first.offset
    var position = first.offset
    func copy(upTo end: Int) {
      tail[(position - first.offset)..<(end - first.offset)].withUnsafeBytes { append($0) }
      position = end
    }
    func append(_ bytes: UnsafeRawBufferPointer) {
      guard let address = bytes.baseAddress else { return }
      writer.pointee.reserve(bytes.count)
      writer.pointee.next.copyMemory(from: address, byteCount: bytes.count)
      writer.pointee.next += bytes.count
    }
    for edit in edits {
      copy(upTo: edit.offset)
      edit.bytes.withUnsafeBytes { append($0) }
      position += edit.removedCount
    }
    copy(upTo: first.offset + tail.count)
  }

  /// Closes what is open in a fragment; gives its items, without a head.
  private func finishFragment() throws -> ([UInt8], Int) {
    if let refusal = fields.pointee.refusals.first { throw refusal.error }
    while top > 0 { try closeTop() }
    try splice(from: 0)
    guard let writer else { return ([], 0) }
    let itemCount = writer.pointee.itemCount
    let bytes = Array(writer.pointee.written)
    self.writer = nil
    (topID, topContainerID) = (0, 0)
    return (bytes, itemCount)
  }
}
