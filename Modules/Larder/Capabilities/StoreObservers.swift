/// The observers of a store, for authors of an ``ObservableStore``.
///
/// A store owns one list, passes ``ObservableStore/observe(_:_:)`` on to ``add(_:lag:_:)``, and reports each commit after it
/// took effect and before the write returns:
///
/// ```swift
/// func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
///   observers.add(range, observer)
/// }
/// ```
///
/// Without an observer, a report takes one uncontended lock. When the list is released, its observers receive
/// ``StoreEvent/closed``.
public final class StoreObservers: Sendable {
  private struct Observer: Sendable {
    let number: UInt64
    let range: KeyRange
    let receive: @Sendable (StoreEvent) -> Void
  }

  private struct State {
    var observers: [Observer] = []
    var lastNumber: UInt64 = 0
    var isClosed = false
    /// The number of running reports.
    var reportCount = 0
    /// The observers that receive `closed` when the last running report has ended.
    var ending: [Observer] = []

    /// Returns the observers that must receive `closed` now.
    mutating func takeEnding() -> [Observer] {
      guard reportCount == 0 else { return [] }
      defer { ending = [] }
      return ending
    }
  }

  // A lock, and not an atomic count: a writer that finds no observer has released the lock before the observer takes it,
  // so that the first read of the observer sees what was committed.
  private let state = Locked(State())

  /// Creates an empty list.
  public init() {}

  deinit {
    close()
  }

  /// A Boolean value that indicates whether the store has no observer.
  public var isEmpty: Bool { state.withLock { $0.observers.isEmpty } }

  /// Adds an observer, or reports to it that the store is closed.
  ///
  /// ```swift
  /// private let observers = StoreObservers()
  ///
  /// func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
  ///   observers.add(range, observer)
  /// }
  ///
  /// func apply(_ batch: ChangeBatch<User>) async throws {
  ///   try await commit(batch)
  ///   observers.report(batch)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - range: The range of keys to observe.
  ///   - lag: A closure that returns the ``StoreObservation/lag`` of the store. Defaults to `nil`, for no lag.
  ///   - observer: A closure that receives the events.
  /// - Returns: The observation. It does not hold the list.
  public func add(
    _ range: KeyRange, lag: (@Sendable () -> Duration)? = nil, _ observer: @escaping @Sendable (StoreEvent) -> Void
  ) -> StoreObservation {
    let number = state.withLock { state -> UInt64? in
      guard !state.isClosed else { return nil }
      state.lastNumber += 1
      state.observers.append(Observer(number: state.lastNumber, range: range, receive: observer))
      return state.lastNumber
    }
    guard let number else {
      observer(.closed)
      return StoreObservation {}
    }
    return StoreObservation(lag: lag) { [weak self] in self?.remove(number) }
  }

  private func remove(_ number: UInt64) {
    let removed = state.withLock { state in
      let removed = (state.observers + state.ending).filter { $0.number == number }
      state.observers.removeAll { $0.number == number }
      state.ending.removeAll { $0.number == number }
      return removed
    }
    // Released outside the lock.
    withExtendedLifetime(removed) {}
  }

  /// Reports that a batch was committed, or may have been.
  ///
  /// - Parameter batch: The batch.
  public func report(_ batch: ChangeBatch<some Any>) {
    if !isEmpty { report(BoundedChanges(batch)) }
  }

  /// Reports that the entries of some keys were written, or may have been.
  ///
  /// - Parameter keys: The keys.
  public func report(_ keys: [StoreKey]) {
    if !isEmpty { report(keys.map(StoreChange.key)) }
  }

  /// Reports changes that were committed, or may have been.
  ///
  /// More than 10,000 changes become one of the range that covers them.
  ///
  /// - Parameter changes: The changes.
  public func report(_ changes: [StoreChange]) {
    if !isEmpty { report(BoundedChanges(changes)) }
  }

  /// Reports changes that were committed, or may have been.
  ///
  /// - Parameter changes: The changes.
  public func report(_ changes: BoundedChanges) {
    let observers = state.withLock { state in
      state.reportCount += 1
      return state.observers
    }
    for observer in observers {
      let concerned = changes.changes.compactMap { $0.part(in: observer.range) }
      if !concerned.isEmpty { observer.receive(.changed(concerned)) }
    }
    let ended = state.withLock { state in
      state.reportCount -= 1
      return state.takeEnding()
    }
    for observer in ended { observer.receive(.closed) }
  }

  /// Reports to all observers, and to later ones, that the store is closed.
  ///
  /// If a report is running on another thread, that thread also delivers `closed`, so no change follows it.
  public func close() {
    let ended = state.withLock { state in
      state.isClosed = true
      state.ending += state.observers
      state.observers = []
      return state.takeEnding()
    }
    for observer in ended { observer.receive(.closed) }
  }
}

/// The changes of a commit, of which there are at most 10,000.
///
/// More of them become the range that covers all. A cache drops all its entries in that range, so the limit is well above
/// the number of writes that share a commit.
public struct BoundedChanges: Sendable {
  /// The maximum number of changes.
  static let maximumCount = 10_000

  /// The changes, in order.
  public private(set) var changes: [StoreChange] = []

  /// Creates an empty list.
  public init() {}

  /// Creates a list of changes.
  ///
  /// - Parameter changes: The changes, in order.
  public init(_ changes: [StoreChange]) {
    for change in changes { append(change) }
  }

  /// Creates a list of changes of keys.
  ///
  /// - Parameter keys: The keys, in order.
  public init(keys: [StoreKey]) {
    for key in keys { append(.key(key)) }
  }

  /// Creates a list of the changes of a batch.
  ///
  /// - Parameter batch: The batch.
  public init(_ batch: ChangeBatch<some Any>) {
    append(batch)
  }

  /// Appends a change.
  ///
  /// - Parameter change: The change.
  public mutating func append(_ change: StoreChange) {
    if case .range(let whole)? = changes.first, isCovering {
      changes = [.range(whole.covering(change.range))]
    } else if changes.count < BoundedChanges.maximumCount {
      changes.append(change)
    } else {
      isCovering = true
      changes = [.range(changes.reduce(change.range) { $0.covering($1.range) })]
    }
  }

  /// Appends the changes of a batch.
  ///
  /// - Parameter batch: The batch.
  public mutating func append(_ batch: ChangeBatch<some Any>) {
    // A loop, because a closure over changes of an unknown type would copy their values.
    for change in batch.changes {
      switch change {
      case .set(let key, _), .remove(let key): append(.key(key))
      case .removeAll(let range): append(.range(range))
      }
    }
  }

  /// A Boolean value that indicates whether the only change covers more changes than fit.
  private var isCovering = false
}

extension StoreChange {
  /// Returns the part of the change that concerns a range, or `nil` if there isn't one.
  fileprivate func part(in observed: KeyRange) -> StoreChange? {
    switch self {
    case .key(let key): observed.contains(key) ? self : nil
    case .range(let range): range.overlaps(observed) ? .range(range.intersection(observed)) : nil
    }
  }
}
