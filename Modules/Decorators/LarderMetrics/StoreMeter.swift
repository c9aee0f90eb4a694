#if Metrics
public import CoreMetrics
import Larder
public import Logging
public import Tracing

/// Measures operations for a report, swift-metrics, a log of slow operations, and tracing.
///
/// Every ``MeteredStore`` has a meter. You can measure your own blocks beside its operations:
///
/// ```swift
/// let image = try store.meter.measure("decode") { try Image(data: data) }
/// ```
///
/// Keys and values never appear in a metric, a log message or a span. Only the names of the store and the operation,
/// error codes and durations do.
///
/// The meter emits:
///
/// - swift-metrics: a timer `larder_operation_duration` with the dimensions `store`, `operation` and `outcome`
///   (`success`, `discarded`, `cancelled`, or the code of the error); a meter `larder_operations_in_flight`; and a
///   counter `larder_operation_bytes` if bytes are counted.
/// - swift-log: a warning for an operation that takes at least ``slowThreshold``, at most ten a minute. The next one then has
///   the number of `omitted` warnings. Bulk work is not logged: an operation on more than 100 entries, a purge of all expired
///   entries, and maintenance.
/// - swift-distributed-tracing: a span `larder.OPERATION` with the attributes `larder.store` and `larder.outcome`, as a
///   child of the caller's span. The span of work for several callers, such as a group commit, links to the spans of
///   all of them.
///
/// Pass ``MeterNames/openTelemetry(system:)`` for metrics and spans with the names of OpenTelemetry.
public final class StoreMeter: Sendable {
  /// The name of the store in reports, metrics, logs and spans.
  public let name: String

  /// The duration from which an operation is logged as slow.
  public let slowThreshold: Duration

  /// The names in metrics and spans.
  public let names: MeterNames

  private let time: ElapsedTime
  private let logger: Logger?
  private let tracer: (any Tracer)?
  private let factory: (any MetricsFactory)?
  private let slowNanoseconds: Int64
  private let slowLog = Locked(SlowLog())
  @usableFromInline let operations: [OperationMeter]
  private let blocks = Locked<[String: OperationMeter]>([:])

  /// Creates a meter without measurements.
  ///
  /// ```swift
  /// let meter = StoreMeter(name: "users", countsBytes: true, slowThreshold: .milliseconds(20))
  /// let users = base.metered(by: meter)
  /// ```
  ///
  /// - Parameters:
  ///   - name: The name of the store in reports, metrics, logs and spans.
  ///   - countsBytes: A Boolean value that indicates whether the bytes that operations read or write are counted.
  ///     Defaults to `false`.
  ///   - slowThreshold: The duration from which an operation is logged as slow. Defaults to 100 milliseconds.
  ///   - logger: The logger for slow operations, or `nil` to log nothing. Defaults to a logger with the label `larder`.
  ///   - names: The names in metrics and spans. Defaults to those of Larder.
  ///   - metrics: The backend of swift-metrics. Defaults to the bootstrapped one. A no-op backend costs nothing.
  ///   - tracer: The tracer. Defaults to the bootstrapped one. A no-op tracer costs nothing.
  ///   - clock: The clock that measures durations. Defaults to a `ContinuousClock`.
  public init(
    name: String, countsBytes: Bool = false, slowThreshold: Duration = .milliseconds(100),
    logger: Logger? = Logger(label: "larder"), names: MeterNames = .larder,
    metrics: any MetricsFactory = MetricsSystem.factory,
    tracer: any Tracer = InstrumentationSystem.tracer, clock: any Clock<Duration> = ContinuousClock()
  ) {
    self.name = name
    self.slowThreshold = slowThreshold
    self.names = names
    self.logger = logger
    self.tracer = tracer is NoOpTracer ? nil : tracer
    if self.tracer != nil { TracedCaller.registration }
    let factory = metrics is NOOPMetricsHandler ? nil : metrics
    self.factory = factory
    operations = MeteredOperation.allCases.map {
      OperationMeter(
        "\($0)", store: name, names: OperationNames("\($0)", of: name, isBlock: false, by: names),
        countsBytes: countsBytes && $0.hasBytes, factory: factory)
    }
    slowNanoseconds = slowThreshold.wholeNanoseconds
    time = ElapsedTime(by: clock)
  }

  // MARK: Blocks

  /// Measures a synchronous block.
  ///
  /// ```swift
  /// let names = try store.meter.measure("decode") { try JSONDecoder().decode([String].self, from: data) }
  /// let answer = try await store.meter.measure("fetch") { try await fetch() }
  /// ```
  ///
  /// - Parameters:
  ///   - block: The name of the block in the report, in metrics and in logs. Use few different names, and never a key.
  ///   - body: The block. Spans that it starts become children of the block's span.
  /// - Returns: The result of the block.
  /// - Throws: The error that the block throws.
  public func measure<Result, Failure: Error>(
    _ block: String, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try measure(blockMeter(block), body)
  }

