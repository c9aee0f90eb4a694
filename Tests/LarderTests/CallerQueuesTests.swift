import Larder
import Testing

struct CallerQueuesTests {
  private let queues = CallerQueues<String>()

  @Test func `callers of one key take turns, and those of another do not wait`() async throws {
    try await queues.enter("a")
    #expect(!queues.tryEnter("a"))
    #expect(queues.tryEnter("b"))
    let order = Locked<[Int]>([])
    let waiting = Task { [queues] in
      try await queues.withTurn(of: "a") { order.withLock { $0.append(2) } }
    }
    order.withLock { $0.append(1) }
    queues.leave("a")
    try await waiting.value
    #expect(order.withLock { $0 } == [1, 2])
    #expect(queues.tryEnter("a"))
  }

  @Test func `a cancelled caller leaves the queue`() async throws {
    try await queues.enter("a")
    let waiting = Task { [queues] in try await queues.enter("a") }
    waiting.cancel()
    await #expect(throws: CancellationError.self) { try await waiting.value }
    queues.leave("a")
    #expect(queues.tryEnter("a"))
  }
}
