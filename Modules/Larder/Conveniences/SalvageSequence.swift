extension DataStore {
  /// Returns the entries of a range that can be read, and the keys of those that cannot.
  ///
  /// Use it to rescue what is left of a damaged store. Open that store with the access `readOnly`, so that it stays as it is:
  ///
  /// ```swift
  /// for try await part in damaged.salvage() {
  ///   switch part {
  ///   case .entries(let entries): try await rescued.apply(ChangeBatch(entries.map { .set($0.key, $0.value) }))
  ///   case .unreadable(_, let error): print(error.detailedDescription)
  ///   }
  /// }
  /// ```
  ///
  /// To keep deadlines, salvage the store below the expiring one, whose values contain them. Changes of other writers in the
  /// meantime may be missing.
  ///
  /// - Parameters:
  ///   - range: The range of keys. Defaults to all keys.
  ///   - batchSize: The maximum number of entries of a part, from 1. Defaults to 1,000.
  public func salvage(in range: KeyRange = .all, batchSize: Int = 1000) -> SalvageSequence<Value> {
    SalvageSequence(self, in: range, batchSize: batchSize)
  }
}

/// A part of what ``DataStore/salvage(in:batchSize:)`` finds.
///
/// ```swift
/// if case .unreadable(let keys, _) = part { lost.append(keys) }
/// ```
public enum SalvagedPart<Value: Sendable>: Sendable {
  /// Entries that could be read, in ascending order.
  case entries([StoreEntry<Value>])

  /// Keys whose entries could not be read, and the error.
  ///
  /// If the damage hides which keys there are, it is a range that may contain any number of entries.
  case unreadable(KeyRange, StoreError)
}

/// An asynchronous sequence of the readable entries of a store that may be damaged, which ``DataStore/salvage(in:batchSize:)`` returns.
///
/// It uses scans only. A page of entries that cannot be read is read in smaller pieces, down to single entries, so that all
/// entries before the damage are found. The sequence then continues after the keys that the error names, and ends at an error that
/// names none.
public struct SalvageSequence<Value: Sendable>: AsyncSequence, Sendable {
  private let store: any DataStore<Value>
  private let range: KeyRange
  private let batchSize: Int

  fileprivate init(_ store: some DataStore<Value>, in range: KeyRange, batchSize: Int) {
    (self.store, self.range, self.batchSize) = (store, range, batchSize)
  }

  /// Returns an iterator that starts at the beginning of the range.
  public func makeAsyncIterator() -> Iterator {
    Iterator(store: store, batchSize: batchSize, remaining: range)
  }

  /// An iterator over the parts.
  public struct Iterator: AsyncIteratorProtocol {
    private let store: any DataStore<Value>
    private let batchSize: Int

    /// The number of entries that are read next, which is small near damage.
    private var size: Int

    /// The keys behind the parts that were returned, or `nil` at the end.
    ///
    /// With a sequence of this range, a program can continue later.
    public private(set) var remaining: KeyRange?

    fileprivate init(store: any DataStore<Value>, batchSize: Int, remaining: KeyRange) {
      (self.store, self.batchSize, size, self.remaining) = (store, batchSize, batchSize, remaining)
    }

    /// Returns the next part, or `nil` at the end.
    ///
    /// - Parameter actor: The actor of the caller. A `for try await` loop passes it automatically.
    /// - Throws: ``StoreError`` with `invalidArgument` if the batch size is less than 1; as ``DataStore/entries(in:limit:order:)``,
    ///   except for damage; `CancellationError` if the task was cancelled. Another call tries again.
    public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws -> SalvagedPart<Value>?
    {
      try store.checkBatchSize(batchSize, for: .entries)
      while let range = remaining, !range.isEmpty {
        try Task.checkCancellation()
        do {
          let entries = try await store.entries(in: range, limit: size, order: .ascending)
          remaining =
            try entries.count < size
            ? nil
            : entries.last.map {
              try range.rest(behind: $0.key, of: store.information.name, during: .entries)
            }
          size = size > batchSize / 2 ? batchSize : size * 2
          if !entries.isEmpty { return .entries(entries) }
        } catch let error as StoreError where error.isValueUnreadable {
          guard size == 1 else {
            size /= 2
            continue
          }
          let lost = Self.keys(lostBy: error, in: range)
          remaining = range.part(after: lost)
          return .unreadable(lost, error)
        }
      }
      remaining = nil
      return nil
    }

    /// Returns the keys at or after the beginning of a range that cannot be read.
    private static func keys(lostBy error: StoreError, in range: KeyRange) -> KeyRange {
      // An error that names no keys, or only keys before the range, leaves no key to continue at.
      guard let lost = error.lostKeys?.intersection(range), !lost.isEmpty else { return range }
      return lost
    }
  }
}
