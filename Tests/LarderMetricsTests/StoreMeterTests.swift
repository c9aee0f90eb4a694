#if Metrics
import CoreMetrics
import InMemoryLogging
import InMemoryTracing
import Larder
import LarderMetrics
import LarderTesting
import Logging
import MetricsTestKit
import Testing
import Tracing

@Suite struct StoreMeterTests {
  private let clock = ManualClock()
  private let metrics = TestMetrics()
  private let log = InMemoryLogHandler()
  private let tracer = InMemoryTracer()

  private func meter(countsBytes: Bool = false) -> StoreMeter {
    StoreMeter(
      name: "users", countsBytes: countsBytes, logger: Logger(label: "test") { [log] _ in log }, metrics: metrics,
      tracer: tracer, clock: clock)
  }

  @Test func operationsAreTimedByTheClock() async throws {
    let store = MemoryStore<Int>().faulty(clock: clock).metered(by: meter())
    store.base.schedule(.delay(.milliseconds(30)), on: .value)
    async let value = store.value(forKey: "k")
    try await clock.waitForSleepers(1)
    #expect(store.report()["value"]?.inFlight == 1)
    clock.advance(by: .milliseconds(30))
    #expect(try await value == nil)
    let report = try #require(store.report()["value"])
    #expect(report.count == 1 && report.inFlight == 0 && report.errors.isEmpty)
    #expect(report.longest == .milliseconds(30))
    #expect(report.mean == .milliseconds(30))
  }

