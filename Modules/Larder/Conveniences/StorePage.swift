/// A page of the entries of a store, as they were at one moment.
public struct StorePage<Value: Sendable>: Sendable {
  /// The entries, in the order of the pages.
  public let entries: [StoreEntry<Value>]

  /// Where the next page begins, or `nil` where this was the last one when it was read.
  public let next: PageCursor?
}

extension StorePage: Equatable where Value: Equatable {}
