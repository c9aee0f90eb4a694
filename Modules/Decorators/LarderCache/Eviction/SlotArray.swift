/// The number of a memory location for an entry.
///
/// A cache reuses the slots of removed entries.
@usableFromInline
struct Slot: Equatable, Sendable, BitwiseCopyable {
  @usableFromInline let index: UInt32

  @inlinable
  init(_ index: UInt32) {
    self.index = index
  }

  /// No slot.
  @inlinable static var none: Slot { Slot(.max) }
}

/// An array of elements by slot, in memory that grows with the slots in use and never moves.
///
/// The elements lie in chunks, each twice as large as the one before. The owner decides who may reserve and use a slot,
/// and deinitializes elements that are not trivial.
///
/// Proof for `@unchecked`: the type cannot be copied, so its memory belongs to its only owner. The owners are
/// `CacheTable`, which defines the lock under which a slot may be used, and `SlotRecords`, which is used under the lock
/// of the eviction order.
@usableFromInline
struct SlotArray<Element: Sendable>: ~Copyable, @unchecked Sendable {
  @usableFromInline typealias Chunk = UnsafeMutablePointer<Element>

  /// The maximum number of chunks.
  ///
  /// The last one is never allocated, because it would contain ``Slot/none``.
  @inlinable static var chunkCount: Int { 27 }

  @usableFromInline let chunks: UnsafeMutablePointer<Chunk?>

  /// Creates an array without elements.
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

  /// Returns the chunk of a slot and its offset there.
  ///
  /// The first chunk has 64 slots, the next one 128.
  @inlinable
  static func place(of slot: Slot) -> (chunk: Int, offset: Int) {
    let position = Int(slot.index) + 64
    let bit = Int.bitWidth - 1 - position.leadingZeroBitCount
    return (bit - 6, position - 1 << bit)
  }

  /// Allocates memory for a slot, if there isn't one yet.
  ///
  /// - Parameters:
  ///   - slot: The slot.
  ///   - element: The initial value of each new element. Defaults to `nil`, to leave the memory uninitialized.
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

  /// Returns a pointer to the element of a reserved slot.
  @inlinable
  func pointer(to slot: Slot) -> UnsafeMutablePointer<Element> {
    let (chunk, offset) = SlotArray.place(of: slot)
    guard let elements = chunks[chunk] else { preconditionFailure("the slot was not reserved") }
    return elements + offset
  }

  @inlinable
  subscript(slot: Slot) -> Element {
    get { pointer(to: slot).pointee }
    nonmutating set { pointer(to: slot).pointee = newValue }
  }
}
