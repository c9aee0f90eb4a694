/// An asynchronous sequence of the entries or the keys of a range, which ``DataStore/entries(in:order:)`` and
/// ``DataStore/keys(in:order:)`` return.
///
/// It reads the range slice by slice, so a long range does not have to fit in memory. Each slice is one snapshot.
public struct ScanSequence<Element: Sendable>: AsyncSequence, Sendable {
  let range: KeyRange
  let order: ScanOrder
  let key: @Sendable (Element) -> StoreKey
  let read: @Sendable (_ range: KeyRange, _ limit: Int, _ order: ScanOrder) async throws -> [Element]

  /// Returns an iterator that starts at the beginning of the range.
  public func makeAsyncIterator() -> Iterator {
    Iterator(sequence: self, walk: ScanWalk(range: range, order: order))
  }

  /// An iterator over the entries or keys.
  public struct Iterator: AsyncIteratorProtocol {
    let sequence: ScanSequence
    var walk: ScanWalk
    var slice: ArraySlice<Element> = []

    /// The error of the damaged entry that follows the slice.
    var damage: StoreError?

    /// Returns the next entry or key, or `nil` at the end and after an error.
    ///
    /// - Parameter actor: The actor of the caller, which a `for try await` loop passes automatically.
    /// - Throws: As ``DataStore/entries(in:limit:order:)`` or ``DataStore/keys(in:limit:order:)``; `CancellationError` if
    ///   the task was cancelled and the iterator needs to read from the store.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws -> Element? {
      if slice.isEmpty, let range = walk.takeRemaining() {
        try Task.checkCancellation()
        do {
          slice = try await sequence.read(range, ScanWalk.sliceSize, walk.order)[...]
          walk.advance(in: range, count: slice.count, lastKey: slice.last.map(sequence.key))
        } catch let error as StoreError where error.concernsStoredValue {
          // The entries before the damaged one are readable, so return them first.
          guard let key = error.key else { throw error }
          slice = try await sequence.read(range.part(upTo: key, in: walk.order), ScanWalk.sliceSize, walk.order)[...]
          damage = error
        }
      }
      if slice.isEmpty, let error = damage {
        damage = nil
        throw error
      }
      return slice.popFirst()
    }
  }
}

/// The state of an iteration over a range, which reads the range slice by slice.
struct ScanWalk: Sendable {
  /// The number of entries that are read at a time.
  static let sliceSize = 256

  let order: ScanOrder
  private var remaining: KeyRange?

  init(range: KeyRange, order: ScanOrder) {
    remaining = range
    self.order = order
  }

  /// Removes and returns the part of the range that is not read yet, or returns `nil` if there is none.
  ///
  /// The part stays removed until ``advance(in:count:lastKey:)`` puts back the rest. Therefore the iteration ends if
  /// the read fails, as it must after an iterator has thrown.
  mutating func takeRemaining() -> KeyRange? {
    defer { remaining = nil }
    return remaining
  }

  /// Records that a slice was read.
  ///
  /// - Parameters:
  ///   - range: The part of the range that ``takeRemaining()`` returned.
  ///   - count: The number of entries in the slice.
  ///   - lastKey: The key of the last entry in the slice.
  mutating func advance(in range: KeyRange, count: Int, lastKey: StoreKey?) {
    guard count >= ScanWalk.sliceSize, let lastKey else { return }
    remaining = range.part(beyond: lastKey, in: order)
  }
}

extension KeyRange {
  /// Returns the part of the range that a scan reads after it has reached a key.
  func part(beyond key: StoreKey, in order: ScanOrder) -> KeyRange {
    switch order {
    case .ascending: after(key)
    case .descending: before(key)
    }
  }

  /// Returns the part of the range that a scan reads before it reaches a key.
  func part(upTo key: StoreKey, in order: ScanOrder) -> KeyRange {
    part(beyond: key, in: order == .ascending ? .descending : .ascending)
  }
}
