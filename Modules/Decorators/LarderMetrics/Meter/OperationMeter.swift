#if Metrics
internal import CoreMetrics
internal import Synchronization

/// Measures one kind of operation, for the report and for swift-metrics.
///
/// A backend shows whatever has been made, though it never happened, and a tally takes memory: so both are made only for
/// what is asked for.
final class OperationMeter: Sendable {
  private struct State {
    var tally: OperationTally?
    // One for each outcome, made when it first happens.
    var timers: [String: Timer] = [:]
    var successTimer: Timer?
  }

  /// What is measured.
  let name: String

  private let store: String
  private let countsBytes: Bool
  private let factory: (any MetricsFactory)?
  private let gauges: OperationGauges?
  private let inFlight = Atomic<Int>(0)
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
    gauges = factory.map { OperationGauges(name, store: store, countsBytes: countsBytes, factory: $0) }
  }

  /// Notes that an operation has begun, which ``end(nanoseconds:error:bytes:)`` ends.
  func begin() {
    inFlight.add(1, ordering: .relaxed)
    gauges?.inFlight.increment()
  }

  /// Counts an operation that is over.
  ///
  /// - Parameters:
  ///   - nanoseconds: How long it took.
  ///   - error: The code of its error, or `nil` where it went well.
  ///   - bytes: The bytes of the values that it read or wrote.
  func end(nanoseconds: UInt64, error: String?, bytes: Int) {
    inFlight.subtract(1, ordering: .relaxed)
    let timer: Timer? = state.withLock { state in
      if state.tally == nil { state.tally = OperationTally() }
      state.tally?.record(nanoseconds: nanoseconds, error: error, bytes: bytes)
      guard let factory else { return nil }
      if error == nil, let timer = state.successTimer { return timer }
      return self.timer(for: error ?? "success", from: factory, in: &state)
    }
    guard let gauges else { return }
    gauges.inFlight.decrement()
    timer?.recordNanoseconds(Int64(clamping: nanoseconds))
    if bytes > 0 { gauges.bytes?.increment(by: bytes) }
  }

  /// What was measured so far; `nil` where nothing has begun.
  func report() -> OperationReport? {
    let inFlight = max(0, inFlight.load(ordering: .relaxed))
    let tally = state.withLock { $0.tally }
    guard tally != nil || inFlight > 0 else { return nil }
    return (tally ?? OperationTally()).report(named: name, inFlight: inFlight, countsBytes: countsBytes)
  }

  private func timer(for outcome: String, from factory: any MetricsFactory, in state: inout State) -> Timer {
    if let timer = state.timers[outcome] { return timer }
    let timer = Timer(
      label: "larder_operation_duration",
      dimensions: [("store", store), ("operation", name), ("outcome", outcome)], factory: factory)
    state.timers[outcome] = timer
    if outcome == "success" { state.successTimer = timer }
    return timer
  }
}
#endif
