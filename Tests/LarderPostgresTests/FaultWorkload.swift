#if Postgres
import Foundation
import Larder
import LarderPostgres
import TestSupport
import Testing

/// Writers and consumers of a store and a queue, whose connections, server or process may end at any moment.
///
/// Each event is a line of a file, so what a killed process knew can be checked as well; see ``FaultReport``.
struct FaultWorkload: Sendable {
  /// A kind of write.
  ///
  /// Each write sets a key or enqueues an item of its own, `kind/number`.
  enum Kind: String, CaseIterable {
    /// An update of a counter and the key.
    case update = "u"
    /// The same in a transaction of several round trips.
    case transaction = "t"
    /// One request that sets the key.
    case set = "s"
    /// A transaction that sets the key and enqueues an item.
    case outbox = "o"
    /// A request that enqueues an item.
    case enqueue = "q"
  }

  static let storeName = "entries"
  static let queueName = "items"

  private let database: PostgresDatabase
  private let store: PostgresStore<Int>
  private let queue: PostgresQueue<String>
  private let log: FaultLog
  private let lease: Duration
  private let timeLimit: Duration

  /// Opens the store and the queue.
  ///
  /// - Parameters:
  ///   - connection: The connection string.
  ///   - schema: The schema. It must exist.
  ///   - path: The path of the file for the events.
  ///   - isolation: The isolation. Defaults to `readCommitted`.
  ///   - lease: The duration of leases. Defaults to half a second.
  ///   - timeout: The time limit of each call. Defaults to 10 seconds.
  init(
    _ connection: String, schema: String, log path: String, isolation: PostgresIsolation = .readCommitted,
    lease: Duration = .milliseconds(500), timeout: Duration = .seconds(10)
  ) async throws {
    // A call takes about twice as long at most, and longer only to find out its outcome.
    timeLimit = timeout * 3
    self.lease = lease
    let database = try await untilInTime {
      try await PostgresDatabase(connection, schema: schema, isolation: isolation, timeout: timeout)
    }
    self.database = database
    store = try await untilInTime {
      try await PostgresStore(in: database, name: FaultWorkload.storeName, codec: .json())
    }
    queue = try await untilInTime {
      try await PostgresQueue(
        in: database, name: FaultWorkload.queueName,
        // The memory of its ids shows which items there were.
        configuration: PostgresQueueConfiguration(
          policy: QueuePolicy(maximumDeliveries: nil, retryPolicy: .immediate, duplicateWindow: .seconds(86_400))))
    }
    log = try FaultLog(path)
  }

  /// Closes the database.
  func close() async { await database.close() }

  /// Waits until 8 more writes and 2 more acknowledgements have succeeded.
  func makeProgress() async throws {
    let (writes, acknowledgements) = (log.count(of: "done"), log.count(of: "acknowledged"))
    try await waitUntil(atMost: .seconds(300)) {
      log.count(of: "done") >= writes + 8 && log.count(of: "acknowledged") >= acknowledgements + 2
    }
  }

