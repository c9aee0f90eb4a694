/// Elements by slot, in memory that is reserved once: it never grows and never moves.
///
/// It is `Sendable` since it alone knows its memory, cannot be copied, and changes it in mutating methods only: who may
/// call one has it to himself.
@usableFromInline
struct SlotArray<Element: BitwiseCopyable & Sendable>: ~Copyable, @unchecked Sendable {
  @usableFromInline let elements: UnsafeMutableBufferPointer<Element>

  /// Makes an array.
  ///
  /// - Parameters:
  ///   - count: How many elements there are.
  ///   - element: What each is at first.
  @inlinable
  init(count: Int, repeating element: Element) {
    // From the beginning of a line of the processor's cache, so that what lies in 64 bytes lies in one line.
    let memory = UnsafeMutableRawBufferPointer.allocate(
      byteCount: count * MemoryLayout<Element>.stride, alignment: max(64, MemoryLayout<Element>.alignment))
    elements = memory.initializeMemory(as: Element.self, repeating: element)
  }

  @inlinable
  deinit {
    elements.deallocate()
  }

  @inlinable var count: Int { elements.count }

  @inlinable
  subscript(slot: Slot) -> Element {
    get { self[Int(slot.index)] }
    set { self[Int(slot.index)] = newValue }
  }

  @inlinable
  subscript(index: Int) -> Element {
    get {
      precondition(index >= 0 && index < elements.count)
      return elements[index]
    }
    set {
      precondition(index >= 0 && index < elements.count)
      elements[index] = newValue
    }
  }
}
