import Larder

/// The accepted changes that a base may lack, as they were at one moment.
struct PendingView<Value: Sendable>: Sendable {
  typealias Content = PendingChanges<Value>.Content
  typealias Item = (key: StoreKey, content: Content)

  /// The changes by key, the newest layer first.
  let layers: [SortedMap<Content>]

  /// The last change to a key, or `nil` if the base has its value.
  subscript(key: StoreKey) -> Content? {
    for layer in layers {
      if let content = layer[key] { return content }
    }
    return nil
  }

  /// Whether no key of a range has a change.
  func isEmpty(in range: KeyRange) -> Bool { layers.allSatisfy { $0.count(in: range) == 0 } }

  /// The last change to each key of a range, in order.
  func items(in range: KeyRange, order: ScanOrder) -> [Item] {
    var merged = SortedMap<Content>()
    for layer in layers.reversed() {
      layer.forEach(in: range, order: .ascending) { _ = merged.setValue($1, forKey: $0) }
    }
    var items: [Item] = []
    merged.forEach(in: range, order: order) { items.append(($0, $1)) }
    return items
  }

  /// The number of items that remove their key.
  static func removalCount(of items: [Item]) -> Int {
    items.count { if case .removed = $0.content { true } else { false } }
  }

  /// Merges items with entries of a base, both in order, and returns the first entries.
  static func entries(
    _ base: [StoreEntry<Value>], under items: [Item], limit: Int, order: ScanOrder
  ) -> [StoreEntry<Value>] {
    merge(items, over: base, limit: limit, order: order, key: \.key) { item in
      if case .set(let value) = item.content { StoreEntry(key: item.key, value: value) } else { nil }
    }
  }

  /// Merges items with keys of a base, both in order, and returns the first keys.
  static func keys(_ base: [StoreKey], under items: [Item], limit: Int, order: ScanOrder) -> [StoreKey] {
    merge(items, over: base, limit: limit, order: order, key: \.self) { item in
      if case .set = item.content { item.key } else { nil }
    }
  }

  private static func merge<Element>(
    _ items: [Item], over base: [Element], limit: Int, order: ScanOrder, key: (Element) -> StoreKey,
    element: (Item) -> Element?
  ) -> [Element] {
    var result: [Element] = []
    var below = base[...]
    for item in items {
      while let next = below.first, order == .ascending ? key(next) < item.key : key(next) > item.key {
        result.append(next)
        below.removeFirst()
      }
      if let next = below.first, key(next) == item.key { below.removeFirst() }
      if result.count >= limit { break }
      if let element = element(item) { result.append(element) }
    }
    result += below
    return Array(result.prefix(limit))
  }
}
