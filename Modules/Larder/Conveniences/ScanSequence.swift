/// An asynchronous sequence of the entries or the keys of a range, which ``DataStore/entries(in:order:)`` and
/// ``DataStore/keys(in:order:)`` return.
///
/// It reads the range slice by slice, so a long range does not have to fit in memory. Each slice is one snapshot.
public struct ScanSequence<Element: Sendable>: AsyncSequence, Sendable {
  private let range: KeyRange
  private let order: ScanOrder
  private let key: @Sendable (Element) -> StoreKey
  private let read: @Sendable (_ range: KeyRange, _ limit: Int) async throws -> [Element]

  /// Creates a sequence.
  ///
  /// - Parameters:
  ///   - range: The range of keys. Defaults to all keys.
  ///   - order: The order. Defaults to ascending.
  ///   - key: A closure that returns the key of an element.
  ///   - read: A closure that returns the first elements of a range, in the direction and up to a limit.
  public init(
    in range: KeyRange = .all, order: ScanOrder = .ascending, key: @escaping @Sendable (Element) -> StoreKey,
    read: @escaping @Sendable (_ range: KeyRange, _ limit: Int) async throws -> [Element]
  ) {
    self.range = range
    self.order = order
    self.key = key
    self.read = read
  }

  /// Returns an iterator that starts at the beginning of the range.
  public func makeAsyncIterator() -> Iterator {
    Iterator(sequence: self, remaining: range)
  }

  /// An iterator over the entries or keys.
  public struct Iterator: AsyncIteratorProtocol {
    /// The number of elements that are read at a time.
    private static var sliceSize: Int { 256 }

    fileprivate let sequence: ScanSequence

    /// The part of the range that is not read yet, or `nil` at the end and after an error.
    fileprivate var remaining: KeyRange?

    fileprivate var slice: ArraySlice<Element> = []

    /// The error of the damage that follows the slice.
    fileprivate var damage: StoreError?

    /// Returns the next entry or key, or `nil` at the end and after an error.
    ///
    /// - Parameter actor: The actor of the caller. A `for try await` loop passes it automatically.
    /// - Throws: As ``DataStore/entries(in:limit:order:)`` or ``DataStore/keys(in:limit:order:)``; `CancellationError` if
    ///   the task was cancelled and the iterator needs to read from the store.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws -> Element? {
      if slice.isEmpty, let range = remaining.take() {
        try Task.checkCancellation()
        do {
          slice = try await sequence.read(range, Iterator.sliceSize)[...]
          if slice.count >= Iterator.sliceSize, let last = slice.last {
            do {
              remaining = try range.rest(behind: sequence.key(last), in: sequence.order, of: "", during: .entries)
            } catch {
              damage = error
            }
          }
        } catch let error as StoreError where error.isValueUnreadable {
          // The entries before the damaged one are readable, so return them first.
          guard let key = error.key else { throw error }
          slice = try await sequence.read(range.part(upTo: key, in: sequence.order), Iterator.sliceSize)[...]
          damage = error
        }
      }
      if slice.isEmpty, let error = damage.take() { throw error }
      return slice.popFirst()
    }
  }
}

extension KeyRange {
  /// Returns the part of the range that a scan reads after it has reached a key.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - order: The direction of the scan.
  public func part(beyond key: StoreKey, in order: ScanOrder) -> KeyRange {
    switch order {
    case .ascending: after(key)
    case .descending: before(key)
    }
  }

  /// Returns the part of the range that a scan reads after a page of entries, which leads further.
  ///
  /// In a damaged store, keys can be in no order. A loop over its pages would otherwise never end.
  ///
  /// ```swift
  /// remaining = try remaining.rest(behind: last.key, of: information.name, during: .entries)
  /// ```
  ///
  /// - Parameters:
  ///   - last: The last key of the page.
  ///   - order: The direction of the scan. Defaults to ascending.
  ///   - store: The name of the store.
  ///   - operation: The operation that scans.
  /// - Throws: ``StoreError`` with `corrupted` if the key is not in the range.
  public func rest(
    behind last: StoreKey, in order: ScanOrder = .ascending, of store: String, during operation: StoreOperation
  ) throws(StoreError) -> KeyRange {
    guard contains(last) else {
      throw StoreError(
        .corrupted, during: operation, store: store,
        message: "the store is damaged: a scan returned keys outside of its range; run verify to locate the damage")
    }
    return part(beyond: last, in: order)
  }

  /// Returns the part of the range that a scan reads before it reaches a key.
  func part(upTo key: StoreKey, in order: ScanOrder) -> KeyRange {
    part(beyond: key, in: order == .ascending ? .descending : .ascending)
  }
}
