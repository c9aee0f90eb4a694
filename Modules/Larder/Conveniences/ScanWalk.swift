/// Where a walk through a range stands: the part of the range that is still to be read, slice by slice.
struct ScanWalk: Sendable {
  /// How many entries are read at once.
  static let sliceSize = 256

  private(set) var remaining: KeyRange
  let order: ScanOrder
  private(set) var isFinished = false

  init(range: KeyRange, order: ScanOrder) {
    remaining = range
    self.order = order
  }

  /// Notes that a slice was read.
  ///
  /// - Parameters:
  ///   - count: How many entries it had.
  ///   - lastKey: The key of its last entry.
  mutating func advance(count: Int, lastKey: StoreKey?) {
    guard count >= ScanWalk.sliceSize, let lastKey else {
      isFinished = true
      return
    }
    remaining = remaining.part(beyond: lastKey, in: order)
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
}
