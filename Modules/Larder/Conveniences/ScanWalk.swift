/// Where a walk through a range stands: the part of the range that is still to be read, slice by slice.
struct ScanWalk: Sendable {
  /// How many entries are read at once.
  static let sliceSize = 256

  let order: ScanOrder
  private var remaining: KeyRange?

  init(range: KeyRange, order: ScanOrder) {
    remaining = range
    self.order = order
  }

  /// Takes out the part that is still to be read; `nil` where there is none.
  ///
  /// What is taken out is gone until ``advance(in:count:lastKey:)`` gives back the rest: a walk whose reading failed is
  /// at its end, as an iterator that threw must be.
  mutating func takeRemaining() -> KeyRange? {
    defer { remaining = nil }
    return remaining
  }

  /// Notes that a slice was read.
  ///
  /// - Parameters:
  ///   - range: The part of the range that ``takeRemaining()`` gave.
  ///   - count: How many entries the slice had.
  ///   - lastKey: The key of its last entry.
  mutating func advance(in range: KeyRange, count: Int, lastKey: StoreKey?) {
    guard count >= ScanWalk.sliceSize, let lastKey else { return }
    remaining = range.part(beyond: lastKey, in: order)
  }
}

extension KeyRange {
  /// The part of the range that a scan still has before it once it has reached a key.
  func part(beyond key: StoreKey, in order: ScanOrder) -> KeyRange {
    switch order {
    case .ascending: after(key)
    case .descending: before(key)
    }
  }

  /// The part of the range that a scan goes through before it reaches a key.
  func part(upTo key: StoreKey, in order: ScanOrder) -> KeyRange {
    part(beyond: key, in: order == .ascending ? .descending : .ascending)
  }
}
