extension ObservableStore {
  /// Returns the value of a key as it is now, and then each newer one.
  ///
  /// ```swift
  /// for try await settings in store.updates(forKey: "settings") {
  ///   apply(settings ?? .standard)
  /// }
  /// ```
  ///
  /// The first element is the current value, or `nil` if the key is missing. If values change faster than you read
  /// them, you miss some of them, but never the last one. You never get a value that is older than one that you got
  /// before. A value that expires becomes `nil` at its deadline. Reading does not extend a sliding deadline.
  ///
  /// The sequence ends when the task is cancelled or the store is closed. It does not keep the store open.
  ///
  /// If the value cannot be read, the sequence throws the error once. The iterator survives it: a further call of
  /// `next()` waits until the value can be read, and tries at least once a second. It then returns the value even if it
  /// is equal to the one before the error.
  ///
  /// - Parameters:
  ///   - key: The key to observe.
  ///   - clock: The clock that measures the time until an entry expires or a failed read is repeated. Defaults to a
  ///     `ContinuousClock`.
  public func updates(forKey key: StoreKey, clock: any Clock<Duration> = ContinuousClock()) -> StoreStates<Value?> {
    states(forKey: key, clock) { _, _ in false }
  }

  /// Returns the first entries of a range as they are now, and then each newer state of them.
  ///
  /// ```swift
  /// for try await newest in notes.entries(observing: .all, limit: 20, order: .descending) {
  ///   show(newest)
  /// }
  /// ```
  ///
  /// Each element is one consistent snapshot. States are skipped, repeated after errors and ended as those of
  /// `updates(forKey:)`.
  ///
  /// - Parameters:
  ///   - range: The range of keys to observe.
  ///   - limit: The maximum number of entries in a state. Defaults to no limit.
  ///   - order: The order of the entries. Defaults to ascending keys.
  ///   - clock: The clock that measures the time until an entry expires or a failed read is repeated. Defaults to a
  ///     `ContinuousClock`.
  public func entries(
    observing range: KeyRange, limit: Int = .max, order: ScanOrder = .ascending,
    clock: any Clock<Duration> = ContinuousClock()
  ) -> StoreStates<[StoreEntry<Value>]> {
    states(ofEntriesIn: range, limit, order, clock) { _, _ in false }
  }

  private func states(
    forKey key: StoreKey, _ clock: any Clock<Duration>, areEqual: @escaping @Sendable (Value?, Value?) -> Bool
  ) -> StoreStates<Value?> {
    // Found out once, because a conversion takes as long as a read.
    let canExpire = AnyDataStore(self).expires
    return states(of: .only(key), clock, areEqual: areEqual) { store in
      guard canExpire, let expiry = AnyDataStore(store).expiry else { return (try await store.value(forKey: key), nil) }
      let value = try await expiry.peekValue(forKey: key)
      return (value, value == nil ? nil : try await expiry.timeUntilExpiry(ofAny: [key]))
    }
  }

  private func states(
    ofEntriesIn range: KeyRange, _ limit: Int, _ order: ScanOrder, _ clock: any Clock<Duration>,
    areEqual: @escaping @Sendable ([StoreEntry<Value>], [StoreEntry<Value>]) -> Bool
  ) -> StoreStates<[StoreEntry<Value>]> {
    let canExpire = AnyDataStore(self).expires
    return states(of: range, clock, areEqual: areEqual) { store in
      let entries = try await store.entries(in: range, limit: limit, order: order)
      guard canExpire, !entries.isEmpty, let expiry = AnyDataStore(store).expiry else { return (entries, nil) }
      return (entries, try await expiry.timeUntilExpiry(ofAny: entries.map(\.key)))
    }
  }

  private func states<State: Sendable>(
    of range: KeyRange, _ clock: any Clock<Duration>, areEqual: @escaping @Sendable (State, State) -> Bool,
    read: @escaping @Sendable (Self) async throws -> (State, Duration?)
  ) -> StoreStates<State> {
    let store = weakReference()
    return StoreStates(
      clock: clock, areEqual: areEqual, observe: { observer in store()?.observe(range, observer) },
      read: {
        guard let store = store() else { return nil }
        return try await read(store)
      })
  }
}

extension ObservableStore where Value: Equatable {
  /// Returns the value of a key as it is now, and then each newer one that differs from the one before.
  ///
  /// - Parameters:
  ///   - key: The key to observe.
  ///   - clock: The clock that measures the time until an entry expires or a failed read is repeated. Defaults to a
  ///     `ContinuousClock`.
  public func updates(forKey key: StoreKey, clock: any Clock<Duration> = ContinuousClock()) -> StoreStates<Value?> {
    states(forKey: key, clock) { $0 == $1 }
  }

  /// Returns the first entries of a range as they are now, and then each newer state that differs from the one before.
  ///
  /// - Parameters:
  ///   - range: The range of keys to observe.
  ///   - limit: The maximum number of entries in a state. Defaults to no limit.
  ///   - order: The order of the entries. Defaults to ascending keys.
  ///   - clock: The clock that measures the time until an entry expires or a failed read is repeated. Defaults to a
  ///     `ContinuousClock`.
  public func entries(
    observing range: KeyRange, limit: Int = .max, order: ScanOrder = .ascending,
    clock: any Clock<Duration> = ContinuousClock()
  ) -> StoreStates<[StoreEntry<Value>]> {
    states(ofEntriesIn: range, limit, order, clock) { $0 == $1 }
  }
}

