/// A store that reports its changes.
///
/// ```swift
/// for await change in notes.changes(in: .prefix("inbox/")) { … }              // what was written
/// for try await note in notes.updates(forKey: "inbox/7") { … }                 // the value, now and after each change
/// for try await newest in notes.entries(observing: .all, limit: 20, order: .descending) { … }
/// ```
///
/// Decorators forward this capability, so you can use it on any stack above an observable layer. If the type of a store
/// is known only at run time, use ``AnyDataStore/observation``. A store with one owner becomes observable with the
/// decorator of the module `LarderObservation`.
///
/// ## Promises
///
/// - A change is reported after it is committed, never before. A reader that reads after the report finds the change.
/// - A write that returns has reported every key and range that it named, and an update every key that it assigned, also if
///   the value stayed equal. By that, a cache tells the report of its own write from those of others. A write whose outcome
///   is unknown is reported too.
/// - Changes of one writer are reported in the order of their commits. Those of writes that run at the same time, and those
///   of other processes and hosts that are reported together, may come in any order.
/// - A report may name more than was written, such as a range instead of many keys. It never names less.
/// - Commits of other processes and hosts, which ``StoreInformation/reportedCommits`` says are reported, may be reported
///   later than they return there. If the store measures ``StoreObservation/lag``, it says how old the oldest unreported
///   one can be. If the store cannot know what it missed, it reports that everything may have changed.
public protocol ObservableStore<Value>: DataStore {
  /// Calls a closure after every commit that changes a range, until the observation or the store ends.
  ///
  /// This is the basis of ``changes(in:)``, `updates(forKey:)` and `entries(observing:)`,
  /// which most programs use.
  ///
  /// ```swift
  /// let observation = users.observe(.prefix("user:")) { event in
  ///   if case .changed(let changes) = event { reloads.yield(changes) }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - range: The range of keys to observe.
  ///   - observer: A closure that receives the changes in the range. It is called on the thread of the writer, so it
  ///     must return quickly and must not call the store. If the store is closed, or was closed before, it receives
  ///     ``StoreEvent/closed`` once, and nothing afterward.
  /// - Returns: The observation. It ends when you cancel it or release it.
  func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation

  /// Returns a closure that returns this store as long as something else holds it.
  ///
  /// The sequences of an observable store use it, so an observer does not keep a store open. A class has a default
  /// implementation. A decorator that is a structure wraps the closure of its base.
  func weakReference() -> @Sendable () -> Self?
}

extension ObservableStore where Self: AnyObject {
  /// Returns a closure that holds this store weakly.
  public func weakReference() -> @Sendable () -> Self? {
    { [weak self] in self }
  }
}

extension StoreDecorator where Base: ObservableStore {
  /// Observes the base; see ``ObservableStore/observe(_:_:)``.
  ///
  /// ```swift
  /// let observation = notes.observe(.prefix("inbox/")) { event in
  ///   if case .changed = event { unread.store(true, ordering: .relaxed) }
  /// }
  /// ```
  public func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
    base.observe(range, observer)
  }
}

/// A change of a store: a key or a range that was set or removed.
///
/// ```swift
/// switch change {
/// case .key(let key): index.remove(key)
/// case .range(let range): index.removeAll(in: range)
/// }
/// ```
public enum StoreChange: Sendable, Hashable {
  /// The entry of a key was set or removed, or may have been.
  case key(StoreKey)

  /// Any entries of a range may have been set or removed.
  case range(KeyRange)

  /// The range of the keys that may have changed.
  public var range: KeyRange {
    switch self {
    case .key(let key): .only(key)
    case .range(let range): range
    }
  }
}

/// An event that a store reports to its observers.
public enum StoreEvent: Sendable, Hashable {
  /// A commit changed the observed range. The changes are never empty.
  case changed([StoreChange])

  /// The store was closed or released, or its files were moved, removed or replaced. No further event follows.
  case closed
}

/// An observation of a store.
///
/// It ends when it is cancelled or released; see ``ObservableStore/observe(_:_:)``.
public final class StoreObservation: Sendable {
  private let end: @Sendable () -> Void
  private let currentLag: (@Sendable () -> Duration)?

  /// Creates an observation.
  ///
  /// - Parameters:
  ///   - lag: A closure that returns the ``lag``. It may be called on any thread and must return quickly. Defaults to
  ///     `nil`, for a store that does not measure it.
  ///   - end: A closure that ends the observation. It may be called more than once.
  public init(lag: (@Sendable () -> Duration)? = nil, end: @escaping @Sendable () -> Void) {
    currentLag = lag
    self.end = end
  }

  /// The age from which on every commit that the store reports has been reported to the observer.
  ///
  /// It covers only the commits that ``StoreInformation/reportedCommits`` names. So a limit for all commits needs
  /// ``StoreInformation/reportsAllCommits``, too. It is zero if the store does not measure it, such as one that reports only
  /// its own commits, or one that looks for those of other processes on the same machine some milliseconds later. A store
  /// that reads the commits of other hosts returns the time since it last knew all of them. This time is longer than any
  /// limit until the store has looked for the first time, and grows while a server cannot be reached. The clock counts the
  /// time when the system sleeps, and not that in which a virtual machine is paused by its host:
  ///
  /// ```swift
  /// if observation.lag <= .seconds(1) {
  ///   // Every commit that returned more than one second ago, on any host, has been reported.
  /// }
  /// ```
  ///
  /// The value is current when it is read. A decorator that makes an observation of its own from that of its base passes
  /// this value on.
  public var lag: Duration { currentLag?() ?? .zero }

  deinit {
    end()
  }

  /// Ends the observation.
  ///
  /// A report that is being delivered at the same time may still reach the observer.
  ///
  /// ```swift
  /// let observation = users.observe(.all) { _ in refreshes.yield() }
  /// try await importUsers()
  /// observation.cancel()
  /// ```
  public func cancel() {
    end()
  }
}
