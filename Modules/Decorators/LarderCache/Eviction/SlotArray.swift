/// Elements by slot, in memory that is reserved once: it never grows and never moves.
///
/// It is `Sendable` since it alone knows its memory, cannot be copied, and changes it in mutating methods only: who may call
/// one has it to himself.
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
    elements = .allocate(capacity: count)
    elements.initialize(repeating: element)
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