  /// Runs 8 writers and 8 consumers while a closure disturbs them, and returns when the queue is empty afterward.
  ///
  /// - Parameters:
  ///   - first: The number of the first write.
  ///   - limit: The number of writes of each writer. Defaults to no limit but the end of the closure.
  ///   - body: The closure. A failure of a writer or a consumer cancels it.
  func run(from first: Int = 0, limit: Int = .max, during body: @escaping @Sendable () async throws -> Void)
    async throws
  {
    let (isOver, hasAll) = (Flag(), Flag())
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        try await withThrowingTaskGroup(of: Void.self) { writers in
          for writer in 0..<8 {
            writers.addTask {
              var number = first + writer
              while !isOver.isSet, (number - first) / 8 < limit {
                try await write(Kind.allCases[(number / 8 + writer) % Kind.allCases.count], number)
                number += 8
              }
            }
          }
          try await writers.waitForAll()
        }
        hasAll.set()
      }
      for consumer in 0..<8 { group.addTask { try await consume(waiting: consumer < 4, until: hasAll) } }
      group.addTask {
        try await body()
        if limit == .max { isOver.set() }
      }
      // All but the consumers that wait for more items.
      for _ in 0..<6 { try await group.next() }
      group.cancelAll()
      while let result = await group.nextResult() {
        do { try result.get() } catch is CancellationError {}
      }
    }
  }

  // MARK: Writing

  private func write(_ kind: Kind, _ number: Int) async throws {
    let (id, key) = ("\(kind.rawValue)/\(number)", StoreKey("\(kind.rawValue)/\(number)"))
    let counter = StoreKey("counter/\(number % 2)")
    log.append("start", id)
    let outcome = try await measured(id) {
      switch kind {
      case .update:
        try await store.update([counter, key]) { ($0[0], $0[1]) = (($0[0] ?? 0) + 1, number) }
      case .transaction:
        try await database.write { transaction in
          try await transaction.update([counter], in: store) { $0[0] = ($0[0] ?? 0) + 1 }
          try await transaction.setValue(number, forKey: key, in: store)
        }
      case .set where number.isMultiple(of: 3):
        try await store.apply([.removeAll(.only("none")), .set(key, number)])
      case .set: try await store.setValue(number, forKey: key)
      case .outbox:
        try await database.write { transaction in
          try await transaction.setValue(number, forKey: key, in: store)
          try await transaction.enqueue([QueueInput(id, id: key)], in: queue)
        }
      case .enqueue:
        let group = number.isMultiple(of: 2) ? StoreKey("group \(number % 10)") : nil
        try await queue.enqueue([QueueInput(id, id: key, group: group)])
      }
    }
    log.append(outcome.failure.map { $0.outcome == .unknown ? "unknown" : "refused" } ?? "done", id)
  }

  // MARK: Consuming

  /// Acknowledges items until all were enqueued and the queue is empty.
  ///
  /// - Parameter isWaiting: A Boolean value that indicates whether the consumer waits for items until it is cancelled.
  private func consume(waiting isWaiting: Bool, until hasAll: Flag) async throws {
    // The queue is empty long before, unless acknowledged items come again and again.
    var deadline: ContinuousClock.Instant?
    while true {
      let isLast = hasAll.isSet
      if isLast, deadline == nil { deadline = .now + .seconds(60) }
      if !isWaiting, let deadline, deadline < .now { return }
      var deliveries: [QueueDelivery<String>] = []
      if isWaiting {
        do {
          deliveries = [try await queue.nextDelivery(lease: lease).get()]
        } catch let error as StoreError where error.isRetryable {
          try await pause()
        }
      } else {
        deliveries = try await measured("receive") { try await queue.receive(max: 3, lease: lease) }.result ?? []
      }
      for delivery in deliveries {
        log.append("delivered", delivery.value, delivery.attempt)
        let (stale, failure) = try await measured("acknowledge") { try await queue.acknowledge([delivery.receipt]) }
        let event =
          if let failure { failure.outcome == .unknown ? "maybe" : "kept" } else {
            stale == [] ? "acknowledged" : "stale"
          }
        log.append(event, delivery.value, delivery.attempt)
      }
      guard !isWaiting, deliveries.isEmpty else { continue }
      if isLast, try await measured("count", { try await queue.count() }).result == 0 { return }
      try await pause()
    }
  }

  /// Runs a call, and notes it if it took longer than the limit.
  ///
  /// - Returns: The result, or an error after which the caller would try again.
  private func measured<Result>(
    _ name: String, _ body: () async throws -> Result
  ) async throws -> (result: Result?, failure: StoreError?) {
    let start = ContinuousClock.now
    defer { if start.duration(to: .now) > timeLimit { log.append("late", name) } }
    do {
      return (try await body(), nil)
    } catch let error as StoreError where error.isRetryable {
      // So that callers without a server don't keep it from starting.
      try await pause()
      return (nil, error)
    }
  }

  private func pause() async throws { try await Task.sleep(for: .milliseconds(2)) }
}

/// A file of events, each of which outlives the process.
private final class FaultLog: Sendable {
  private let descriptor: Int32
  private let counts = Locked<[String: Int]>([:])

  init(_ path: String) throws {
    descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
    try #require(descriptor >= 0)
  }

  deinit { close(descriptor) }

  /// Returns the number of events of a kind in this process.
  func count(of event: String) -> Int { counts.withLock { $0[event] ?? 0 } }

  func append(_ event: String, _ id: String, _ attempt: Int = 0) {
    counts.withLock { $0[event, default: 0] += 1 }
    let line = Array("\(event) \(id) \(attempt)\n".utf8)
    #expect(write(descriptor, line, line.count) == line.count)
  }
}

