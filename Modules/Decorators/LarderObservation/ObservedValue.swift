public import Larder
public import Observation

/// The value of a key, for a SwiftUI view or any other client of the `Observation` module.
///
/// ```swift
/// let settings = ObservedValue(store, forKey: "settings", default: Settings())
///
/// show(settings.value.fontSize)
/// try await settings.update { $0.fontSize = 16 }
/// ```
///
/// With a default, the state is the value, and a missing key stands for the default. Without one, the state is optional, and a
/// missing key is `nil`.
///
/// The object follows the store from its creation until it is released or the store is closed. It does not keep the
/// store open.
@Observable @MainActor public final class ObservedValue<State: Sendable> {
  /// The latest state of the key.
  ///
  /// Until the first read has ended, it is the default, or `nil` without a default.
  public private(set) var value: State

  /// A Boolean value that indicates whether the key was read, so ``value`` is the state of the store.
  public private(set) var isLoaded = false

  /// The error of the latest read, or `nil` if it succeeded.
  ///
  /// The last value stays.
  public private(set) var error: (any Error)?

  @ObservationIgnored private let following = Following()
  @ObservationIgnored private let write: @Sendable (@escaping @Sendable (inout State) -> Void) async throws -> Void

  /// Follows the value of a key, which is `nil` if the key is missing.
  ///
  /// ```swift
  /// let profile = ObservedValue(users, forKey: "user:7")
  /// show(profile.value?.name ?? "unknown")
  /// ```
  ///
  /// - Parameters:
  ///   - store: The store.
  ///   - key: The key.
  ///   - clock: The clock that measures the time until a failed read is repeated. Defaults to a `ContinuousClock`.
  public convenience init<Value: Sendable>(
    _ store: some ObservableStore<Value>, forKey key: StoreKey, clock: any Clock<Duration> = ContinuousClock()
  ) where State == Value? {
    self.init(store, key, store.updates(forKey: key, clock: clock), initial: nil, read: { $0 }, write: { $0 })
  }

  /// Follows the value of a key, which is `nil` if the key is missing, and ignores states that are equal to the one before.
  ///
  /// - Parameters:
  ///   - store: The store.
  ///   - key: The key.
  ///   - clock: The clock that measures the time until a failed read is repeated. Defaults to a `ContinuousClock`.
  public convenience init<Value: Sendable & Equatable>(
    _ store: some ObservableStore<Value>, forKey key: StoreKey, clock: any Clock<Duration> = ContinuousClock()
  ) where State == Value? {
    self.init(store, key, store.updates(forKey: key, clock: clock), initial: nil, read: { $0 }, write: { $0 })
  }

  /// Follows the value of a key, with a default for a missing key.
  ///
  /// - Parameters:
  ///   - store: The store.
  ///   - key: The key.
  ///   - defaultValue: The value of a missing key. It is not written.
  ///   - clock: The clock that measures the time until a failed read is repeated. Defaults to a `ContinuousClock`.
  public convenience init(
    _ store: some ObservableStore<State>, forKey key: StoreKey, default defaultValue: State,
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    self.init(
      store, key, store.updates(forKey: key, clock: clock), initial: defaultValue, read: { $0 ?? defaultValue },
      write: { $0 })
  }

  /// Follows the value of a key, with a default for a missing key, and ignores states that are equal to the one before.
  ///
  /// - Parameters:
  ///   - store: The store.
  ///   - key: The key.
  ///   - defaultValue: The value of a missing key. It is not written.
  ///   - clock: The clock that measures the time until a failed read is repeated. Defaults to a `ContinuousClock`.
  public convenience init(
    _ store: some ObservableStore<State>, forKey key: StoreKey, default defaultValue: State,
    clock: any Clock<Duration> = ContinuousClock()
  ) where State: Equatable {
    self.init(
      store, key, store.updates(forKey: key, clock: clock), initial: defaultValue, read: { $0 ?? defaultValue },
      write: { $0 })
  }

  private init<Stored: Sendable, Store: ObservableStore<Stored>>(
    _ store: Store, _ key: StoreKey, _ states: StoreStates<Stored?>, initial: State,
    read: @escaping @Sendable (Stored?) -> State, write: @escaping @Sendable (State) -> Stored?
  ) {
    value = initial
    let (reference, name) = (store.weakReference(), store.information.name)
    self.write = { change in
      guard let store = reference() else {
        throw StoreError(.closed, during: .update, store: name, key: key, message: "the store was released")
      }
      try await store.update(key) { stored in
        var state = read(stored)
        change(&state)
        stored = write(state)
      }
    }
    following.follow(states) { [weak self] state in
      guard let self else { return }
      switch state {
      case .success(let stored):
        value = read(stored)
        isLoaded = true
        error = nil
      case .failure(let failure): error = failure
      }
    }
  }

