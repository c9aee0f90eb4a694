import Foundation
import Larder
import LarderStoreQueue
import LarderTesting
import LarderWorker
import TestSupport
import Testing

#if ServiceLifecycle
import Logging
import ServiceLifecycle
import UnixSignals
#endif

/// The code of the pages of LarderWorker.
@Suite struct WorkerGuideTests {
  /// A service that remembers what it received.
  private struct Service: Sendable {
    let log: Log
    func send(_ mail: String) async throws { log.append([mail]) }
    func post(_ events: [String]) async throws { log.append(events) }
    func warning(_ text: String) {}
  }

  private final class Log: Sendable {
    private let texts = Locked<[String]>([])
    func append(_ more: [String]) { texts.withLock { $0 += more } }
    var all: [String] { texts.withLock { $0 } }
  }

  @Test func `a worker of two queues`() async throws {
    let log = Log()
    let (smtp, server, logger) = (Service(log: log), Service(log: log), Service(log: log))
    let (mails, events) = (try await queue(["mail"]), try await queue(["a", "b"]))
    // The worker ends when its queues are closed.
    let closing = Task {
      while try await mails.count() + events.count() > 0 { await Task.yield() }
      try await mails.close()
      try await events.close()
    }

    // snippet.overview
    let worker = QueueWorker(
      [
        QueueHandler(mails, weight: 3, timeLimit: .seconds(20)) { delivery in
          try await smtp.send(delivery.value)
        },
        QueueHandler(events, batch: 50) { deliveries in
          try await server.post(deliveries.map(\.value))
        },
      ],
      concurrency: 50,
      onEvent: { event in logger.warning("\(event)") })

    try await worker.run()
    // snippet.end

    try await closing.value
    #expect(log.all.sorted() == ["a", "b", "mail"])
  }

  @Test func `a handler with a limit of all workers`() async throws {
    let log = Log()
    let smtp = Service(log: log)
    let bytes = MemoryStore<[UInt8]>()
    let mails = try await queue(["a", "b", "c"])

    // snippet.limits
    let limiter = try StoreLimiter(
      bytes, key: "limits/mail",
      configuration: LimiterConfiguration(concurrency: 2, rate: RateLimit(100, per: .seconds(60), burst: 10)))
    let worker = QueueWorker([
      QueueHandler(mails, limiter: limiter) { delivery in
        try await smtp.send(delivery.value)
      }
    ])
    // snippet.end

    async let result: Void = worker.run()
    while worker.statistics().processed < 3 { await Task.yield() }
    worker.shutDown()
    try await result
    #expect(log.all.sorted() == ["a", "b", "c"])
  }

  #if ServiceLifecycle
  @Test func `a worker in a service group`() async throws {
    let queue = try await queue(["mail"])
    let logger = Logger(label: "worker")
    let worker = QueueWorker([QueueHandler(queue) { _ in }])
    let task = Task {
      while worker.statistics().processed < 1 { await Task.yield() }
      worker.shutDown()
    }
    func run() async throws {
      // snippet.stopping
      let group = ServiceGroup(
        configuration: .init(
          services: [QueueWorkerService(worker)], gracefulShutdownSignals: [.sigterm], logger: logger))
      try await group.run()
      // snippet.end
    }
    // A service that ends by itself is an error of the group.
    await #expect(throws: ServiceGroupError.self) { try await run() }
    await task.value
  }
  #endif

  @Test func `a batch that fails in part`() async throws {
    struct Refusal: Error {}
    struct Server: Sendable {
      func post(_ events: [String]) async throws -> [Int: any Error] { events.contains("b") ? [1: Refusal()] : [:] }
    }
    let (outbox, server) = (try await queue(["a", "b", "c"]), Server())

    // snippet.batches
    let events = QueueHandler(outbox, partialBatch: 50) { deliveries in
      let refused = try await server.post(deliveries.map(\.value))  // the errors of refused events, by position
      return Dictionary(uniqueKeysWithValues: refused.map { (deliveries[$0].receipt, $1) })
    }
    // snippet.end

    let worker = QueueWorker([events])
    async let result: Void = worker.run()
    while worker.statistics().processed < 2 { await Task.yield() }
    worker.shutDown()
    try await result
    #expect(try await outbox.count() == 1)
    #expect(worker.statistics().failed == 1)
  }

  @Test func `a worker that exits`() async throws {
    let (queue, hung, clock) = (try await queue(["mail"]), HungClosure(), ManualClock())
    let handlers = [QueueHandler(queue, timeLimit: .seconds(10)) { _ in await hung.run() }]
    let codes = Locked<[Int32]>([])
    func exit(_ code: Int32) { codes.withLock { $0.append(code) } }
    func work() async throws {
      let worker = QueueWorker(handlers, concurrency: 1, exitsIfStalled: true, clock: clock)
      try await worker.run()
    }
    // The page has no clock, and as many slots as a worker has by default.
    func workAsInTheGuide() async throws {
      // snippet.closures-that-don-t-end
      let worker = QueueWorker(handlers, exitsIfStalled: true)
      do {
        try await worker.run()
      } catch StoreError.Code.timedOut {
        exit(EXIT_FAILURE)  // A supervisor starts a new process.
      }
      // snippet.end
    }
    _ = workAsInTheGuide
    let running = Task {
      do { try await work() } catch StoreError.Code.timedOut { exit(EXIT_FAILURE) }
    }
    try await hung.waitForCalls(1)
    while codes.withLock({ $0.isEmpty }) {
      clock.advance(by: .seconds(5))
      for _ in 0..<100 { await Task.yield() }
    }
    try await running.value
    #expect(codes.withLock { $0 } == [EXIT_FAILURE])
    hung.end()
  }

  private func queue(_ items: [String]) async throws -> StoreQueue<MemoryStore<[UInt8]>, String> {
    let clock = ManualClock()
    let queue = try await StoreQueue(
      MemoryStore<[UInt8]>(), prefix: "queue/", codec: .json(String.self), environment: .manual(clock))
    try await queue.enqueue(items.map { QueueInput($0) })
    return queue
  }
}
