#if Metrics
import CoreMetrics
import InMemoryTracing
import Larder
import LarderMetrics
import LarderStoreQueue
import LarderTesting
import MetricsTestKit
import Testing
import Tracing

@Suite(.timeLimit(.minutes(5)))
struct OpenTelemetryNamesTests {
  private let clock = ManualClock()
  private let metrics = TestMetrics()
  private let tracer = InMemoryTracer()

  private func meter(_ name: String) -> StoreMeter {
    StoreMeter(
      name: name, logger: nil, names: .openTelemetry(system: "sqlite"), metrics: metrics, tracer: tracer, clock: clock)
  }

  /// Returns the histograms with a label, each as its dimensions and the number of its values.
  private func histograms(_ label: String) -> [String] {
    metrics.recorders.filter { $0.label == label && $0.aggregate }.map { recorder in
      (recorder.dimensions.map { "\($0.0)=\($0.1)" } + ["\(recorder.values.count)"]).joined(separator: " ")
    }.sorted()
  }

  @Test func `operations of a store have the names for databases`() async throws {
    let store = MemoryStore<Int>().faulty(clock: clock).metered(by: meter("users"))
    store.base.schedule(.delay(.milliseconds(250)), on: .value)
    async let value = store.value(forKey: "k")
    try await clock.waitForSleepers(1)
    clock.advance(by: .milliseconds(250))
    #expect(try await value == nil)
    store.base.schedule(.error(.full), on: .apply)
    await #expect(throws: StoreError.self) { try await store.setValue(1, forKey: "k") }
    try await store.update("k") { $0 = 2 }
    try await store.update(deciding: "k") { _ in .discard(()) }
    #expect(
      histograms("db.client.operation.duration") == [
        "db.system.name=sqlite db.operation.name=apply db.collection.name=users error.type=full 1",
        "db.system.name=sqlite db.operation.name=update db.collection.name=users error.type= 2",
        "db.system.name=sqlite db.operation.name=value db.collection.name=users error.type= 1",
      ])
    #expect(metrics.recorders.first { $0.dimensions.contains { $0.1 == "value" } && $0.aggregate }?.values == [0.25])
    #expect(metrics.timers(label: "larder_operation_duration").isEmpty)
    // A registry for Prometheus ends the process if two series of a metric have different labels.
    #expect(
      Set(metrics.recorders.filter { $0.label == "db.client.operation.duration" }.map { $0.dimensions.map(\.0) }).count
        == 1)
  }

  @Test func `operations of a queue have the names for messaging`() async throws {
    let queue = try await MemoryStore<[UInt8]>().queue(of: String.self, prefix: "q/", codec: .json())
      .metered(by: meter("mails"))
    try await queue.enqueue("mail")
    let delivery = try #require(try await queue.receive(max: 1, lease: .seconds(60)).first)
    try await queue.acknowledge(delivery.receipt)
    try await queue.enqueue([QueueInput("second"), QueueInput("third")])
    // A consumer that waits makes a receive, too.
    guard case .success = try await queue.nextDelivery(lease: .seconds(60)) else {
      Issue.record("the item cannot be read")
      return
    }
    #expect(try await queue.receive(max: 9, lease: .seconds(60)).count == 1)
    #expect(try await queue.receive(max: 9, lease: .seconds(60)).isEmpty)
    await #expect(throws: StoreError.self) { try await queue.enqueue([QueueInput("bad", after: .seconds(-1))]) }
    #expect(
      histograms("messaging.client.operation.duration") == [
        "messaging.system=sqlite messaging.operation.name=acknowledge messaging.operation.type=settle "
          + "messaging.destination.name=mails error.type= 1",
        "messaging.system=sqlite messaging.operation.name=enqueue messaging.operation.type=send "
          + "messaging.destination.name=mails error.type= 2",
        "messaging.system=sqlite messaging.operation.name=enqueue messaging.operation.type=send "
          + "messaging.destination.name=mails error.type=invalidArgument 1",
        "messaging.system=sqlite messaging.operation.name=receive messaging.operation.type=receive "
          + "messaging.destination.name=mails error.type= 4",
      ])
    let counters = metrics.counters.filter { $0.label.hasPrefix("messaging.") }.map { counter in
      ([counter.label] + counter.dimensions.map { "\($0.0)=\($0.1)" } + ["\(counter.totalValue)"])
        .joined(separator: " ")
    }
    #expect(
      counters.sorted() == [
        "messaging.client.consumed.messages messaging.system=sqlite messaging.operation.name=receive "
          + "messaging.destination.name=mails error.type= 3",
        "messaging.client.sent.messages messaging.system=sqlite messaging.operation.name=enqueue "
          + "messaging.destination.name=mails error.type= 3",
        "messaging.client.sent.messages messaging.system=sqlite messaging.operation.name=enqueue "
          + "messaging.destination.name=mails error.type=invalidArgument 1",
      ])
  }

  /// The conventions have a name for an error that is not known.
  @Test func `an error that is no store error is other`() async throws {
    struct Mistake: Error {}
    let store = MemoryStore<Int>().metered(by: meter("users"))
    await #expect(throws: Mistake.self) { try await store.forward(.verify, of: nil) { throw Mistake() } }
    #expect(
      histograms("db.client.operation.duration").contains(
        "db.system.name=sqlite db.operation.name=verify db.collection.name=users error.type=_OTHER 1"))
  }

  @Test func `spans have the attributes`() async throws {
    let store = MemoryStore<Int>().metered(by: meter("users"))
    _ = try await store.value(forKey: "k")
    await #expect(throws: StoreError.self) { try await store.value(forKey: "") }
    store.meter.measure("decode") {}
    #expect(tracer.finishedSpans.map(\.operationName) == ["value users", "value users", "larder.decode"])
    let span = try #require(tracer.finishedSpans.first)
    #expect(span.attributes.get("db.system.name") == .string("sqlite"))
    #expect(span.attributes.get("db.operation.name") == .string("value"))
    #expect(span.attributes.get("db.collection.name") == .string("users"))
    #expect(span.attributes.get("error.type") == nil)
    #expect(tracer.finishedSpans[1].attributes.get("error.type") == .string("invalidKey"))
    #expect(tracer.finishedSpans[2].attributes.get("larder.outcome") == .string("success"))
  }
}
#endif
