#if Metrics
import CoreMetrics
import InMemoryLogging
import InMemoryTracing
import Larder
import LarderTesting
import Logging
import MetricsTestKit
import TestSupport
import Testing
import Tracing

@testable import LarderMetrics

@Suite(.timeLimit(.minutes(60))) struct StoreMeterTests {
  private let clock = ManualClock()
  private let metrics = TestMetrics()
  private let log = InMemoryLogHandler()
  private let tracer = InMemoryTracer()

  private func meter(countsBytes: Bool = false) -> StoreMeter {
    StoreMeter(
      name: "users", countsBytes: countsBytes, logger: Logger(label: "test") { [log] _ in log }, metrics: metrics,
      tracer: tracer, clock: clock)
  }

  @Test func `operations are timed by the clock`() async throws {
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

  @Test func `every operation has a row in the order of the contract`() async throws {
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

  @Test func `errors are counted by their code`() async throws {
    struct BodyFailed: Error {}
    let store = MemoryStore<Int>().faulty().metered(by: meter())
    store.base.schedule(.error(.ioFailed), on: .apply)
    await #expect(throws: StoreError.self) { try await store.setValue(1, forKey: "k") }
    await #expect(throws: StoreError.self) { try await store.setValue(1, forKey: "") }
    await #expect(throws: BodyFailed.self) { try await store.update("k") { _ in throw BodyFailed() } }
    try await store.update(deciding: "k") { _ in .discard(()) }
    let cancelled = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await store.setValue(1, forKey: "k")
    }
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    let report = store.report()
    #expect(report["apply"]?.errors == ["ioFailed": 1, "invalidKey": 1])
    #expect(report["apply"]?.count == 3)
    #expect(report["update"]?.errors == [:])
    #expect(report["update"]?.count == 2)
    let outcomes = metrics.timers(label: "larder_operation_duration").compactMap { timer in
      timer.dimensions.first { $0.0 == "outcome" }?.1
    }
    #expect(outcomes.sorted() == ["cancelled", "discarded", "invalidKey", "ioFailed"])
    // Only these failures have spans.
    let failed = tracer.finishedSpans.filter { $0.status?.code == .error }
    #expect(failed.map { $0.attributes.get("larder.outcome") } == [.string("ioFailed"), .string("invalidKey")])
  }

  /// The body's error is the caller's own, whatever its type; that of a store below is not.
  @Test func `errors of a body pass through`() async throws {
    let store = MemoryStore<Int>().faulty().metered(by: meter())
    let thrown = StoreError(.conflict, during: .update, store: "mine", message: "mine")
    #expect(await expectStoreError(.conflict) { try await store.update("k") { _ in throw thrown } }?.store == "mine")
    await #expect(throws: CancellationError.self) { try await store.update("k") { _ in throw CancellationError() } }
    #expect(store.report()["update"]?.errors == [:])
    store.base.schedule(.error(.full), on: .update)
    await expectStoreError(.full) { try await store.update("k") { $0 = 1 } }
    #expect(store.report()["update"]?.errors == ["full": 1])
  }

  @Test(arguments: [Int.max, .min]) func `sizes are clamped`(size: Int) async throws {
    let store = MemoryStore<Int>().metered(by: meter(countsBytes: true)) { _ in size }
    let most = max(0, size)
    for _ in 0..<2 {
      try await store.apply([.set("a", 1), .set("b", 1)])
      _ = try await store.value(forKey: "a")
      _ = try await store.values(forKeys: ["a", "b"])
      _ = try await store.entries(in: .all, limit: 9, order: .ascending)
      try await store.update(["a", "b"]) { $0.assign([1, 2]) }
    }
    #expect(store.report().operations.map(\.bytes) == [most, most, most, most, most])
    for counter in metrics.counters { #expect(counter.values == (most == 0 ? [] : [Int64(most)])) }
  }

  /// A backend that uses a measured store itself, for example to keep its figures.
  @Test func `backends are called without a lock`() async throws {
    final class Backend: MetricsFactory {
      let meter = Locked<StoreMeter?>(nil)
      let inner = TestMetrics()

      private func measureSomething() {
        guard let meter = meter.withLock({ $0.take() }) else { return }
        meter.measure("block") {}
        _ = meter.report()
      }

      func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        measureSomething()
        return inner.makeCounter(label: label, dimensions: dimensions)
      }
      func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        inner.makeRecorder(label: label, dimensions: dimensions, aggregate: aggregate)
      }
      func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        measureSomething()
        return inner.makeMeter(label: label, dimensions: dimensions)
      }
      func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        measureSomething()
        return inner.makeTimer(label: label, dimensions: dimensions)
      }
      func destroyCounter(_ handler: any CounterHandler) {}
      func destroyRecorder(_ handler: any RecorderHandler) {}
      func destroyMeter(_ handler: any MeterHandler) {}
      func destroyTimer(_ handler: any TimerHandler) {}
    }
    let backend = Backend()
    let meter = StoreMeter(name: "users", countsBytes: true, logger: nil, metrics: backend)
    let store = MemoryStore<Int>().metered(by: meter) { _ in 8 }
    for _ in 0..<3 {
      backend.meter.withLock { $0 = meter }
      meter.measure("block") {}
      backend.meter.withLock { $0 = meter }
      try await store.setValue(1, forKey: "k")
    }
    #expect((meter.report()["block"]?.count ?? 0) >= 3)
  }

  @Test func `a view is measured with the name of its store`() async throws {
    let view = MemoryStore<[UInt8]>().typed(Int.self, prefix: "tenant/ada@example.org/", codec: .json()).metered()
    try await view.setValue(1, forKey: "x")
    let error = await expectStoreError(.invalidKey) { _ = try await view.value(forKey: "") }
    #expect(view.report().store == "memory")
    for text in ["\(view)", "\(view.report())", "\(view.information.name)", error.map { $0.detailedDescription } ?? ""]
    {
      #expect(!text.contains("ada"))
    }
  }

  @Test func `bytes are counted if a size is given`() async throws {
    let store = MemoryStore<[UInt8]>().metered(by: meter(countsBytes: true), size: \.count)
    try await store.apply([.set("a", [1, 2, 3]), .set("b", [4]), .remove("c")])
    _ = try await store.value(forKey: "a")
    _ = try await store.value(forKey: "missing")
    _ = try await store.values(forKeys: ["a", "b", "missing"])
    _ = try await store.entries(in: .all, limit: 1, order: .ascending)
    try await store.update(["a", "b"]) { $0.assign([[1, 2], nil]) }
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

  /// The time of a caller's closure does not count as the store's.
  @Test func `the size closure is not measured`() async throws {
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

  @Test func `operations in progress are a metric`() async throws {
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

  @Test func `counters are exact under many tasks`() async throws {
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

  @Test func `metrics name the store the operation and the outcome`() async throws {
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

  @Test func `slow operations are logged`() async throws {
    let store = MemoryStore<Int>().faulty(clock: clock).metered(by: meter())
    for (milliseconds, count) in [(99, 0), (100, 1)] {
      store.base.schedule(.delay(.milliseconds(milliseconds)), on: .value)
      async let value = store.value(forKey: "a private key")
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

  @Test func `bulk work is not logged as slow`() async throws {
    let meter = StoreMeter(
      name: "users", slowThreshold: .zero, logger: Logger(label: "test") { [log] _ in log }, metrics: metrics,
      tracer: tracer, clock: clock)
    let store = MemoryStore<Int>().metered(by: meter)
    let changes = (0..<101).map { BatchChange.set(StoreKey(integer: $0), $0) }
    try await store.apply(ChangeBatch(changes))
    _ = try await store.count(in: .all)
    _ = try await store.keys(in: .all, limit: .max, order: .ascending)
    _ = try await store.entries(in: .all, limit: .max, order: .ascending)
    _ = try await store.values(forKeys: changes.compactMap(\.key))
    #expect(log.entries.isEmpty)
    _ = try await store.entries(in: .all, limit: 100, order: .ascending)
    try await store.apply(ChangeBatch(Array(changes.dropLast())))
    #expect(log.entries.map { $0.metadata["operation"] } == ["entries", "apply"])
  }

  @Test func `warnings of slow operations are limited`() {
    var slow = SlowLog()
    let second: Int64 = 1_000_000_000
    let first = (0..<12).map { slow.omittedBeforeWarning(at: $0 * second) }
    #expect(first == Array(repeating: 0, count: 10) + [nil, nil])
    #expect(slow.omittedBeforeWarning(at: 59 * second) == nil)
    #expect(slow.omittedBeforeWarning(at: 60 * second) == 3)
    #expect(slow.omittedBeforeWarning(at: 61 * second) == 0)
  }

  @Test func `operations have spans within their callers`() async throws {
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

  /// Work done by another task, as by the committer of a group.
  @Test func `work for callers is a child of one or linked to all`() async throws {
    let store = MemoryStore<Int>().metered(by: meter())
    #expect(CallerContexts.current == nil)
    let requests = (0..<3).map { tracer.startSpan("request \($0)") }
    let callers = requests.map { request in
      InstrumentationContext.$current.withValue(request.context) { CallerContexts.current }
    }
    .compactMap { $0 }
    try await InstrumentationContext.$current.withValue(.topLevel) {
      try await CallerContexts.run(for: Array(callers.prefix(1))) { try await store.setValue(1, forKey: "one") }
      try await CallerContexts.run(for: callers) {
        try await store.metered(by: meter()).setValue(1, forKey: "many")
      }
      try await CallerContexts.run(for: []) { try await store.setValue(1, forKey: "none") }
    }
    let ids = requests.map { $0.context.inMemorySpanContext?.spanID }
    let spans = tracer.finishedSpans
    #expect(spans.count == 4)
    #expect(spans[0].parentSpanID == ids[0] && spans[0].links.isEmpty)
    // The inner span, and the outer span, which has the links.
    #expect(spans[1].parentSpanID == spans[2].spanID && spans[1].links.isEmpty)
    #expect(spans[2].parentSpanID == nil)
    #expect(spans[2].links.map { $0.context.inMemorySpanContext?.spanID } == ids)
    #expect(spans[3].parentSpanID == nil && spans[3].links.isEmpty)
  }

  @Test func `work that also serves untraced callers belongs to no trace`() async throws {
    let store = MemoryStore<Int>().metered(by: meter())
    let request = tracer.startSpan("request")
    let caller = InstrumentationContext.$current.withValue(request.context) { CallerContexts.current }
    try await CallerContexts.run(for: [nil, caller, nil]) { try await store.setValue(1, forKey: "k") }
    let span = try #require(tracer.finishedSpans.first)
    #expect(span.parentSpanID == nil)
    #expect(span.links.map { $0.context.inMemorySpanContext } == [request.context.inMemorySpanContext])
  }

  /// Backends keep no more links, and a group may have thousands of callers.
  @Test func `a span has no more links than backends keep`() async throws {
    let store = MemoryStore<Int>().metered(by: meter())
    let requests = (0..<200).map { tracer.startSpan("request \($0)") }
    let callers = requests.map { request in
      InstrumentationContext.$current.withValue(request.context) { CallerContexts.current }
    }
    try await CallerContexts.run(for: callers) { try await store.setValue(1, forKey: "k") }
    let span = try #require(tracer.finishedSpans.first)
    let ids = requests.prefix(128).map { $0.context.inMemorySpanContext?.spanID }
    #expect(span.links.map { $0.context.inMemorySpanContext?.spanID } == ids)
  }

  @Test func `measured blocks have spans`() async throws {
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

  /// Keys and values are passed only to the store.
  @Test func `keys and values are not exported`() async throws {
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

  @Test func `blocks are measured by their names`() async throws {
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

  @Test func `a report is a table or JSON`() async throws {
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
