import ArgumentParser
import Larder

/// A walk through a range of a store in pages, so that its memory does not grow with the store.
struct StoreWalk {
  /// The number of entries in a page.
  static let pageSize = 256

  /// The keys that are left to visit.
  private(set) var remaining: KeyRange

  /// The direction.
  let order: ScanOrder

  /// The number of entries that are left to visit.
  private var limit: Int

  /// The cursor for continuing later, if the limit has ended the walk.
  private(set) var next: PageCursor?

  /// Creates a walk.
  ///
  /// - Parameters:
  ///   - range: The keys to visit.
  ///   - order: The direction; defaults to ascending.
  ///   - cursor: The end of an earlier walk; defaults to `nil`, for the beginning of the range.
  ///   - limit: The maximum number of entries; defaults to `nil`, for all of them.
  /// - Throws: `ValidationError` if the cursor is one of the other direction.
  init(_ range: KeyRange, order: ScanOrder = .ascending, after cursor: PageCursor? = nil, limit: Int? = nil) throws {
    guard cursor == nil || cursor?.order == order else {
      throw ValidationError("the cursor is from a list in the other direction; add or remove --reverse")
    }
    remaining = cursor.map { range.part(beyond: $0.key, in: order) } ?? range
    self.order = order
    self.limit = limit ?? .max
  }

  /// Visits the items of the range.
  ///
  /// - Parameters:
  ///   - key: Returns the key of an item.
  ///   - read: Reads the first items of a range, up to a limit.
  ///   - visit: Receives each item.
  /// - Throws: The errors of `read` and `visit`.
  mutating func run<Item>(
    key: (Item) -> StoreKey,
    read: (KeyRange, Int) async throws -> [Item],
    visit: (Item) throws -> Void
  ) async throws {
    while limit > 0 {
      // One more item shows whether there are items beyond the page or the limit.
      let size = min(limit, StoreWalk.pageSize)
      let items = try await read(remaining, size + 1)
      let page = items.prefix(size)
      for item in page { try visit(item) }
      guard items.count > size, let last = page.last else { return }
      limit -= size
      remaining = remaining.part(beyond: key(last), in: order)
      if limit == 0 { next = PageCursor(after: key(last), order: order) }
    }
  }
}

extension StoreWalk {
  /// Prints every entry of the range.
  ///
  /// - Throws: The store's errors; ``BrokenOutput``.
  mutating func printEntries(of store: some DataStore<JSONText>, to output: ByteOutput) async throws {
    let order = order
    try await run(key: \.key) { range, limit in
      try await store.entries(in: range, limit: limit, order: order)
    } visit: { entry in
      try output.writeLine { EntryLine.append(key: entry.key, value: entry.value, to: &$0) }
    }
  }

  /// Prints every key of the range.
  ///
  /// - Throws: The store's errors; ``BrokenOutput``.
  mutating func printKeys(of store: some DataStore<JSONText>, to output: ByteOutput) async throws {
    let order = order
    try await run(key: \.self) { range, limit in
      try await store.keys(in: range, limit: limit, order: order)
    } visit: { key in
      try output.writeLine { EntryLine.append(key: key, to: &$0) }
    }
  }
}

extension KeyRange {
  /// Returns the part of the range that comes after a key in a direction.
  fileprivate func part(beyond key: StoreKey, in order: ScanOrder) -> KeyRange {
    switch order {
    case .ascending: after(key)
    case .descending: before(key)
    }
  }
}
