#if Metrics
public import CoreMetrics
internal import Larder
public import Logging
internal import Synchronization
public import Tracing

/// Measures operations: for a report, for swift-metrics, for a log of the slow ones, and for tracing.
///
/// A ``MeteredStore`` has one. Blocks of one's own are measured beside its operations:
///
/// ```swift
/// let image = try store.meter.measure("decode") { try Image(data: data) }
/// ```
///
/// Nothing of a key or a value ever comes into a metric, a log line or a span: only the names of the store and of the
/// operation, the code of an error, and how long it took.
///
/// What goes out:
///
/// - swift-metrics: a timer `larder_operation_duration` with the dimensions `store`, `operation` and `outcome` (`success`,
///   `aborted`, `cancelled`, or the code of the error); a meter `larder_operations_in_flight`; and, where bytes are counted, a counter
///   `larder_operation_bytes`.
/// - swift-log: a warning for each operation that took at least ``slowThreshold``.
/// - swift-distributed-tracing: a span `larder.OPERATION` with the attributes `larder.store` and `larder.outcome`. It belongs
///   to the span of its caller. That of work for several callers, such as a group commit, has links to all of theirs.
public final class StoreMeter: Sendable {
  /// The name under which operations are measured.
  public let name: String

  /// From how long on an operation is logged.
  public let slowThreshold: Duration

  private let time: MonotonicTime
  private let logger: Logger?
  private let tracer: (any Tracer)?
  private let factory: (any MetricsFactory)?
  private let slowNanoseconds: UInt64
  private let operations: [OperationMeter]
  private let blocks = Mutex<[String: OperationMeter]>([:])

  /// Makes a meter that has measured nothing.
  ///
  /// - Parameters:
  ///   - name: The name under which operations are measured.
  ///   - countsBytes: Whether operations say how many bytes they read or write; not unless said.
  ///   - slowThreshold: From how long on an operation is logged; 100 ms unless given.
  ///   - logger: Where slow operations are logged; a logger of the label `larder` unless given, `nil` for nowhere.
  ///   - metrics: The backend of swift-metrics; the one that the process was bootstrapped with unless given. One that does
  ///     nothing costs nothing.
  ///   - tracer: The tracer; the one that the process was bootstrapped with unless given. One that does nothing costs
  ///     nothing.
  ///   - clock: What measures; the system's monotonic clock, read directly, unless given.
  public init(
    name: String, countsBytes: Bool = false, slowThreshold: Duration = .milliseconds(100),
    logger: Logger? = Logger(label: "larder"), metrics: any MetricsFactory = MetricsSystem.factory,
    tracer: any Tracer = InstrumentationSystem.tracer, clock: (any Clock<Duration>)? = nil
  ) {
    self.name = name
    self.slowThreshold = slowThreshold
    self.logger = logger
    self.tracer = tracer is NoOpTracer ? nil : tracer
    let factory = metrics is NOOPMetricsHandler ? nil : metrics
    self.factory = factory
    operations = MeteredOperation.allCases.map {
      OperationMeter(
        $0.operation.rawValue, store: name, countsBytes: countsBytes && $0.hasBytes, factory: factory)
    }
    slowNanoseconds = slowThreshold.wholeNanoseconds
    time = clock.map { MonotonicTime($0) } ?? MonotonicTime()
  }

  /// Captures the span of the current task; `nil` if nothing is traced.
  var callerContext: (@Sendable () -> (any CallerContext)?)? {
    guard tracer != nil else { return nil }
    return { InstrumentationContext.current.map { TracedCaller(context: $0) } }
  }

  // MARK: Blocks

