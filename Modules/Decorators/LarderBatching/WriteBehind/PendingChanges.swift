import Larder

/// A batch with its size.
struct SizedBatch<Value: Sendable>: Sendable {
  let batch: ChangeBatch<Value>
  let size: BatchSize

  /// Measures a batch.
  init(_ batch: ChangeBatch<Value>, bounds: BatchBounds<Value>) {
    self.batch = batch
    size = bounds.size(of: batch)
  }
}

/// Batches that were accepted and not yet written, in the order of their arrival.
///
/// This is plain state. Each batch is kept as it came, even if a later one changes the same keys. If the later one
/// cannot be written, the earlier one still can.
struct PendingChanges<Value: Sendable>: Sendable {
  /// The last change to a key.
  enum Content: Sendable {
    case set(Value)
    case removed

    /// The value after the change, or `nil` if the key is removed.
    var value: Value? {
      if case .set(let value) = self { value } else { nil }
    }
  }

  /// The batches, the oldest first.
  private(set) var batches: [SizedBatch<Value>] = []

  /// The last change to each key.
  private(set) var contents = SortedMap<Content>()

  /// The total size of the batches.
  private(set) var size = BatchSize()

  /// Whether nothing is pending.
  var isEmpty: Bool { batches.isEmpty }

  /// The last change to a key, or `nil` if there is none.
  subscript(key: StoreKey) -> Content? { contents[key] }

  /// Adds a batch that contains no range removal.
  mutating func add(_ batch: SizedBatch<Value>) {
    // Empty batches take no room, so any number of them could accumulate.
    guard !batch.batch.isEmpty else { return }
    batches.append(batch)
    size += batch.size
    // The displaced values stay in their batches. None is released here, under the lock.
    for change in batch.batch.changes {
      switch change {
      case .set(let key, let value): _ = contents.setValue(.set(value), forKey: key)
      case .remove(let key): _ = contents.setValue(.removed, forKey: key)
      case .removeAll: break
      }
    }
  }

  /// Joins batches into one that has only the last change to each key.
  static func joined(_ batches: ArraySlice<SizedBatch<Value>>) -> ChangeBatch<Value> {
    if batches.count == 1, let only = batches.first { return only.batch }
    var keys: Set<StoreKey> = []
    var changes: [Change<Value>] = []
    for batch in batches.reversed() {
      for change in batch.batch.changes.reversed() {
        if let key = change.key, keys.insert(key).inserted { changes.append(change) }
      }
    }
    changes.reverse()
    return ChangeBatch(changes)
  }
}

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