/// The comparison of what the callers of a ``FaultWorkload`` know with what the database holds.
struct FaultReport {
  private struct Attempt: Hashable {
    let id: String
    let number: Int
  }

  private var writes: [String: Set<String>] = [:]
  private var attempts: [String: Set<Attempt>] = [:]

  /// Reads the files of events.
  init(logs: [String]) throws {
    for log in logs {
      for line in try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n") {
        let parts = line.split(separator: " ").map { String($0) }
        let (event, id, number) = (parts[0], parts[1], try #require(Int(parts[2])))
        if number == 0 { writes[event, default: []].insert(id) }
        if number > 0 { attempts[event, default: []].insert(Attempt(id: id, number: number)) }
      }
    }
  }

  /// The number of writes with an event: `done`, `refused` (nothing was changed) or `unknown`.
  func count(_ event: String) -> Int { writes[event]?.count ?? 0 }

  /// The ids of the items of attempts with an event: `acknowledged`, `stale`, `kept` (nothing was changed) or `maybe`.
  func items(_ event: String) -> [String] { (attempts[event] ?? []).map(\.id) }

  /// Records an issue for each promise that was broken.
  ///
  /// - Parameters:
  ///   - server: The server that now has the data.
  ///   - schema: The schema.
  func expectNothingLost(on server: PostgresServer, schema: String, sourceLocation: SourceLocation = #_sourceLocation)
    async throws
  {
    func ids(_ condition: String) async throws -> Set<String> {
      let rows = try await server.run(psql: "SELECT convert_from(key, 'UTF8') FROM \(schema).\(condition)")
      return Set(rows.split(separator: "\n").map { String($0) })
    }
    let entries = try await ids("\(FaultWorkload.storeName) WHERE key NOT LIKE 'counter%'")
    let items = try await ids("\(FaultWorkload.queueName) WHERE state = 4")
    let found = entries.union(items)
    func expect(_ ids: some Collection<String>, _ comment: Comment) {
      // Thousands of ids would be written for minutes, on a thread that other tests wait for.
      let some = Array(ids.prefix(10))
      #expect(some.isEmpty, comment, sourceLocation: sourceLocation)
    }
    expect(writes["late"] ?? [], "calls that took longer than the limit")
    let done = writes["done"] ?? []
    #expect(!done.isEmpty, sourceLocation: sourceLocation)
    expect(done.subtracting(found), "acknowledged writes that are lost")
    expect(found.intersection(writes["refused"] ?? []), "writes that changed something although they were refused")
    expect(found.subtracting(writes["start"] ?? []), "entries that no writer wrote")
    func kinds(_ ids: Set<String>, _ kinds: FaultWorkload.Kind...) -> Set<String> {
      ids.filter { id in kinds.contains { id.hasPrefix($0.rawValue) } }
    }
    expect(kinds(entries, .outbox).symmetricDifference(kinds(items, .outbox)), "halves of transactions")
    let values = try await server.run(
      psql: "SELECT value FROM \(schema).\(FaultWorkload.storeName) WHERE key LIKE 'counter%'")
    let sum = values.split(separator: "\n").compactMap { Int($0) }.reduce(0, +)
    let counted = kinds(entries, .update, .transaction)
    #expect(sum == counted.count, "each write counts once", sourceLocation: sourceLocation)

    // An item leaves the queue by an acknowledgement that was not refused, and does not come again.
    let left = (attempts["delivered"] ?? []).subtracting(attempts["kept"] ?? []).subtracting(attempts["stale"] ?? [])
    expect(items.subtracting(left.map(\.id)), "items that left without an acknowledgement")
    let last = Dictionary((attempts["acknowledged"] ?? []).map { ($0.id, $0.number) }, uniquingKeysWith: min)
    expect(
      (attempts["delivered"] ?? []).filter { $0.number > last[$0.id] ?? .max }.map(\.id),
      "items that came again after their acknowledgement")
    let rest = try await server.run(
      psql: "SELECT count(*) FROM \(schema).\(FaultWorkload.queueName) WHERE state NOT IN (4, 6)")
    #expect(rest == "0", "the queue is empty", sourceLocation: sourceLocation)
  }
}
#endif
