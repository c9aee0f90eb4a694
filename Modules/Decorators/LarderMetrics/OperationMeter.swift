#if Metrics
import CoreMetrics
import Histogram
import Larder
import Synchronization

/// Measures one kind of operation, for the report and for swift-metrics.
///
/// A metrics backend shows every instrument that was created, even one without a measurement. Instruments are therefore
/// created on first use. No code of a backend runs under a lock. If two tasks create the same instrument at the same
/// time, one of the two is discarded.
@usableFromInline
final class OperationMeter: Sendable {
  /// The outcome of an operation.
  struct Outcome {
    static let success = Outcome(name: "success", isFailure: false)
    static let discarded = Outcome(name: "discarded", isFailure: false)
    /// A failure with an error that is no `StoreError`.
    static let other = Outcome(name: "other", isFailure: true)

    /// The name in metrics, logs and spans.
    let name: String

    /// A Boolean value that indicates whether the outcome counts as an error.
    let isFailure: Bool
  }

  /// The name of the operation or block.
  let name: String

  /// The names in metrics and spans.
  let names: OperationNames

  /// Creates the instruments, or is `nil` without a backend.
  ///
  /// It is a closure, because testing and copying an optional `any MetricsFactory` takes some 40 ns.
  private let makeInstruments: (@Sendable () -> OperationInstruments)?
  private let countsBytes: Bool
  private let instruments = AtomicLazyReference<OperationInstruments>()
  private let inFlight = Atomic<Int>(0)
  private let tally = Locked(OperationTally())

  /// Creates a meter without measurements.
  ///
  /// - Parameters:
  ///   - name: The name of the operation or block.
  ///   - store: The name of the store.
  ///   - names: The names in metrics and spans.
  ///   - countsBytes: A Boolean value that indicates whether bytes are counted.
  ///   - factory: The metrics backend, or `nil`.
  init(_ name: String, store: String, names: OperationNames, countsBytes: Bool, factory: (any MetricsFactory)?) {
    self.name = name
    self.names = names
    self.countsBytes = countsBytes
    makeInstruments = factory.map { factory -> @Sendable () -> OperationInstruments in
      { OperationInstruments(name, store: store, names: names, countsBytes: countsBytes, factory: factory) }
    }
  }

  /// Records the start of an operation, which must end with ``end(nanoseconds:outcome:bytes:)``.
  func begin() {
    inFlight.add(1, ordering: .relaxed)
    guard let makeInstruments else { return }
    let instruments = instruments.load() ?? instruments.storeIfNil(makeInstruments())
    instruments.inFlight.increment()
  }

  /// Records the end of an operation.
  ///
  /// - Parameters:
  ///   - nanoseconds: The duration of the operation, in nanoseconds.
  ///   - outcome: The outcome of the operation.
  ///   - bytes: The size of the values that it read or wrote, in bytes.
  func end(nanoseconds: Int64, outcome: Outcome, bytes: Int) {
    inFlight.subtract(1, ordering: .relaxed)
    let counted = tally.withLock {
      $0.record(
        nanoseconds: UInt64(clamping: nanoseconds), error: outcome.isFailure ? outcome.name : nil, bytes: bytes)
    }
    // Without a backend, nothing is loaded, because an atomic load of a reference costs some 20 ns.
    guard makeInstruments != nil, let instruments = instruments.load() else { return }
    instruments.inFlight.decrement()
    instruments.durations(of: outcome).record(nanoseconds)
    if counted > 0 { instruments.bytes?.increment(by: counted) }
  }

  /// Counts items that the operation has sent or received, if the names have a counter for them.
  ///
  /// - Parameters:
  ///   - count: The number of items.
  ///   - outcome: The outcome of the operation.
  func count(messages count: Int, outcome: Outcome) {
    guard count > 0, makeInstruments != nil else { return }
    instruments.load()?.messages(of: outcome)?.increment(by: count)
  }

  /// Returns the measurements so far, or `nil` if no operation has begun.
  func report() -> OperationReport? {
    let inFlight = max(0, inFlight.load(ordering: .relaxed))
    let report = tally.withLock { $0 }.report(named: name, inFlight: inFlight, countsBytes: countsBytes)
    return report.count > 0 || inFlight > 0 ? report : nil
  }
}

/// The instruments of a metrics backend for one kind of operation.
private final class OperationInstruments: Sendable {
  let inFlight: CoreMetrics.Meter
  let bytes: Counter?

  /// The instrument of the durations of one outcome.
  enum Durations {
    case timer(Timer)
    case seconds(Recorder)

    func record(_ nanoseconds: Int64) {
      switch self {
      case .timer(let timer): timer.recordNanoseconds(nanoseconds)
      case .seconds(let recorder): recorder.record(Double(nanoseconds) / 1e9)
      }
    }
  }

  // One instrument for each set of dimensions, created when such an outcome first occurs.
  private let durations = Locked<[String: Durations]>([:])
  private let counters = Locked<[String: Counter]>([:])
  private let isInSeconds: Bool
  private let makeCounter: (@Sendable (OperationMeter.Outcome) -> Counter)?
  private let makeDurations: @Sendable (OperationMeter.Outcome) -> Durations

