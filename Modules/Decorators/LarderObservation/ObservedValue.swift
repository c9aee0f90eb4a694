public import Larder
public import Observation

/// The value of a key, for a SwiftUI view or any other client of the `Observation` module.
///
/// ```swift
/// struct SettingsView: View {
///   @State var settings: ObservedValue<Settings>       // ObservedValue(store, key: "settings")
///
///   var body: some View {
///     Text(settings.value?.name ?? "No name")
///   }
/// }
/// ```
///
/// The object follows the store from its creation until it is released or the store is closed. It does not keep the
/// store open.
@Observable @MainActor public final class ObservedValue<Value: Sendable> {
  /// The latest value, or `nil` if the key is missing or was not read yet.
  public private(set) var value: Value?

  /// Whether a value was read, so that a missing value means a missing key.
  public private(set) var isLoaded = false

  /// The error of the latest read, or `nil` if it succeeded.
  ///
  /// The last value stays.
  public private(set) var error: (any Error)?

  @ObservationIgnored private let following = Following()

  /// Follows the value of a key.
  ///
  /// - Parameters:
  ///   - store: The store.
  ///   - key: The key.
  public convenience init(_ store: some ObservableStore<Value>, key: StoreKey) {
    self.init(store.updates(forKey: key))
  }

  /// Follows the value of a key, and ignores states that are equal to the one before.
  ///
  /// - Parameters:
  ///   - store: The store.
  ///   - key: The key.
  public convenience init(_ store: some ObservableStore<Value>, key: StoreKey) where Value: Equatable {
    self.init(store.updates(forKey: key))
  }

  /// Follows a value.
  ///
  /// - Parameter values: The values, from `ObservableStore.updates(forKey:)`.
  public init(_ values: StoreStates<Value?>) {
    following.follow(values) { [weak self] state in
      guard let self else { return }
      switch state {
      case .success(let value):
        self.value = value
        isLoaded = true
        error = nil
      case .failure(let failure): error = failure
      }
    }
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
  /// The latest entries, or none if they were not read yet.
  public private(set) var entries: [StoreEntry<Value>] = []

  /// Whether the entries were read, so that no entries mean an empty range.
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