  @Test func everyOperationHasARowInTheOrderOfTheContract() async throws {
    let store = MemoryStore<Int>().metered(by: meter())
    try await store.setValue(1, forKey: "k")
    _ = try await store.value(forKey: "k")
    _ = try await store.values(forKeys: ["k"])
    _ = try await store.entries(in: .all, limit: 9, order: .ascending)
    _ = try await store.keys(in: .all, limit: 9, order: .ascending)
    _ = try await store.count(in: .all)
    try await store.update("k") { $0 = 2 }
    try await store.synchronize()
    try await store.close()
    let operations = store.report().operations
    #expect(
      operations.map(\.name) == [
        "value", "values", "entries", "keys", "count", "apply", "update", "synchronize", "close",
      ])
    #expect(operations.allSatisfy { $0.count == 1 && $0.errorCount == 0 && $0.bytes == nil })
  }

  @Test func errorsAreCountedByTheirCode() async throws {
    struct BodyFailed: Error {}
    let store = MemoryStore<Int>().faulty().metered(by: meter())
    store.base.schedule(.error(.ioFailed), on: .apply)
    await #expect(throws: StoreError.self) { try await store.setValue(1, forKey: "k") }
    await #expect(throws: StoreError.self) { try await store.setValue(1, forKey: "") }
    await #expect(throws: BodyFailed.self) { try await store.update("k") { _ in throw BodyFailed() } }
    let cancelled = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await store.setValue(1, forKey: "k")
    }
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    let report = store.report()
    #expect(report["apply"]?.errors == ["ioFailed": 1, "invalidKey": 1, "cancelled": 1])
    #expect(report["apply"]?.count == 3)
    #expect(report["update"]?.errors == ["other": 1])
  }

  @Test func bytesAreCountedWhereASizeIsGiven() async throws {
    let store = MemoryStore<[UInt8]>().metered(by: meter(countsBytes: true), size: \.count)
    try await store.apply([.set("a", [1, 2, 3]), .set("b", [4]), .remove("c")])
    _ = try await store.value(forKey: "a")
    _ = try await store.value(forKey: "missing")
    _ = try await store.values(forKeys: ["a", "b", "missing"])
    _ = try await store.entries(in: .all, limit: 1, order: .ascending)
    try await store.update(["a", "b"]) { $0 = [[1, 2], nil] }
    let report = store.report()
    #expect(report["apply"]?.bytes == 4)
    #expect(report["value"]?.bytes == 3)
    #expect(report["values"]?.bytes == 4)
    #expect(report["entries"]?.bytes == 3)
    #expect(report["update"]?.bytes == 2)
    _ = try await store.count(in: .all)
    #expect(store.report()["count"]?.bytes == nil)
    let dimensions = [("store", "users"), ("operation", "values")]
    #expect(metrics.counterTotal(label: "larder_operation_bytes", dimensions: dimensions) == 4)
    #expect(metrics.counters.count == 5)
  }

  /// What a caller's closure takes is not the store's time.
  @Test func tellingTheSizeIsNotMeasured() async throws {
    let clock = clock
    let store = MemoryStore<Int>().metered(by: meter(countsBytes: true)) { _ in
      clock.advance(by: .seconds(1))
      return 8
    }
    try await store.setValue(1, forKey: "k")
    _ = try await store.value(forKey: "k")
    #expect(store.report().operations.map(\.longest) == [.zero, .zero])
    #expect(store.report().operations.map(\.bytes) == [8, 8])
  }

  @Test func whatIsInFlightIsAMetricToo() async throws {
    let store = MemoryStore<Int>().faulty(clock: clock).metered(by: meter())
    store.base.schedule(.delay(.milliseconds(30)), on: .value)
    async let value = store.value(forKey: "k")
    try await clock.waitForSleepers(1)
    let inFlight = try metrics.expectMeter(
      "larder_operations_in_flight", [("store", "users"), ("operation", "value")])
    #expect(inFlight.values.last == 1)
    clock.advance(by: .milliseconds(30))
    _ = try await value
    #expect(inFlight.values.last == 0)
    #expect(metrics.meters.count == 1)
  }

  @Test func countersAreExactUnderManyTasks() async throws {
    let store = MemoryStore<Int>().metered(by: meter())
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<100 {
        group.addTask {
          for number in 0..<50 {
            try await store.setValue(number, forKey: "\(task)")
            _ = try await store.value(forKey: "\(task)")
          }
        }
      }
      try await group.waitForAll()
    }
    let report = store.report()
    #expect(report["apply"]?.count == 5000)
    #expect(report["value"]?.count == 5000)
    #expect(report.operations.allSatisfy { $0.inFlight == 0 })
    let timer = try metrics.expectTimer(
      "larder_operation_duration", [("store", "users"), ("operation", "value"), ("outcome", "success")])
    #expect(timer.values.count == 5000)
  }

  @Test func metricsNameTheStoreTheOperationAndTheOutcome() async throws {
    let store = MemoryStore<Int>().faulty().metered(by: meter())
    store.base.schedule(.error(.full), on: .apply)
    await #expect(throws: StoreError.self) { try await store.setValue(1, forKey: "k") }
    _ = try await store.value(forKey: "k")
    let labels = metrics.timers(label: "larder_operation_duration").map { timer in
      timer.dimensions.map { "\($0.0)=\($0.1)" }.joined(separator: " ")
    }
    #expect(
      labels.sorted() == [
        "store=users operation=apply outcome=full", "store=users operation=value outcome=success",
      ])
  }

  @Test func whatIsSlowIsLogged() async throws {
    let store = MemoryStore<Int>().faulty(clock: clock).metered(by: meter())
    for (milliseconds, count) in [(99, 0), (100, 1)] {
      store.base.schedule(.delay(.milliseconds(milliseconds)), on: .value)
      async let value = store.value(forKey: "a key of somebody's")
      try await clock.waitForSleepers(1)
      clock.advance(by: .milliseconds(milliseconds))
      _ = try await value
      #expect(log.entries.count == count)
    }
    let entry = try #require(log.entries.first)
    #expect(entry.level == .warning)
    #expect(
      entry.metadata == ["store": "users", "operation": "value", "outcome": "success", "milliseconds": "100"])
  }

  @Test func operationsHaveSpansWithinTheirCallers() async throws {
    let store = MemoryStore<Int>().metered(by: meter())
    let outer = tracer.startSpan("request")
    try await InstrumentationContext.$current.withValue(outer.context) {
      _ = try await store.value(forKey: "k")
      await #expect(throws: StoreError.self) { try await store.value(forKey: "") }
    }
    outer.end()
    let spans = tracer.finishedSpans.filter { $0.operationName == "larder.value" }
    #expect(spans.count == 2)
    #expect(spans.allSatisfy { $0.attributes.get("larder.store") == .string("users") })
    #expect(spans.map { $0.attributes.get("larder.outcome") } == [.string("success"), .string("invalidKey")])
    #expect(spans.allSatisfy { $0.parentSpanID == outer.context.inMemorySpanContext?.spanID })
  }

  @Test func blocksHaveSpansAroundWhatTheyDo() async throws {
    struct Failed: Error {}
    let meter = meter()
    let store = MemoryStore<Int>().metered(by: meter)
    _ = try await meter.measure("load") { try await store.value(forKey: "k") }
    meter.measure("decode") { tracer.startSpan("inside").end() }
    await #expect(throws: Failed.self) { try await meter.measure("failing") { () async throws in throw Failed() } }
    let spans = tracer.finishedSpans
    #expect(spans.map(\.operationName) == ["larder.value", "larder.load", "inside", "larder.decode", "larder.failing"])
    #expect(spans[0].parentSpanID == spans[1].spanID)
    #expect(spans[2].parentSpanID == spans[3].spanID)
    #expect(spans[4].attributes.get("larder.outcome") == .string("other"))
  }

  /// Keys and values are told to the store, and to nobody else.
  @Test func nothingOfAKeyOrAValueGoesOut() async throws {
    struct Leak: Error, CustomStringConvertible { let description = "secret-value" }
    let meter = StoreMeter(
      name: "users", slowThreshold: .zero, logger: Logger(label: "test") { [log] _ in log }, metrics: metrics,
      tracer: tracer)
    let store = MemoryStore<String>().faulty().metered(by: meter)
    try await store.setValue("secret-value", forKey: "secret-key")
    _ = try await store.value(forKey: "secret-key")
    _ = try await store.entries(in: .prefix("secret-"), limit: 9, order: .ascending)
    await #expect(throws: Leak.self) { try await store.update("secret-key") { _ in throw Leak() } }
    store.base.schedule(.error(.corrupted), on: .value)
    await #expect(throws: StoreError.self) { try await store.value(forKey: "secret-key") }
    let spans = tracer.finishedSpans
    #expect(!log.entries.isEmpty && !spans.isEmpty)
    var told = "\(log.entries)\(store.report())\(try store.report().json())"
    for span in spans { told += "\(span.operationName)\(span.attributes)\(span.errors)\(span.events)" }
    for timer in metrics.timers { told += "\(timer.label)\(timer.dimensions)" }
    for meter in metrics.meters { told += "\(meter.label)\(meter.dimensions)" }
    #expect(!told.contains("secret"))
  }

  @Test func blocksAreMeasuredByTheirNames() async throws {
    struct Failed: Error {}
    let meter = meter()
    #expect(meter.measure("decode") { 7 } == 7)
    #expect(
      await meter.measure("fetch") {
        await Task.yield(); return 8
      } == 8)
    #expect(throws: Failed.self) { try meter.measure("decode") { throw Failed() } }
    let report = meter.report()
    #expect(report.operations.map(\.name) == ["decode", "fetch"])
    #expect(report["decode"]?.count == 2)
    #expect(report["decode"]?.errors == ["other": 1])
  }

  @Test func aReportIsATableForPeopleAndJSONForPrograms() async throws {
    let store = MemoryStore<Int>().faulty(clock: clock).metered(by: meter())
    store.base.schedule(.delay(.microseconds(1500)), on: .count)
    async let count = store.count()
    try await clock.waitForSleepers(1)
    clock.advance(by: .microseconds(1500))
    _ = try await count
    #expect(
      store.report().description == """
        users  count  errors  in flight     mean      p50      p90      p95      p99      max
        count      1       0          0  1.50 ms  1.50 ms  1.50 ms  1.50 ms  1.50 ms  1.50 ms
        """)
    let json = try store.report().json()
    #expect(json.contains("\"store\":\"users\""))
    #expect(json.contains("\"maxNanoseconds\":1500000"))
    #expect(json.contains("\"p99Nanoseconds\":1500000"))
  }
}
#endif
