#if ServiceLifecycle
/// The condition of a store that a ``StoreService`` runs.
public struct StoreHealth: Sendable, Hashable {
  /// The phase of the life of the store.
  public enum Phase: Sendable, Hashable {
    /// The store was not opened yet.
    case opening
    /// The store is open.
    case open
    /// The store is being closed.
    case closing
    /// The store was closed.
    case closed
    /// The store could not be opened.
    case failed
  }

  /// The result of the last run of a task.
  public struct TaskReport: Sendable, Hashable {
    /// The name of the task.
    public let name: String

    /// The number of runs that succeeded.
    public internal(set) var successCount = 0

    /// The number of runs that failed.
    public internal(set) var failureCount = 0

    /// The description of the error of the last run, or `nil` if it succeeded or the task never ran.
    ///
    /// It is text for people. A `StoreError` in it shows no key and no value.
    public internal(set) var problem: String?
  }

  /// The phase of the life of the store.
  public internal(set) var phase = Phase.opening

  /// The description of the problem of the store, or `nil` if there isn't one.
  ///
  /// It is text for people: the error of opening the store, or that of the last check.
  public internal(set) var problem: String?

  /// The reports of the tasks, in the order of the tasks.
  public internal(set) var tasks: [TaskReport]

  /// A Boolean value that indicates whether the last check succeeded.
  var isGood = false

  /// The time when the running check began, in nanoseconds of the service, or `nil` if there isn't one.
  var checkBegan: Int64?

  /// A Boolean value that indicates whether the store answered the last check in time, so that a server with it can serve.
  ///
  /// It is `false` before the store is open, after ``StoreService/drain()``, and when the service is closing the store.
  public internal(set) var isReady = false

  /// A Boolean value that indicates whether the store can become ready without a restart of the process.
  ///
  /// It is `false` if the store could not be opened, or was closed by other code. A server that does not answer is no reason
  /// to restart its clients, so it makes a store only not ready.
  public internal(set) var isLive = true

  /// A Boolean value that indicates whether no further requests are wanted.
  var isDraining = false

  /// Creates the condition of a store that was not opened yet.
  init(tasks: [String]) {
    self.tasks = tasks.map { TaskReport(name: $0) }
  }

  // MARK: Events

  /// Notes that the store was opened.
  mutating func opened() {
    (phase, problem, isGood) = (.open, nil, true)
  }

  /// Notes that the store could not be opened.
  mutating func failed(_ problem: String) {
    (phase, self.problem) = (.failed, problem)
  }

  /// Notes the result of a check.
  ///
  /// - Parameters:
  ///   - problem: The description of its error, or `nil` if it succeeded.
  ///   - isClosed: A Boolean value that indicates whether the store was closed by other code.
  mutating func checked(problem: String?, isClosed: Bool) {
    checkBegan = nil
    guard phase == .open else { return }
    self.problem = problem
    isGood = problem == nil
    if isClosed { phase = .closed }
  }

  /// Notes the result of a run of a task.
  mutating func ran(_ task: Int, problem: String?) {
    tasks[task].problem = problem
    if problem == nil { tasks[task].successCount += 1 } else { tasks[task].failureCount += 1 }
  }

  /// Notes the beginning or the end of the shutdown.
  mutating func shutDown(_ phase: Phase) {
    self.phase = phase
    isShutDown = true
  }

  /// A Boolean value that indicates whether the service closes or has closed the store.
  private var isShutDown = false

  /// Returns the condition at a moment.
  ///
  /// - Parameters:
  ///   - now: The time.
  ///   - limit: The time within which a check must end.
  func at(_ now: Int64, limit: Int64) -> StoreHealth {
    var health = self
    let isInTime = checkBegan.map { now - $0 <= limit } ?? true
    health.isReady = phase == .open && isGood && isInTime && !isDraining
    health.isLive = phase != .failed && (phase != .closed || isShutDown)
    if phase == .open, !isInTime, problem == nil { health.problem = "the store has not answered the last check" }
    return health
  }
}
#endif