  /// Measures an asynchronous block.
  ///
  /// - Parameters:
  ///   - block: The name of the block in the report, in metrics and in logs. Use few different names, and never a key.
  ///   - body: The block. It runs where the caller is. Spans that it starts become children of the block's span.
  /// - Returns: The result of the block.
  /// - Throws: The error that the block throws.
  public func measure<Result, Failure: Error>(
    _ block: String, _ body: () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    try await measure(blockMeter(block), body)
  }

  /// Records an event, such as a delivery of a queue, as a block of its own.
  ///
  /// - Parameters:
  ///   - event: The name of the event.
  ///   - duration: The time that the event took.
  func record(_ event: String, _ duration: Duration) {
    let meter = blockMeter(event)
    meter.begin()
    meter.end(nanoseconds: duration.wholeNanoseconds, outcome: .success, bytes: 0)
  }

  private func blockMeter(_ block: String, isBlock: Bool = true) -> OperationMeter {
    blocks.withLock { blocks in
      if let meter = blocks[block] { return meter }
      let meter = OperationMeter(
        block, store: name, names: OperationNames(block, of: name, isBlock: isBlock, by: names), countsBytes: false,
        factory: factory)
      blocks[block] = meter
      return meter
    }
  }

  // MARK: Operations

  // The methods that `MeteredStore` calls are inlined into the client module, where the types are known. Without that,
  // looking up the type of an optional value at runtime costs more than reading the clock twice. If the types are unknown,
  // as behind `AnyDataStore`, each call of an asynchronous function with a closure costs some 60 ns. `measure` is inlined to
  // save this call.

  /// A running operation or block.
  @usableFromInline
  struct Run {
    @usableFromInline let start: Int64
    @usableFromInline let span: RunSpan?
  }

  /// Measures an asynchronous operation of a store.
  ///
  /// - Parameters:
  ///   - operation: The operation.
  ///   - bytes: A closure that returns the number of bytes read or written, given the result. Its own time is not
  ///     measured.
  ///   - entries: A closure that returns the number of entries that the operation concerned, given the result.
  ///   - isDiscarded: A closure that returns whether the operation was discarded, given the result.
  ///   - body: The closure that performs the operation.
  @inlinable @inline(__always)
  func measure<Result>(
    _ operation: MeteredOperation, bytes: (Result) -> Int = { _ in 0 }, entries: (Result) -> Int = { _ in 1 },
    isDiscarded: (Result) -> Bool = { _ in false }, _ body: () async throws -> Result
  ) async throws -> Result {
    try await measure(
      operations[operation.rawValue], bytes: bytes, entries: entries, isDiscarded: isDiscarded, body)
  }

  /// Measures an asynchronous operation of a capability.
  func measure<Result>(capability operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
    let entries = StoreMeter.bulkOperations.contains(operation) ? Int.max : 1
    return try await measure(capabilityMeter(operation), entries: { _ in entries }, body)
  }

  private func capabilityMeter(_ operation: StoreOperation) -> OperationMeter {
    operations.first { $0.name == operation.rawValue } ?? blockMeter(operation.rawValue, isBlock: false)
  }

  /// Measures an operation that sends or receives items of a queue, and counts them.
  ///
  /// - Parameters:
  ///   - operation: The operation.
  ///   - failed: The number of items of a call that fails. Defaults to 0.
  ///   - count: A closure that returns the number of items, given the result.
  ///   - body: The closure that performs the operation.
  func measure<Result>(
    messages operation: StoreOperation, failed: Int = 0, count: (Result) -> Int, _ body: () async throws -> Result
  ) async throws -> Result {
    let result: Result
    do {
      result = try await measure(capability: operation, body)
    } catch {
      capabilityMeter(operation).count(messages: failed, outcome: StoreMeter.outcome(of: error))
      throw error
    }
    capabilityMeter(operation).count(messages: count(result), outcome: .success)
    return result
  }

  /// Records a delivery for which a consumer has waited.
  ///
  /// With Larder's names it is no operation, because its time is mostly that of the wait.
  ///
  /// - Parameter start: The time at which the wait began, as ``now`` returned it.
  func recordWait(since start: Int64) {
    guard names.system != nil else { return }
    let meter = capabilityMeter(.receive)
    meter.begin()
    meter.end(nanoseconds: max(0, time.nanoseconds - start), outcome: .success, bytes: 0)
    meter.count(messages: 1, outcome: .success)
  }

  /// The time on the clock of the meter, in nanoseconds.
  var now: Int64 { time.nanoseconds }

  private static let bulkOperations: Set<StoreOperation> = [.purgeExpired, .statistics, .verify, .compact, .backup]

  /// Measures a synchronous operation of a store.
  func measure(_ operation: MeteredOperation, _ body: () throws -> Void) throws {
    try measure(operations[operation.rawValue], body)
  }

