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

  @Test func aWorkerOfTwoQueues() async throws {
    let log = Log()
    let (smtp, server, logger) = (Service(log: log), Service(log: log), Service(log: log))
    let (mails, events) = (try await queue(["mail"]), try await queue(["a", "b"]))
    // The worker ends when its queues are closed.
    let closing = Task {
      while try await mails.count() + events.count() > 0 { await Task.yield() }
      try await mails.close()
      try await events.close()
    }

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

    try await closing.value
    #expect(log.all.sorted() == ["a", "b", "mail"])
  }

  #if ServiceLifecycle
  @Test func aWorkerInAServiceGroup() async throws {
    let queue = try await queue(["mail"])
    let logger = Logger(label: "worker")
    let worker = QueueWorker([QueueHandler(queue) { _ in }])
    let task = Task {
      while worker.statistics().processed < 1 { await Task.yield() }
      worker.shutDown()
    }
    func run() async throws {
      let group = ServiceGroup(
        configuration: .init(
          services: [QueueWorkerService(worker)], gracefulShutdownSignals: [.sigterm], logger: logger))
      try await group.run()
    }
    // A service that ends by itself is an error of the group.
    await #expect(throws: ServiceGroupError.self) { try await run() }
    await task.value
  }
  #endif

  @Test func thePagesHaveNoOtherCode() throws {
    for page in ["UsingWorkers", "LarderWorker"] {
      let path = "Modules/Applications/LarderWorker/LarderWorker.docc/\(page).md"
      #expect(try Guide(path).paragraphsMissing() == [], "\(page)")
    }
  }

  private func queue(_ items: [String]) async throws -> StoreQueue<MemoryStore<[UInt8]>, String> {
    let clock = ManualClock()
    let queue = try await StoreQueue(
      MemoryStore<[UInt8]>(), prefix: "queue/", codec: .json(String.self), environment: .manual(clock))
    try await queue.enqueue(items.map { QueueInput($0) })
    return queue
  }
}