  /// Measures a block.
  ///
  /// - Parameters:
  ///   - block: What the block is called in the report, in metrics and in logs. It should be one of few, and no key.
  ///   - body: The block. Spans that it starts belong to that of the block.
  /// - Returns: What the block returns.
  /// - Throws: What the block throws.
  public func measure<Result, Failure: Error>(
    _ block: String, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let meter = blockMeter(block)
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

  /// Measures an asynchronous block; see ``measure(_:_:)``.
  ///
  /// - Parameters:
  ///   - block: What the block is called in the report, in metrics and in logs. It should be one of few, and no key.
  ///   - body: The block. It runs where the caller is, and spans that it starts belong to that of the block.
  /// - Returns: What the block returns.
  /// - Throws: What the block throws.
  public func measure<Result, Failure: Error>(
    _ block: String, _ body: () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    let meter = blockMeter(block)
    let run = begin(meter)
    do {
      let result: Result
      if let span = run.span { result = try await span.within(body) } else { result = try await body() }
      end(meter, run, after: elapsed(since: run))
      return result
    } catch {
      end(meter, run, after: elapsed(since: run), error: error)
      throw error
    }
  }

  private func blockMeter(_ block: String) -> OperationMeter {
    blocks.withLock { blocks in
      if let meter = blocks[block] { return meter }
      let meter = OperationMeter(block, store: name, countsBytes: false, factory: factory)
      blocks[block] = meter
      return meter
    }
  }

  // MARK: Operations

  // What a `MeteredStore` calls is inlined into its user's module: there the types are known. Where they are not, to find
  // out what an optional of such a value is costs more than the two looks at the clock.

  /// An operation or block that goes on.
  @usableFromInline
  struct Run {
    @usableFromInline let start: UInt64
    @usableFromInline let span: RunSpan?

    init(start: UInt64, span: RunSpan?) {
      self.start = start
      self.span = span
    }
  }

  /// Measures an operation of a store.
  ///
  /// - Parameters:
  ///   - operation: Which one.
  ///   - bytes: How many bytes it has read or written, told by its result; what telling takes is not measured.
  ///   - body: Does it.
  @inlinable
  func measure<Result>(
    _ operation: MeteredOperation, bytes: (Result) -> Int = { _ in 0 }, _ body: () async throws -> Result
  ) async throws -> Result {
    let run = begin(operation)
    do {
      let result: Result
      if let span = run.span { result = try await span.within(body) } else { result = try await body() }
      let nanoseconds = elapsed(since: run)
      end(operation, run, after: nanoseconds, error: nil, bytes: bytes(result))
      return result
    } catch {
      end(operation, run, after: elapsed(since: run), error: error, bytes: 0)
      throw error
    }
  }

  /// Measures an operation of a store that does not wait.
  ///
  /// - Parameters:
  ///   - operation: Which one.
  ///   - body: Does it.
  func measure(_ operation: MeteredOperation, _ body: () throws -> Void) throws {
    let run = begin(operation)
    do {
      if let span = run.span { try span.within(body) } else { try body() }
      end(operation, run, after: elapsed(since: run), error: nil, bytes: 0)
    } catch {
      end(operation, run, after: elapsed(since: run), error: error, bytes: 0)
      throw error
    }
  }

  /// Notes that an operation begins.
  @usableFromInline
  func begin(_ operation: MeteredOperation) -> Run {
    begin(operations[operation.rawValue])
  }

  /// How long an operation or a block took that ends now, in nanoseconds.
  @usableFromInline
  func elapsed(since run: Run) -> UInt64 {
    let now = time.now
    // A clock that is injected may go back.
    return now > run.start ? now - run.start : 0
  }

  /// Counts an operation that is over.
  @usableFromInline
  func end(_ operation: MeteredOperation, _ run: Run, after nanoseconds: UInt64, error: (any Error)?, bytes: Int) {
    end(operations[operation.rawValue], run, after: nanoseconds, error: error, bytes: bytes)
  }

  private func begin(_ meter: OperationMeter) -> Run {
    meter.begin()
    let span = tracer.map { RunSpan(meter.name, store: name, tracer: $0) }
    return Run(start: time.now, span: span)
  }

  private func end(
    _ meter: OperationMeter, _ run: Run, after nanoseconds: UInt64, error: (any Error)? = nil, bytes: Int = 0
  ) {
    let outcome = error.map(StoreMeter.outcome) ?? .success
    meter.end(nanoseconds: nanoseconds, outcome: outcome, bytes: bytes)
    run.span?.end(outcome)
    if nanoseconds >= slowNanoseconds, let logger {
      logger.warning(
        "slow operation",
        metadata: [
          "store": "\(name)", "operation": "\(meter.name)", "outcome": "\(outcome.name)",
          "milliseconds": "\(nanoseconds / 1_000_000)",
        ])
    }
  }

  /// How an operation ended that threw.
  ///
  /// Only what failed is an error, not what a caller gave up.
  private static func outcome(of error: any Error) -> OperationMeter.Outcome {
    switch error {
    case let error as StoreError: OperationMeter.Outcome(name: error.code.rawValue, isFailure: true)
    case is CancellationError: OperationMeter.Outcome(name: "cancelled", isFailure: false)
    case is AbortedUpdate: OperationMeter.Outcome(name: "aborted", isFailure: false)
    default: OperationMeter.Outcome(name: "other", isFailure: true)
    }
  }

  // MARK: The report

  /// What was measured so far.
  public func report() -> MeterReport {
    let blocks = blocks.withLock { $0.values.sorted { $0.name < $1.name } }
    return MeterReport(store: name, operations: (operations + blocks).compactMap { $0.report() })
  }
}
#endif
