/// The observed stores of a file that holds several, such as an LMDB environment.
///
/// `Identifier` is what tells the stores of the file apart. A store with a file of its own needs only ``StoreObservers``.
/// A value of this type belongs into the ``Locked`` state of the file. Report outside the lock, from a copy, in the order
/// of the commits.
public struct ObservedStores<Identifier: Hashable & Sendable>: Sendable {
  /// A store that is or was observed, until its handle is released.
  private struct ObservedStore: Sendable {
    let handle: ObjectIdentifier
    let root: ObjectIdentifier
    let identifier: Identifier
    let observers: StoreObservers
  }

  private var stores: [ObservedStore] = []

  /// Creates an empty list.
  public init() {}

  /// A Boolean value that indicates whether any store is observed, so a commit must be reported.
  public var areObserving: Bool { stores.contains { !$0.observers.isEmpty } }

  /// Adds a store, unless it is in the list.
  ///
  /// - Parameters:
  ///   - handle: The handle of the store.
  ///   - root: The handle that it depends on.
  ///   - identifier: The identifier of the store in the file.
  ///   - observers: The observers of the store.
  public mutating func add(
    _ handle: ObjectIdentifier, root: ObjectIdentifier, _ identifier: Identifier, _ observers: StoreObservers
  ) {
    guard !stores.contains(where: { $0.handle == handle }) else { return }
    stores.append(ObservedStore(handle: handle, root: root, identifier: identifier, observers: observers))
  }

  /// Removes the store of a handle that is released, and those that depend on the handle.
  ///
  /// - Parameter handle: The handle.
  /// - Returns: Their observers, which you must close.
  public mutating func remove(_ handle: ObjectIdentifier) -> [StoreObservers] {
    let removed = stores.filter { $0.handle == handle || $0.root == handle }
    stores.removeAll { $0.handle == handle || $0.root == handle }
    return removed.map(\.observers)
  }

  /// Removes all stores.
  ///
  /// - Returns: Their observers, which you must close.
  public mutating func removeAll() -> [StoreObservers] {
    defer { stores = [] }
    return stores.map(\.observers)
  }

  /// Reports a commit of this process.
  ///
  /// - Parameters:
  ///   - commit: The changes.
  ///   - followsOthers: A Boolean value that indicates whether commits of other processes came before, of which only
  ///     their existence is known.
  public func report(_ commit: CommitRecord<Identifier>, followsOthers: Bool) {
    for store in stores {
      if followsOthers || !commit.isRecording {
        store.observers.report([.range(.all)])
      } else if let changes = commit.changes[store.identifier] {
        store.observers.report(changes)
      }
    }
  }

  /// Reports commits of other processes, of which only their existence is known.
  public func reportOthers() {
    for store in stores { store.observers.report([.range(.all)]) }
  }
}

/// The changes of a write transaction, for the observers of its stores.
public struct CommitRecord<Identifier: Hashable & Sendable>: Sendable {
  /// A Boolean value that indicates whether the changes are recorded.
  ///
  /// This costs time.
  ///
  /// If not, any entry may have changed.
  public let isRecording: Bool

  /// The changes of each store.
  public private(set) var changes: [Identifier: BoundedChanges] = [:]

  /// A Boolean value that indicates whether anything was set or removed.
  public private(set) var hasWritten = false

  /// Creates an empty record.
  ///
  /// - Parameter isRecording: A Boolean value that indicates whether the changes are recorded.
  public init(isRecording: Bool) {
    self.isRecording = isRecording
  }

  /// Records a change.
  ///
  /// - Parameters:
  ///   - change: The change.
  ///   - store: The store.
  ///   - hasWritten: A Boolean value that indicates whether anything was set or removed.
  public mutating func append(_ change: StoreChange, in store: Identifier, hasWritten: Bool) {
    if hasWritten { self.hasWritten = true }
    if isRecording { changes[store, default: BoundedChanges()].append(change) }
  }

  /// Records that something other than an entry was written.
  public mutating func noteWrite() {
    hasWritten = true
  }

  /// Records the changes of a batch.
  ///
  /// - Parameters:
  ///   - batch: The batch.
  ///   - store: The store.
  ///   - hasWritten: A Boolean value that indicates whether anything was set or removed.
  public mutating func append(_ batch: ChangeBatch<some Any>, in store: Identifier, hasWritten: Bool) {
    if hasWritten { self.hasWritten = true }
    if isRecording { changes[store, default: BoundedChanges()].append(batch) }
  }

  /// Records that the entries of some keys were written.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - store: The store.
  ///   - hasWritten: A Boolean value that indicates whether anything was set or removed.
  public mutating func append(_ keys: [StoreKey], in store: Identifier, hasWritten: Bool) {
    for key in keys { append(.key(key), in: store, hasWritten: hasWritten) }
  }

  /// Forgets the changes of an attempt that is repeated.
  public mutating func removeAll() {
    self = CommitRecord(isRecording: isRecording)
  }
}
