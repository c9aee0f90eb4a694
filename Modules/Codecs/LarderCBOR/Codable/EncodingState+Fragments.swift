/// A container that is written to after another one was opened or closed writes to a fragment, a separate buffer.
/// The fragments are inserted at their positions at the end.
extension EncodingState {
  /// Creates the state that writes the fragment of a closed level.
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

  /// Discards the fragments that start at an index.
  func dropFragments(from first: Int) {
    guard fields.pointee.fragments.count > first else { return }
    for fragment in fields.pointee.fragments[first...] { fragment.state.finish() }
    fields.pointee.fragments.removeSubrange(first...)
  }

  /// A change to the bytes that were written.
  private struct Edit {
    let offset: Int
    let removedCount: Int
    let bytes: [UInt8]
    /// The order of edits at the same offset.
    let order: Int
  }

  /// Inserts the fragments that start at an index, which belong to the innermost value, at their positions.
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
          throw writer.pointee.invalid("a value must be encoded as one data item, not \(itemCount)")
        }
      case .map:
        guard itemCount.isMultiple(of: 2) else { throw writer.pointee.invalid("a key of a map has no value") }
        head.putHead(0xA0, UInt64(itemCount / 2))
        var before = CBORReader(UnsafeRawBufferPointer(rebasing: writer.pointee.written[level.start..<level.end]))
        // A level that was closed before it became a map consists of the head alone.
        _ = try before.readHead()
        let pairs = Array(UnsafeRawBufferPointer(start: before.next, count: before.remainingCount)) + bytes
        let twin = try pairs.withUnsafeBytes { try CBORWriter.keyThatComesTwice($0, count: itemCount / 2) }
        if let twin { throw writer.pointee.invalidTwin(twin) }
      case .array: head.putHead(0x80, UInt64(itemCount))
      }
      // The head of a level that was closed while empty is one byte, even if the level became a map or array later.
      var before = CBORWriter(capacity: 16)
      before.putHead(0, UInt64(level.kind == .map ? level.itemCount / 2 : level.itemCount))
      edits.append(
        Edit(offset: level.start, removedCount: before.count, bytes: Array(head.written), order: .max))
      // At the same offset, the end of an inner level comes before that of an outer level, and ends come before starts.
      edits.append(Edit(offset: level.end, removedCount: 0, bytes: bytes, order: -level.start))
    }
    dropFragments(from: firstFragment)
    edits.sort { ($0.offset, $0.order) < ($1.offset, $1.order) }
    guard let first = edits.first else { return }
    let tail = Array(writer.pointee.written[first.offset...])
    writer.pointee.next = writer.pointee.start + first.offset
    var position = first.offset
    func copy(upTo end: Int) {
      tail[(position - first.offset)..<(end - first.offset)].withUnsafeBytes { writer.pointee.putRaw($0) }
      position = end
    }
    for edit in edits {
      copy(upTo: edit.offset)
      edit.bytes.withUnsafeBytes { writer.pointee.putRaw($0) }
      position += edit.removedCount
    }
    copy(upTo: first.offset + tail.count)
  }

  /// Closes the open levels of a fragment, and returns its items without a head and their number.
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
