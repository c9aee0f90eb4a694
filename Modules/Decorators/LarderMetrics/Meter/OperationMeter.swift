#if Metrics
internal import CoreMetrics
internal import Synchronization

/// Measures one kind of operation, for the report and for swift-metrics.
///
/// A backend shows whatever has been made, though it never happened, and a tally takes memory: so both are made only for
/// what is asked for. No code of a backend runs under a lock. Of two tasks that make the same at the same time, one drops
/// what it made.
final class OperationMeter: Sendable {
  /// How an operation ended.
  struct Outcome {
    static let success = Outcome(name: "success", isFailure: false)

    /// The name in metrics, logs and spans.
    let name: String

    /// Whether it counts as an error.
    let isFailure: Bool
  }

  private struct State {
    var tally: OperationTally?
    // One for each outcome, made when it first happens.
    var timers: [String: Timer] = [:]
  }

  /// What is measured.
  let name: String

  private let store: String
  private let countsBytes: Bool
  private let factory: (any MetricsFactory)?
  private let inFlight = Atomic<Int>(0)
  private let madeInFlight = AtomicLazyReference<CoreMetrics.Meter>()
  private let madeBytes = AtomicLazyReference<Counter>()
  private let state = Mutex(State())

  /// Measures nothing so far.
  ///
  /// - Parameters:
  ///   - name: What is measured.
  ///   - store: The name of the store.
  ///   - countsBytes: Whether bytes are counted.
  ///   - factory: The backend, or `nil` for none.
  init(_ name: String, store: String, countsBytes: Bool, factory: (any MetricsFactory)?) {
    self.name = name
    self.store = store
    self.countsBytes = countsBytes
    self.factory = factory
  }

  /// Notes that an operation has begun, which ``end(nanoseconds:outcome:bytes:)`` ends.
  func begin() {
    inFlight.add(1, ordering: .relaxed)
    if let factory { inFlightMeter(from: factory).increment() }
  }

  /// Counts an operation that is over.
  ///
  /// - Parameters:
  ///   - nanoseconds: How long it took.
  ///   - outcome: How it ended.
  ///   - bytes: The bytes of the values that it read or wrote.
  func end(nanoseconds: UInt64, outcome: Outcome, bytes: Int) {
    inFlight.subtract(1, ordering: .relaxed)
    let (counted, timer) = state.withLock { state -> (Int, Timer?) in
      if state.tally == nil { state.tally = OperationTally() }
      let counted = state.tally?.record(
        nanoseconds: nanoseconds, error: outcome.isFailure ? outcome.name : nil, bytes: bytes)
      return (counted ?? 0, factory == nil ? nil : state.timers[outcome.name])
    }
    guard let factory else { return }
    inFlightMeter(from: factory).decrement()
    (timer ?? makeTimer(for: outcome, from: factory)).recordNanoseconds(Int64(clamping: nanoseconds))
    guard countsBytes, counted > 0 else { return }
    let counter =
      madeBytes.load()
      ?? madeBytes.storeIfNil(Counter(label: "larder_operation_bytes", dimensions: dimensions, factory: factory))
    counter.increment(by: counted)
  }

  /// What was measured so far; `nil` where nothing has begun.
  func report() -> OperationReport? {
    let inFlight = max(0, inFlight.load(ordering: .relaxed))
    let tally = state.withLock { $0.tally }
    guard tally != nil || inFlight > 0 else { return nil }
    return (tally ?? OperationTally()).report(named: name, inFlight: inFlight, countsBytes: countsBytes)
  }

  private var dimensions: [(String, String)] { [("store", store), ("operation", name)] }

  private func inFlightMeter(from factory: any MetricsFactory) -> CoreMetrics.Meter {
    madeInFlight.load()
      ?? madeInFlight.storeIfNil(
        CoreMetrics.Meter(label: "larder_operations_in_flight", dimensions: dimensions, factory: factory))
  }

  private func makeTimer(for outcome: Outcome, from factory: any MetricsFactory) -> Timer {
    let timer = Timer(
      label: "larder_operation_duration", dimensions: dimensions + [("outcome", outcome.name)], factory: factory)
    return state.withLock { state in
      let kept = state.timers[outcome.name] ?? timer
      state.timers[outcome.name] = kept
      return kept
    }
  }
}
#endif
