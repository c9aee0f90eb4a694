/// The number of a place for an entry; the places of a cache are made with it and used again and again.
struct Slot: Equatable, Sendable, BitwiseCopyable {
  let index: UInt32

  init(_ index: UInt32) {
    self.index = index
  }

  /// No place.
  static var none: Slot { Slot(.max) }
}

/// Elements by slot, in memory that is reserved once: it never grows and never moves.
struct SlotArray<Element: BitwiseCopyable>: ~Copyable {
  let elements: UnsafeMutableBufferPointer<Element>

  /// Makes an array.
  ///
  /// - Parameters:
  ///   - count: How many elements there are.
  ///   - element: What each is at first.
  init(count: Int, repeating element: Element) {
    // From the beginning of a line of the processor's cache, so that what lies in 64 bytes lies in one line.
    let memory = UnsafeMutableRawBufferPointer.allocate(
      byteCount: count * MemoryLayout<Element>.stride, alignment: max(64, MemoryLayout<Element>.alignment))
    elements = memory.initializeMemory(as: Element.self, repeating: element)
  }

  deinit {
    elements.deallocate()
  }

  var count: Int { elements.count }

  subscript(slot: Slot) -> Element {
    get { self[Int(slot.index)] }
    set { self[Int(slot.index)] = newValue }
  }

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
