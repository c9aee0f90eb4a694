import Larder

/// The differences between two sorted sequences of entries, in key order.
///
/// Both are read once, side by side, so neither has to fit into memory.
struct SortedDifference<New: Sequence, Old: AsyncSequence, Value: Equatable>: AsyncSequence
where New.Element == StoreEntry<Value>, Old.Element == StoreEntry<Value> {
  typealias Element = Difference<Value>

  private let new: New
  private let old: Old

  /// Compares two sequences.
  ///
  /// - Parameters:
  ///   - new: The new entries, in key order, without duplicate keys.
  ///   - old: The old entries, in key order, without duplicate keys.
  init(from old: Old, to new: New) {
    self.new = new
    self.old = old
  }

  func makeAsyncIterator() -> Iterator {
    Iterator(new: new.makeIterator(), old: old.makeAsyncIterator())
  }

  struct Iterator: AsyncIteratorProtocol {
    private var new: New.Iterator
    private var old: Old.AsyncIterator
    private var nextNew: StoreEntry<Value>?
    private var nextOld: StoreEntry<Value>?
    private var hasStarted = false

    init(new: New.Iterator, old: Old.AsyncIterator) {
      self.new = new
      self.old = old
    }

    mutating func next(isolation actor: isolated (any Actor)?) async throws -> Difference<Value>? {
      if !hasStarted {
        hasStarted = true
        nextNew = new.next()
        nextOld = try await old.next(isolation: actor)
      }
      if let newEntry = nextNew, nextOld.map({ newEntry.key < $0.key }) ?? true {
        nextNew = new.next()
        return .added(newEntry)
      }
      guard let oldEntry = nextOld else { return nil }
      nextOld = try await old.next(isolation: actor)
      guard let newEntry = nextNew, newEntry.key == oldEntry.key else { return .removed(oldEntry.key) }
      nextNew = new.next()
      return newEntry.value == oldEntry.value ? .unchanged(newEntry.key) : .changed(newEntry)
    }
  }
}
