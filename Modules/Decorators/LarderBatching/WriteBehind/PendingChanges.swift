import Larder

/// A batch with its size.
struct SizedBatch<Value: Sendable>: Sendable {
  let batch: ChangeBatch<Value>
  let size: BatchSize

  /// The time when the batch was accepted.
  var acceptedAt = Duration.zero

  /// Measures a batch.
  init(_ batch: ChangeBatch<Value>, bounds: BatchBounds<Value>) {
    self.batch = batch
    size = bounds.size(of: batch)
  }

  /// Returns the batch without the changes to some keys.
  func without(_ keys: Set<StoreKey>, bounds: BatchBounds<Value>) -> Self {
    let isKept = { (change: BatchChange<Value>) in change.key.map { !keys.contains($0) } ?? true }
    if batch.changes.allSatisfy(isKept) { return self }
    var rest = SizedBatch(ChangeBatch(batch.changes.filter(isKept)), bounds: bounds)
    rest.acceptedAt = acceptedAt
    return rest
  }
}

/// The scope of an operation, of which no pending change may be left before the base can answer it.
enum ChangeScope: Sendable {
  case all
  case range(KeyRange)
  case keys([StoreKey])
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
  private(set) var contents = SortedEntries<Content>()

  /// The total size of the batches.
  private(set) var size = BatchSize()

  /// A Boolean value that indicates whether nothing is pending.
  var isEmpty: Bool { batches.isEmpty }

  /// The last change to a key, or `nil` if there isn't one.
  subscript(key: StoreKey) -> Content? { contents[key] }

  /// Returns whether a change in a scope is among these changes.
  func overlaps(_ scope: ChangeScope) -> Bool {
    switch scope {
    case .all: !isEmpty
    case .range(let range): contents.count(in: range) > 0
    case .keys(let keys): keys.contains { contents[$0] != nil }
    }
  }

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

  /// Returns all changes and removes them.
  mutating func take() -> Self {
    defer { self = PendingChanges() }
    return self
  }

  /// Adds batches that contain no range removals.
  mutating func add(_ batches: some Sequence<SizedBatch<Value>>) {
    for batch in batches { add(batch) }
  }

  /// Joins batches into one that has only the last change to each key.
  static func joined(_ batches: ArraySlice<SizedBatch<Value>>) -> ChangeBatch<Value> {
    if batches.count == 1, let only = batches.first { return only.batch }
    var keys: Set<StoreKey> = []
    var changes: [BatchChange<Value>] = []
    for batch in batches.reversed() {
      for change in batch.batch.changes.reversed() {
        if let key = change.key, keys.insert(key).inserted { changes.append(change) }
      }
    }
    changes.reverse()
    return ChangeBatch(changes)
  }
}