  /// Writes a state to the store; `nil` removes the entry.
  ///
  /// ``value`` changes when the store reports the write, soon after the method has returned.
  ///
  /// ```swift
  /// try await settings.set(Settings())
  /// ```
  ///
  /// - Parameter state: The new state.
  /// - Throws: `StoreError` and `CancellationError`, as `DataStore.update(_:_:)`; `closed` if the store was released.
  public func set(_ state: State) async throws {
    try await write { $0 = state }
  }

  /// Changes the state in the store in one atomic step.
  ///
  /// ``value`` changes when the store reports the write, soon after the method has returned.
  ///
  /// - Parameter body: A closure that changes the state as it is in the store. It may be newer than ``value``. It can
  ///   be called more than once.
  /// - Throws: `StoreError` and `CancellationError`, as `DataStore.update(_:_:)`; `closed` if the store was released.
  public func update(_ body: @escaping @Sendable (inout State) -> Void) async throws {
    try await write(body)
  }
}

/// The first entries of a range, for a SwiftUI view or any other client of the `Observation` module.
///
/// ```swift
/// struct NotesView: View {
///   @State var notes: ObservedEntries<Note>            // ObservedEntries(store, limit: 50, order: .descending)
///
///   var body: some View {
///     List(notes.entries, id: \.key) { Text($0.value.title) }
///   }
/// }
/// ```
///
/// The object follows the store from its creation until it is released or the store is closed. It does not keep the
/// store open.
@Observable @MainActor public final class ObservedEntries<Value: Sendable> {
  /// The latest entries, or an empty array if they were not read yet.
  public private(set) var entries: [StoreEntry<Value>] = []

  /// A Boolean value that indicates whether the entries were read, so no entries mean an empty range.
  public private(set) var isLoaded = false

  /// The error of the latest read, or `nil` if it succeeded.
  ///
  /// The last entries stay.
  public private(set) var error: (any Error)?

  @ObservationIgnored private let following = Following()

  /// Follows the first entries of a range.
  ///
  /// - Parameters:
  ///   - store: The store.
  ///   - range: The range of keys. Defaults to all keys.
  ///   - limit: The maximum number of entries. Defaults to all.
  ///   - order: The order of the entries. Defaults to ascending keys.
  public convenience init(
    _ store: some ObservableStore<Value>, in range: KeyRange = .all, limit: Int = .max, order: ScanOrder = .ascending
  ) {
    self.init(store.entries(observing: range, limit: limit, order: order))
  }

  /// Follows the first entries of a range, and ignores states that are equal to the one before.
  ///
  /// - Parameters:
  ///   - store: The store.
  ///   - range: The range of keys. Defaults to all keys.
  ///   - limit: The maximum number of entries. Defaults to all.
  ///   - order: The order of the entries. Defaults to ascending keys.
  public convenience init(
    _ store: some ObservableStore<Value>, in range: KeyRange = .all, limit: Int = .max, order: ScanOrder = .ascending
  ) where Value: Equatable {
    self.init(store.entries(observing: range, limit: limit, order: order))
  }

  /// Follows entries.
  ///
  /// - Parameter states: The states, from `ObservableStore.entries(observing:)`.
  public init(_ states: StoreStates<[StoreEntry<Value>]>) {
    following.follow(states) { [weak self] state in
      guard let self else { return }
      switch state {
      case .success(let entries):
        self.entries = entries
        isLoaded = true
        error = nil
      case .failure(let failure): error = failure
      }
    }
  }
}

/// The task that follows a store for an object, and ends with it.
private final class Following: Sendable {
  private let task = Locked<Task<Void, Never>?>(nil)

  deinit {
    task.withLock { $0 }?.cancel()
  }

  @MainActor func follow<State: Sendable>(
    _ states: StoreStates<State>, receive: @escaping @MainActor (Result<State, any Error>) -> Void
  ) {
    let following = Task {
      var iterator = states.makeAsyncIterator()
      while true {
        do {
          guard let state = try await iterator.next() else { return }
          receive(.success(state))
        } catch {
          // The iterator survives the error, and returns the next state that can be read.
          receive(.failure(error))
        }
      }
    }
    task.withLock { $0 = following }
  }
}