  private func measure<Result, Failure: Error>(
    _ meter: OperationMeter, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let run = begin(meter)
    do {
      let result: Result
      if let span = run.span { result = try span.within(body) } else { result = try body() }
      end(meter, run, after: elapsed(since: run))
      return result
    } catch {
      end(meter, run, after: elapsed(since: run), error: error)
      throw error
    }
  }

  @inlinable @inline(__always)
  func measure<Result, Failure: Error>(
    _ meter: OperationMeter, bytes: (Result) -> Int = { _ in 0 }, entries: (Result) -> Int = { _ in 1 },
    isDiscarded: (Result) -> Bool = { _ in false }, _ body: () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    let run = begin(meter)
    do {
      let result: Result
      if let span = run.span { result = try await span.within(body) } else { result = try await body() }
      let nanoseconds = elapsed(since: run)
      end(
        meter, run, after: nanoseconds, bytes: bytes(result), entries: entries(result), isDiscarded: isDiscarded(result)
      )
      return result
    } catch {
      end(meter, run, after: elapsed(since: run), error: error)
      throw error
    }
  }

  /// Records the start of an operation or a block.
  @usableFromInline
  func begin(_ meter: OperationMeter) -> Run {
    meter.begin()
    let span = tracer.map { RunSpan(meter.names, tracer: $0) }
    return Run(start: time.nanoseconds, span: span)
  }

  /// Returns the time since the start of an operation or a block, in nanoseconds.
  @usableFromInline
  func elapsed(since run: Run) -> Int64 {
    // An injected clock may run backwards.
    max(0, time.nanoseconds - run.start)
  }

  /// Records the end of an operation or a block.
  @usableFromInline
  func end(
    _ meter: OperationMeter, _ run: Run, after nanoseconds: Int64, error: (any Error)? = nil, bytes: Int = 0,
    entries: Int = 1, isDiscarded: Bool = false
  ) {
    let outcome = error.map(StoreMeter.outcome) ?? (isDiscarded ? .discarded : .success)
    meter.end(nanoseconds: nanoseconds, outcome: outcome, bytes: bytes)
    run.span?.end(outcome)
    guard nanoseconds >= slowNanoseconds, entries <= SlowLog.largestOperation, let logger,
      let omitted = slowLog.withLock({ $0.omittedBeforeWarning(at: run.start + nanoseconds) })
    else { return }
    var metadata: Logger.Metadata = [
      "store": "\(name)", "operation": "\(meter.name)", "outcome": "\(outcome.name)",
      "milliseconds": "\(nanoseconds / 1_000_000)",
    ]
    if omitted > 0 { metadata["omitted"] = "\(omitted)" }
    logger.warning("slow operation", metadata: metadata)
  }

  /// Returns the outcome for an error.
  ///
  /// Only failures count as errors. A cancellation does not.
  private static func outcome(of error: any Error) -> OperationMeter.Outcome {
    switch error {
    case let error as StoreError: OperationMeter.Outcome(name: error.code.rawValue, isFailure: true)
    case is CancellationError: OperationMeter.Outcome(name: "cancelled", isFailure: false)
    default: .other
    }
  }

  // MARK: The report

  /// Returns a report of the measurements so far.
  public func report() -> MeterReport {
    let blocks = blocks.withLock { $0.values.sorted { $0.name < $1.name } }
    return MeterReport(store: name, operations: (operations + blocks).compactMap { $0.report() })
  }
}

/// The warnings of slow operations in the current minute, of which there are few, so a slow disk does not fill the log.
struct SlowLog {
  /// The number of entries up to which an operation is logged.
  ///
  /// More is bulk work, which takes its time.
  static let largestOperation = 100

  static let warningsOfMinute = 10

  private var minute = Int64.min
  private var written = 0
  private var omitted = 0

  /// Returns the number of warnings that were omitted before this one, or `nil` if it is omitted, too.
  ///
  /// - Parameter nanoseconds: The time of the warning on the clock of the meter.
  mutating func omittedBeforeWarning(at nanoseconds: Int64) -> Int? {
    let now = nanoseconds / 60_000_000_000
    if now != minute { (minute, written) = (now, 0) }
    guard written < SlowLog.warningsOfMinute else {
      omitted += 1
      return nil
    }
    written += 1
    defer { omitted = 0 }
    return omitted
  }
}

/// The operations that a ``MeteredStore`` measures, by the names of the contract, in the order of a report.
@usableFromInline
enum MeteredOperation: Int, CaseIterable {
  case value, values, entries, keys, count, apply, update, synchronize, close
  case touch, remainingTime, purgeExpired, invalidate, invalidateAll, flush
  case statistics, verify, compact, backup

  /// A Boolean value that indicates whether the operation reads or writes values whose bytes can be counted.
  var hasBytes: Bool {
    switch self {
    case .value, .values, .entries, .apply, .update: true
    default: false
    }
  }
}
#endif