  init(_ name: String, store: String, names: OperationNames, countsBytes: Bool, factory: any MetricsFactory) {
    let dimensions = [("store", store), ("operation", name)]
    inFlight = CoreMetrics.Meter(label: "larder_operations_in_flight", dimensions: dimensions, factory: factory)
    bytes = countsBytes ? Counter(label: "larder_operation_bytes", dimensions: dimensions, factory: factory) : nil
    isInSeconds = names.isInSeconds
    // A counter has no type of the operation, because its name says it.
    let counted = names.dimensions.filter { $0.0 != "messaging.operation.type" }
    makeCounter = names.messageCounter.map { label -> @Sendable (OperationMeter.Outcome) -> Counter in
      { outcome in Counter(label: label, dimensions: counted + names.dimensions(of: outcome), factory: factory) }
    }
    makeDurations = { outcome in
      let dimensions = names.dimensions + names.dimensions(of: outcome)
      return names.isInSeconds
        ? .seconds(Recorder(label: names.metric, dimensions: dimensions, aggregate: true, factory: factory))
        : .timer(Timer(label: names.metric, dimensions: dimensions, factory: factory))
    }
  }

  func durations(of outcome: OperationMeter.Outcome) -> Durations {
    let key = outcome.isFailure || !isInSeconds ? outcome.name : ""
    return durations.first(of: key) { makeDurations(outcome) }
  }

  /// Returns the counter of items, or `nil` if the names have none.
  func messages(of outcome: OperationMeter.Outcome) -> Counter? {
    guard let makeCounter else { return nil }
    return counters.first(of: outcome.isFailure ? outcome.name : "") { makeCounter(outcome) }
  }
}

extension Locked {
  /// Returns the instrument of a key, which is created outside of the lock if it is missing.
  fileprivate func first<Instrument: Sendable>(
    of key: String, _ make: () -> Instrument
  ) -> Instrument where Value == [String: Instrument] {
    if let found = withLock({ $0[key] }) { return found }
    let made = make()
    return withLock { instruments in
      let first = instruments[key] ?? made
      instruments[key] = first
      return first
    }
  }
}

/// The counts and durations of one kind of operation.
///
/// This is plain state that an ``OperationMeter`` keeps under a lock.
struct OperationTally {
  // Created with the first operation, so that an unused operation costs nothing. It has room for common durations from
  // the start, because growing takes long.
  private var durations: Histogram<UInt64>?
  // The histogram rounds to its significant digits. The sum and the maximum are exact.
  private var sum: UInt64 = 0
  private var longest: UInt64 = 0
  private var errors: [String: Int] = [:]
  private var byteCount = 0

  /// The longest duration for which the histogram has room from the start, in nanoseconds (about eight milliseconds).
  private static let longestUsual: UInt64 = 1 << 23

  /// The longest duration that the histogram distinguishes from longer ones, in nanoseconds (about three days).
  private static let longestTracked: UInt64 = 1 << 48

  /// Counts a finished operation.
  ///
  /// - Parameters:
  ///   - nanoseconds: The duration of the operation, in nanoseconds.
  ///   - error: The code of its error, or `nil` if it succeeded.
  ///   - bytes: The size of the values that it read or wrote, in bytes.
  /// - Returns: The number of bytes that were added. It is less than `bytes` if the sum would exceed `Int.max`.
  @discardableResult
  mutating func record(nanoseconds: UInt64, error: String?, bytes: Int) -> Int {
    // A pattern, because `==` copies the histogram.
    if case nil = durations {
      durations = Histogram(
        highestTrackableValue: OperationTally.longestUsual, numberOfSignificantValueDigits: .three)
      durations?.autoResize = true
    }
    durations?.record(min(nanoseconds, OperationTally.longestTracked))
    (sum, longest) = (sum &+ nanoseconds, max(longest, nanoseconds))
    if let error { errors[error, default: 0] += 1 }
    let counted = min(bytes, .max - byteCount)
    byteCount += counted
    return counted
  }

  /// Returns a report of the counts so far.
  func report(named name: String, inFlight: Int, countsBytes: Bool) -> OperationReport {
    let count = Int(clamping: durations?.totalCount ?? 0)
    func percentile(_ percent: Double) -> Duration {
      // A rounded percentile must not exceed the exact maximum that is reported beside it.
      .nanoseconds(min(durations?.valueAtPercentile(percent) ?? 0, longest))
    }
    return OperationReport(
      name: name, count: count, errors: errors, inFlight: inFlight,
      total: .nanoseconds(sum), mean: count == 0 ? .zero : .nanoseconds(sum / UInt64(count)), median: percentile(50),
      percentile90: percentile(90), percentile95: percentile(95), percentile99: percentile(99),
      longest: .nanoseconds(longest), bytes: countsBytes ? byteCount : nil)
  }
}
#endif
