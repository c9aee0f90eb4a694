public import Larder

/// A decorator that reports the writes of a store with one owner to observers.
///
/// ```swift
/// let notes = try await JSONFileStore<Note>(path: "notes.json").observable()
///
/// for try await newest in notes.entries(observing: .all, limit: 20, order: .descending) {
///   show(newest)                                          // now, and after each change
/// }
/// ```
///
/// **It sees only the writes that are made through it.** Put it directly around the store, below all other decorators, and
/// write only through the stack. Then it sees the writes of every layer, such as purges of expired entries, and the layers
/// above pass its reports on.
///
/// A store that several processes can share, such as `LMDBStore`, reports its changes itself. Over such a store, the
/// decorator passes these reports on.
///
/// A write is passed to the base first, and reported when the base returns. A write with an error whose outcome is
/// unknown is also reported. Writes that run at the same time may be reported in either order. Without an observer, a
/// write costs two atomic additions and an uncontended lock more.
public final class ObservingStore<Base: DataStore>: DataStore {
  /// The type of the values in the base.
  public typealias Value = Base.Value

  /// The store that is observed.
  public let base: Base

  private let observers = StoreObservers()

  /// The writes whose report is pending, for which closing waits.
  private let writes = RunningOperations()

  /// The base, if it reports its changes itself.
  private let observation: (any ObservableStore<Base.Value>)?

  /// Creates a store that reports the writes to another one.
  ///
  /// - Parameter base: The store to observe.
  public init(_ base: Base) {
    self.base = base
    observation = AnyDataStore(base).observation
  }

  /// The information of the base, with the commits of this object as reported, unless the base reports its own.
  public var information: StoreInformation {
    var information = base.information
    if observation == nil { information.reportedCommits = .ofObject }
    return information
  }

  // MARK: Writing

  /// Applies several changes to the base atomically, and reports them; see `DataStore`.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try beginWrite(.apply)
    defer { writes.end() }
    // Without `reporting`, whose closures would take longer than everything else here.
    do {
      try await base.apply(changes)
    } catch {
      if mayHaveChangedSomething(error) { observers.report(changes) }
      throw error
    }
    observers.report(changes)
  }

  /// Reads and writes several values of the base as one atomic step, and reports the keys that the body assigned; see
  /// `DataStore`.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try beginWrite(.update)
    defer { writes.end() }
    // Those of the last run, because a store may repeat the body, or `nil` before the first.
    let assigned = Locked<[StoreKey]?>(nil)
    let result: Result
    do {
      result = try await base.update(deciding: keys) { slots in
        let decision = body(&slots)
        let changed = decision.isCommit ? slots.assignedIndices.map { keys[$0] } : []
        assigned.withLock { $0 = changed }
        return decision
      }
    } catch {
      if mayHaveChangedSomething(error) { observers.report(assigned.withLock { $0 } ?? keys) }
      throw error
    }
    observers.report(assigned.withLock { $0 } ?? [])
    return result
  }

  /// Performs a write, and reports it unless it is known to have changed nothing.
  private func reporting<Result>(
    _ operation: StoreOperation, _ report: (StoreObservers) -> Void, write: () async throws -> Result
  ) async throws -> Result {
    try beginWrite(operation)
    defer { writes.end() }
    let result: Result
    do {
      result = try await write()
    } catch {
      if mayHaveChangedSomething(error) { report(observers) }
      throw error
    }
    report(observers)
    return result
  }

  private func beginWrite(_ operation: StoreOperation) throws {
    guard writes.begin() else { throw information.closedError(for: operation) }
  }

  private func mayHaveChangedSomething(_ error: any Error) -> Bool {
    switch error {
    case let error as StoreError: error.outcome == .unknown
    case is CancellationError: false
    default: true
    }
  }

  /// Ensures that every earlier write survives a power failure; see `DataStore`.
  public func synchronize() async throws {
    try await base.synchronize()
  }

  /// Closes the base, and ends all observations; see `DataStore`.
  public func close() async throws {
    // The base waits for the writes, but not for their reports.
    await writes.close()
    defer { observers.close() }
    try await base.close()
  }
}

extension ObservingStore: ObservableStore {
  /// Observes a range, of the base if it is observable itself; see `ObservableStore`.
  ///
  /// ```swift
  /// let observation = notes.observe(.prefix("inbox/")) { event in
  ///   if case .changed = event { unread.store(true, ordering: .relaxed) }
  /// }
  /// ```
  public func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
    observation?.observe(range, observer) ?? observers.add(range, observer)
  }
}

extension ObservingStore: ReadForwardingStore {
  /// Performs an operation of a capability on the base, and reports the entries that it may have changed.
  public func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: () async throws -> Result
  ) async throws -> Result {
    switch operation {
    // A touch may change the moment when an observed value expires.
    case .apply, .touch, .purgeExpired:
      let change = key.map(StoreChange.key) ?? .range(.all)
      return try await reporting(operation) {
        $0.report([change])
      } write: {
        try await body()
      }
    default:
      return try await body()
    }
  }
}

extension ObservingStore: ExpirableStore where Base: ExpirableStore {}
extension ObservingStore: FlushableStore where Base: FlushableStore {}
extension ObservingStore: MaintainableStore where Base: MaintainableStore {}

/// An invalidation is reported as a change, because the next read may find what another writer wrote to the base.
extension ObservingStore: InvalidatableStore where Base: InvalidatableStore {
  /// Removes the cached entry of a key from the base; see `InvalidatableStore`.
  public func invalidate(_ key: StoreKey) throws {
    try base.invalidate(key)
    observers.report([key])
  }

  /// Removes all cached entries from the base; see `InvalidatableStore`.
  public func invalidateAll() throws {
    try base.invalidateAll()
    observers.report([.range(.all)])
  }
}

extension DataStore {
  /// Returns a decorator that reports the writes that are made through it; see ``ObservingStore``.
  ///
  /// ```swift
  /// let sessions = try await JSONFileStore(path: folder + "/sessions.json", codec: .json(Session.self).expiring())
  ///   .observable()
  ///   .expiring(.sliding(.seconds(1800)))
  /// let session = sessions.updates(forKey: "7f3a")
  /// ```
  public func observable() -> ObservingStore<Self> {
    ObservingStore(self)
  }
}
