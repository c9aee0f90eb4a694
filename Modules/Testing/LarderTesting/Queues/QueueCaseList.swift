import Larder
import Synchronization

/// The queue that a suite checks, and the settings of the suite.
struct QueueSuiteSettings<Queue: DurableQueue>: Sendable where Queue.Value == SampleValue? {
  let name: String
  let lacking: StoreCapabilities
  let isShared: Bool
  let seed: UInt64
  let rounds: Int
  let timeLimit: Duration
  let open: @Sendable (QueueLocation) async throws -> Queue
}

/// A run of one case, with its location and the queues that it has opened.
final class QueueTrial<Queue: DurableQueue>: Sendable where Queue.Value == SampleValue? {
  let location: QueueLocation
  private let settings: QueueSuiteSettings<Queue>
  private let queues = Mutex<[Queue]>([])

  init(_ settings: QueueSuiteSettings<Queue>) throws {
    self.settings = settings
    location = QueueLocation(try ConformanceLocation())
  }

  /// Runs a case, closes its queues, and removes its location.
  func run<Result>(_ body: (QueueTrial) async throws -> Result) async throws -> Result {
    let result: Swift.Result<Result, any Error>
    do {
      result = .success(try await body(self))
    } catch {
      result = .failure(error)
    }
    // An error of the case takes precedence over an error of the cleanup.
    do {
      for queue in queues.withLock({ $0 }) { try await queue.close() }
      queues.withLock { $0 = [] }
      try location.files.remove()
    } catch {
      _ = try result.get()
      throw error
    }
    return try result.get()
  }

  var clock: ManualClock { location.clock }

  /// Whether the queue keeps its items when it is closed.
  var isPersistent: Bool { !settings.lacking.contains(.persistence) }

  /// Opens a queue, and closes it when the case ends.
  func open() async throws -> Queue {
    let queue = try await settings.open(location)
    queues.withLock { $0.append(queue) }
    return queue
  }

  /// Closes and reopens a queue, or returns it unchanged if it lacks persistence.
  func settled(_ queue: Queue) async throws -> Queue {
    guard isPersistent else { return queue }
    try await queue.close()
    return try await open()
  }

  /// Advances the clock, and lets the queue handle what has become due.
  func advance(by seconds: Int) {
    clock.advance(by: .seconds(seconds))
  }
}

/// The cases of a suite of a queue; an extension in each file of cases adds its own.
struct QueueCaseList<Queue: DurableQueue> where Queue.Value == SampleValue? {
  let settings: QueueSuiteSettings<Queue>
  private(set) var cases: [ConformanceCase] = []

  init(_ settings: QueueSuiteSettings<Queue>) {
    self.settings = settings
    addDeliveryCases()
    addReceiptCases()
    addOrderCases()
    addDeadLetterCases()
    addWaitingCases()
    addStoreCases()
    addHistoryCases()
  }

  /// Adds a case.
  ///
  /// - Parameters:
  ///   - id: The number of the case, and a letter if several cases have that number.
  ///   - name: The rule that must hold.
  ///   - promise: The promise that the case checks; defaults to that about deliveries.
  ///   - needs: The capabilities that the case requires of the queue; defaults to none.
  ///   - file: The file that failures name.
  ///   - line: The line that failures name.
  ///   - body: A closure that throws a ``Mismatch`` if the promise is broken.
  mutating func add(
    _ id: String, _ name: String, checks promise: ConformancePromise = .deliveries, needs: StoreCapabilities = [],
    file: String = #fileID, line: Int = #line,
    _ body: @escaping @Sendable (Queue, QueueTrial<Queue>) async throws -> Void
  ) {
    let settings = settings
    cases.append(
      ConformanceCase(
        id: id, name: name, group: .queues, promise: promise, needs: needs, place: "\(file):\(line)"
      ) { conformanceCase in
        do {
          try await TimeLimit(settings.timeLimit, of: "case \(conformanceCase) of \(settings.name)").run {
            try await QueueTrial(settings).run { trial in try await body(trial.open(), trial) }
          }
        } catch let mismatch as Mismatch {
          throw ConformanceFailure(mismatch, in: conformanceCase, of: settings.name, seed: settings.seed)
        } catch {
          try Task.checkCancellation()
          throw ConformanceFailure(
            Mismatch(subject: "running the case", expected: "no error", got: text(of: error)),
            in: conformanceCase, of: settings.name, seed: settings.seed)
        }
      })
  }
}

extension DurableQueue where Value == SampleValue? {
  /// Receives items and returns their numbers.
  func receiveNumbers(max: Int = 1, lease: Int = 60) async throws -> [Int64] {
    try await receive(max: max, lease: .seconds(lease)).map(\.number)
  }

  /// Receives one item, which must be there.
  func receiveOne(lease: Int = 60) async throws -> Delivery<Value> {
    guard let delivery = try await receive(lease: .seconds(lease)).first else {
      throw Mismatch(subject: "receiving one item", expected: "a delivery", got: "none")
    }
    return delivery
  }

  /// Enqueues numbered items in one call.
  func enqueue(numbers: [Int64]) async throws {
    try await enqueue(numbers.map { QueueInput(.number($0)) })
  }
}

extension Delivery where Element == SampleValue? {
  /// The number of the item, or -1 if the value is `nil`.
  var number: Int64 { value?.integer ?? -1 }
}

extension SampleValue? {
  /// Returns a value with a number.
  static func number(_ number: Int64) -> SampleValue? { SampleValue(integer: number) }
}
