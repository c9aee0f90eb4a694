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
  /// The observation begins with the call, so a value that you read afterward is at least as new as the first change
  /// that you miss. The memory of the sequence is bounded. If its reader falls behind by more than 256 changes, they
  /// become one change of the whole range. The sequence reports the removal of an entry by
  /// ``ExpirableStore/purgeExpired(limit:)``, but not the moment when the entry expires.
  ///
  /// The sequence ends when the task is cancelled or the store is closed. It does not keep the store open. Several
  /// readers of one sequence share its changes, so create a sequence for each reader. The cancellation of one of them
  /// does not end the others.
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
  private let observation: StoreObservation

  init(of range: KeyRange, observing observe: (@escaping @Sendable (StoreEvent) -> Void) -> StoreObservation) {
    let pending = PendingChanges(of: range)
    self.pending = pending
    observation = observe { event in
      switch event {
      case .changed(let changes): pending.append(changes)
      case .closed: pending.close()
      }
    }
  }

  /// Returns an iterator over the changes that no other iterator has taken.
  public func makeAsyncIterator() -> Iterator {
    Iterator(changes: self)
  }

  /// An iterator over the changes of a range.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let changes: StoreChanges

    /// Returns the next change, or `nil` after the task was cancelled or the store closed.
    public mutating func next() async -> StoreChange? {
      await next(isolation: #isolation)
    }

    /// Returns the next change, or `nil` after the task was cancelled or the store closed.
    ///
    /// - Parameter actor: The actor of the caller.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> StoreChange? {
      await changes.pending.next()
    }
  }
}

/// The changes that the readers of a sequence have not taken yet, and the readers that wait for one.
private final class PendingChanges: Sendable {
  /// The maximum number of changes.
  ///
  /// More of them become one change of the whole range.
  private static let maximumCount = 256

  private struct State {
    var changes: ArraySlice<StoreChange> = []
    /// A Boolean value that indicates whether the changes are a single one of the whole range, which also covers all
    /// later ones.
    var isWholeRange = false
    var isClosed = false
    var waiters: [CheckedContinuation<Void, Never>] = []

    mutating func append(_ new: [StoreChange], of range: KeyRange) {
      guard !isWholeRange else { return }
      if changes.count + new.count > PendingChanges.maximumCount {
        (changes, isWholeRange) = ([.range(range)], true)
      } else {
        changes += new
      }
    }

    mutating func takeFirst() -> StoreChange? {
      isWholeRange = false
      return changes.popFirst()
    }
  }

  private let range: KeyRange
  private let state = Locked(State())

  init(of range: KeyRange) {
    self.range = range
  }

  func append(_ changes: [StoreChange]) {
    wakeAll { $0.append(changes, of: range) }
  }

  func close() {
    wakeAll { $0.isClosed = true }
  }

  /// Changes the state, and resumes all waiters, which look for a change themselves.
  private func wakeAll(_ change: (inout State) -> Void = { _ in }) {
    let waiters = state.withLock { state in
      change(&state)
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Returns the next change, or `nil` after the task was cancelled or the store closed.
  func next() async -> StoreChange? {
    while !Task.isCancelled {
      let (change, isClosed) = state.withLock { ($0.takeFirst(), $0.isClosed) }
      // The changes before the end are still returned after it.
      if change != nil || isClosed { return change }
      await waitForChange()
    }
    return nil
  }

  /// Waits until there may be a change, the store is closed, or the task is cancelled.
  private func waitForChange() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        let isWaiting = state.withLock { state in
          // The task is checked under the lock: a cancellation after this check finds the waiter.
          guard state.changes.isEmpty, !state.isClosed, !Task.isCancelled else { return false }
          state.waiters.append(waiter)
          return true
        }
        if !isWaiting { waiter.resume() }
      }
    } onCancel: {
      wakeAll()
    }
  }
}