/// The states of a value or of a range of an observable store: the current one, and then each newer one.
///
/// See `updates(forKey:)` and `entries(observing:)` of ``ObservableStore``. The
/// observation begins with the first call of `next()` of an iterator. Each iterator observes for itself.
public struct StoreStates<State: Sendable>: AsyncSequence, Sendable {
  /// The type of the states.
  public typealias Element = State

  /// The type of the errors.
  public typealias Failure = any Error

  /// A state that was read, and the time until a part of it expires, or `nil` if no part does.
  typealias Reading = (state: State, timeToLive: Duration?)

  /// Waits until a moment.
  typealias Wait = @Sendable () async throws -> Void

  let clock: any Clock<Duration>
  let areEqual: @Sendable (State, State) -> Bool

  /// Observes the store, or returns `nil` if it was released.
  let observe: @Sendable (@escaping @Sendable (StoreEvent) -> Void) -> StoreObservation?

  /// Reads the current state, or returns `nil` if the store was released.
  let read: @Sendable () async throws -> Reading?

  /// Returns an iterator that observes the store.
  public func makeAsyncIterator() -> Iterator {
    Iterator(states: self)
  }

  /// An iterator over the states.
  public struct Iterator: AsyncIteratorProtocol {
    /// A running observation.
    private struct Running {
      let observation: StoreObservation
      let signal: AsyncStream<Void>.Continuation
      var signals: AsyncStream<Void>.Iterator
    }

    /// The time after which a failed read is repeated first, because its cause may be gone without any change of the store.
    ///
    /// It doubles as long as the error stays the same, up to ``longestWait``.
    private static var firstRetryInterval: Duration { .seconds(1) }

    /// The longest time without a look at a state that expires.
    ///
    /// The clock of the deadline may be set forward.
    private static var longestWait: Duration { .seconds(60) }

    private let states: StoreStates
    private var running: Running?
    private var latest: State?
    private var hasEnded = false

    /// The code of the error that was thrown since the last state, or no code if it was no `StoreError`.
    private var reported: StoreError.Code??

    private var retryInterval = Iterator.firstRetryInterval

    /// Waits until the state must be read again without any change of the store, or `nil` for never.
    private var wait: StoreStates.Wait?

    fileprivate init(states: StoreStates) {
      self.states = states
    }

    /// Returns the next state, or `nil` after the task was cancelled or the store closed.
    ///
    /// - Throws: The error of the read, once.
    public mutating func next() async throws -> State? {
      try await next(isolation: #isolation)
    }

    /// Returns the next state, or `nil` after the task was cancelled or the store closed.
    ///
    /// - Parameter actor: The actor of the caller.
    /// - Throws: The error of the read, once.
    public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> State? {
      do {
        while !hasEnded, !Task.isCancelled {
          guard try await waitForChange(actor) else { break }
          guard let reading = try await read() else { continue }
          if let latest, states.areEqual(latest, reading.state) { continue }
          latest = reading.state
          return reading.state
        }
      } catch {
        if !Task.isCancelled, !hasEnded { throw error }
      }
      hasEnded = true
      running = nil
      return nil
    }

    /// Begins the observation, or waits until the state may have changed.
    ///
    /// - Returns: A Boolean value that indicates whether the store is still open.
    private mutating func waitForChange(_ actor: isolated (any Actor)?) async throws -> Bool {
      guard var running else {
        let (signals, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let observation = states.observe { event in
          if case .closed = event { signal.finish() } else { signal.yield() }
        }
        guard let observation else { return false }
        running = Running(observation: observation, signal: signal, signals: signals.makeAsyncIterator())
        // The state is read after the observation began, so no change is missed between them.
        return true
      }
      let timer = wait.map { wait in
        Task { [signal = running.signal] in
          try await wait()
          signal.yield()
        }
      }
      defer { timer?.cancel() }
      let isOpen = await running.signals.next(isolation: actor) != nil
      self.running = running
      return isOpen
    }

    /// Reads the state.
    ///
    /// - Returns: The state, or `nil` if the store was released or the read failed as before.
    /// - Throws: The error of the read, unless the one before had the same code.
    private mutating func read() async throws -> Reading? {
      // The time to live is measured during the read, so this deadline may be early, but never late.
      let waiting = waiting(by: states.clock)
      do {
        guard let reading = try await states.read() else {
          hasEnded = true
          return nil
        }
        reported = nil
        wait = reading.timeToLive.map { waiting(Swift.min($0, Iterator.longestWait)) }
        return reading
      } catch {
        let code = (error as? StoreError)?.code
        if code == .closed { hasEnded = true }
        let isRepeated = reported == .some(code)
        retryInterval = isRepeated ? Swift.min(retryInterval * 2, Iterator.longestWait) : Iterator.firstRetryInterval
        // An invalid key or range stays invalid.
        let isPermanent = code == .invalidKey || code == .invalidArgument
        wait = isPermanent ? nil : self.waiting(by: states.clock)(retryInterval)
        guard !isRepeated else { return nil }
        reported = .some(code)
        latest = nil
        throw error
      }
    }

    /// Returns a closure that returns another one, which waits until some time after now.
    private func waiting<Time: Clock<Duration>>(by clock: Time) -> (Duration) -> StoreStates.Wait {
      let now = clock.now
      return { duration in { try await clock.sleep(until: now.advanced(by: duration), tolerance: nil) } }
    }
  }
}
