#if Metrics
import Larder
import LarderMetrics
import LarderStoreQueue
import Testing

@Suite struct MeteredQueueTests {
  @Test func `a metered queue counts deliveries and deaths`() async throws {
    let configuration = StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 2, retryPolicy: .immediate))
    let queue = try await MemoryStore<[UInt8]>().queue(
      of: String.self, prefix: "q/", codec: .json(), configuration: configuration
    )
    .metered()
    try await queue.enqueue([QueueInput("a"), QueueInput("b")])
    for _ in 0..<2 {
      let delivery = try #require(try await queue.receive(lease: .seconds(60)))
      try await queue.release(delivery.receipt)
    }
    try await queue.withNext(lease: .seconds(60)) { #expect($0.value == "b") }
    let report = queue.report()
    #expect(report["enqueue"]?.count == 1)
    #expect(report["receive"]?.count == 2)
    #expect(report["acknowledge"]?.count == 1)
    #expect(report["release"]?.count == 2)
    #expect(report["delivery"]?.count == 2)
    #expect(report["redelivery"]?.count == 1)
    #expect(report["deadLetter"]?.count == 1)
    // Behind an existential, the queue is still one.
    #expect(try await AnyDataStore(queue).queue?.counts() == QueueCounts(dead: 1))
    #expect(AnyDataStore(queue).pausableQueue != nil)
    #expect(AnyDataStore(queue).inspectableQueue != nil)
  }

  @Test func `deaths of a queue behind an existential are counted`() async throws {
    let configuration = StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1, retryPolicy: .immediate))
    let queue = try await MemoryStore<[UInt8]>().queue(
      of: String.self, prefix: "q/", codec: .json(), configuration: configuration
    )
    let metered = AnyDataStore(queue).metered()
    try await queue.enqueue([QueueInput("a")])
    let delivery = try #require(try await queue.receive(lease: .seconds(60)))
    try await queue.release(delivery.receipt)
    #expect(metered.report()["deadLetter"]?.count == 1)
  }
}
#endif
