/// The number of a place for an entry; the places of a cache are used again and again.
@usableFromInline
struct Slot: Equatable, Sendable, BitwiseCopyable {
  @usableFromInline let index: UInt32

  @inlinable
  init(_ index: UInt32) {
    self.index = index
  }

  /// No place.
  @inlinable static var none: Slot { Slot(.max) }
}

/// Elements by slot, in memory that grows with the slots in use and never moves.
///
/// They lie in chunks, each twice as large as the one before. Who reserves a slot, and who uses one, is up to the owner;
/// so are the ends of elements that are not trivial.
///
/// Proof for `@unchecked`: it cannot be copied, so its memory belongs to its one owner. The owners are `CacheTable`, which
/// says by which lock a slot may be used, and `SlotRecords`, which is used under the lock of the order of eviction.
@usableFromInline
struct SlotArray<Element: Sendable>: ~Copyable, @unchecked Sendable {
  @usableFromInline typealias Chunk = UnsafeMutablePointer<Element>

  /// How many chunks there may be.
  ///
  /// The last is never there: it would be that of ``Slot/none``.
  @inlinable static var chunkCount: Int { 27 }

  @usableFromInline let chunks: UnsafeMutablePointer<Chunk?>

  /// Makes an array without elements.
  @inlinable
  init() {
    chunks = .allocate(capacity: SlotArray.chunkCount)
    chunks.initialize(repeating: nil, count: SlotArray.chunkCount)
  }

  @inlinable
  deinit {
    for chunk in 0..<SlotArray.chunkCount { chunks[chunk]?.deallocate() }
    chunks.deallocate()
  }

  /// The chunk of a slot, and its place there: 64 slots are in the first chunk, 128 in the next.
  @inlinable
  static func place(of slot: Slot) -> (chunk: Int, offset: Int) {
    let position = Int(slot.index) + 64
    let bit = Int.bitWidth - 1 - position.leadingZeroBitCount
    return (bit - 6, position - 1 << bit)
  }

  /// Takes memory for a slot, where there is none yet.
  ///
  /// - Parameters:
  ///   - slot: The slot.
  ///   - element: What each new element is at first; nothing unless given.
  @inlinable
  func reserve(_ slot: Slot, repeating element: Element? = nil) {
    let chunk = SlotArray.place(of: slot).chunk
    precondition(chunk < SlotArray.chunkCount - 1)
    guard chunks[chunk] == nil else { return }
    let count = 64 << chunk
    let elements = Chunk.allocate(capacity: count)
    if let element { elements.initialize(repeating: element, count: count) }
    chunks[chunk] = elements
  }

  /// Where the element of a slot is, which was reserved.
  @inlinable
  func pointer(to slot: Slot) -> UnsafeMutablePointer<Element> {
    let (chunk, offset) = SlotArray.place(of: slot)
    guard let elements = chunks[chunk] else { preconditionFailure("There is no memory for the slot.") }
    return elements + offset
  }

  @inlinable
  subscript(slot: Slot) -> Element {
    get { pointer(to: slot).pointee }
    nonmutating set { pointer(to: slot).pointee = newValue }
  }
}
