import Synchronization

extension ObservableStore {
  /// Returns the changes of a range from now on, in the order of their commits.
  ///
  /// ```swift
  /// for await change in store.changes(in: .prefix("user:")) {
  ///   switch change {
  ///   case .key(let key): reload(key)
  ///   case .range(let range): reloadAll(in: range)
  ///   }
  /// }
  /// ```
  ///
  /// The observation begins with the call, so a value that you read afterwards is at least as new as the first change
  /// that you miss. The memory of the sequence is bounded. If its reader falls behind by more than 256 changes, they
  /// become one change of the whole range. A removal by ``ExpirableStore/purgeExpired(limit:)`` is a change, but the
  /// moment at which an entry expires is none.
  ///
  /// The sequence ends when the task is cancelled or the store is closed. It does not keep the store open. Several
  /// readers of one sequence share its changes, so create a sequence for each reader.
  ///
  /// - Parameter range: The range of keys to observe. Defaults to all keys.
  public func changes(in range: KeyRange = .all) -> StoreChanges {
    StoreChanges(of: range) { observe(range, $0) }
  }
}

/// The changes of a range of an observable store; see ``ObservableStore/changes(in:)``.
public struct StoreChanges: AsyncSequence, Sendable {
  /// The type of the changes.
  public typealias Element = StoreChange

  /// The sequence throws no errors.
  public typealias Failure = Never

  private let pending: PendingChanges
  private let signals: AsyncStream<Void>
  private let observation: StoreObservation

  init(of range: KeyRange, observing observe: (@escaping @Sendable (StoreEvent) -> Void) -> StoreObservation) {
    let pending = PendingChanges(of: range)
    // One signal is enough: a reader takes all changes before it waits for the next one.
    let (signals, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    self.pending = pending
    self.signals = signals
    observation = observe { event in
      switch event {
      case .changed(let changes):
        pending.append(changes)
        signal.yield()
      case .closed: signal.finish()
      }
    }
  }

  /// Returns an iterator over the changes that no other iterator has taken.
  public func makeAsyncIterator() -> Iterator {
    Iterator(changes: self, signals: signals.makeAsyncIterator())
  }

  /// An iterator over the changes of a range.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let changes: StoreChanges
    fileprivate var signals: AsyncStream<Void>.Iterator

    /// Returns the next change, or `nil` after the task was cancelled or the store closed.
    public mutating func next() async -> StoreChange? {
      await next(isolation: #isolation)
    }

    /// Returns the next change, or `nil` after the task was cancelled or the store closed.
    ///
    /// - Parameter actor: The actor of the caller.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> StoreChange? {
      while true {
        if Task.isCancelled { return nil }
        if let change = changes.pending.takeFirst() { return change }
        // The changes before the end are still there when the signals end.
        guard await signals.next(isolation: actor) != nil else { return changes.pending.takeFirst() }
      }
    }
  }
}

/// The changes that the reader of a sequence has not taken yet.
private final class PendingChanges: Sendable {
  private struct State {
    /// The changes, of which the first ``takenCount`` were taken.
    var changes: [StoreChange] = []
    var takenCount = 0
    /// Whether the changes are a single one of the whole range, which also covers all later ones.
    var isWholeRange = false
  }

  private let range: KeyRange
  private let state = Mutex(State())

  init(of range: KeyRange) {
    self.range = range
  }

  func append(_ changes: [StoreChange]) {
    let replaced = state.withLock { state -> [StoreChange] in
      guard !state.isWholeRange else { return [] }
      if state.changes.count - state.takenCount + changes.count <= BoundedChanges.maximumCount {
        state.changes += changes
        return []
      }
      let replaced = state.changes
      state = State(changes: [.range(range)], isWholeRange: true)
      return replaced
    }
    withExtendedLifetime(replaced) {}
  }

  func takeFirst() -> StoreChange? {
    state.withLock { state in
      guard state.takenCount < state.changes.count else { return nil }
      let change = state.changes[state.takenCount]
      state.takenCount += 1
      if state.takenCount == state.changes.count { state = State() }
      return change
    }
  }
}
