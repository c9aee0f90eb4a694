import ArgumentParser
import Larder

/// The way through a range of a store, a page at a time, so that memory does not grow with the store.
struct StoreWalk {
  /// How many entries are read at once.
  static let pageSize = 256

  /// The keys that are still to come.
  private(set) var remaining: KeyRange

  /// The direction.
  let order: ScanOrder

  /// How many entries may still come.
  private var limit: Int

  /// Where to go on later, once the limit has cut the walk short.
  private(set) var next: PageCursor?

  /// Starts a walk.
  ///
  /// - Parameters:
  ///   - range: The keys to go through.
  ///   - order: The direction.
  ///   - cursor: Where an earlier walk ended; `nil` for the beginning of the range.
  ///   - limit: The most entries to go through; `nil` for all of them.
  /// - Throws: `ValidationError` where the cursor goes in the other direction.
  init(_ range: KeyRange, order: ScanOrder = .ascending, after cursor: PageCursor? = nil, limit: Int? = nil) throws {
    guard cursor == nil || cursor?.order == order else {
      throw ValidationError("The cursor comes from a list in the other direction; add or leave out --reverse")
    }
    remaining = cursor.map { range.part(beyond: $0.key, in: order) } ?? range
    self.order = order
    self.limit = limit ?? .max
  }

  /// Goes through the range.
  ///
  /// - Parameters:
  ///   - key: The key of an item.
  ///   - read: Reads the first items of a range, so many at most.
  ///   - visit: Gets each item.
  /// - Throws: What `read` and `visit` throw.
  mutating func run<Item>(
    key: (Item) -> StoreKey,
    read: (KeyRange, Int) async throws -> [Item],
    visit: (Item) throws -> Void
  ) async throws {
    while limit > 0 {
      // One more than wanted tells whether the limit cuts anything off.
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

extension KeyRange {
  /// The part of the range that lies behind a key in a direction.
  fileprivate func part(beyond key: StoreKey, in order: ScanOrder) -> KeyRange {
    switch order {
    case .ascending: after(key)
    case .descending: before(key)
    }
  }
}
