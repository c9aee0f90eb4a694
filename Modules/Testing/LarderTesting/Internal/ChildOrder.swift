import Foundation
import Larder

/// An order for another process.
struct ChildOrder: Codable, Sendable {
  enum Work: Codable, Sendable {
    /// Open the store while it is open in the first process, and report its contents.
    case share
    /// Write until the process is killed.
    case write(ChildPlan)
  }

  /// The folder of the store's ``ConformanceLocation``.
  var folder: String
  /// The folder through which the two processes communicate.
  var exchange: String
  var work: Work
}

extension ChildOrder {
  /// Decodes an order from its text; returns `nil` if the text is not an order.
  init?(_ text: String) {
    do {
      self = try JSONDecoder().decode(ChildOrder.self, from: Data(text.utf8))
    } catch {
      return nil
    }
  }

  /// Returns the order as text.
  ///
  /// - Throws: Any error from the encoder.
  func text() throws -> String {
    String(decoding: try JSONEncoder().encode(self), as: UTF8.self)
  }
}

/// The writes of a process, and the moment when it is killed.
struct ChildPlan: Codable, Sendable {
  /// The moment when a process is killed.
  enum Death: Codable, Sendable {
    /// A number of microseconds after its first write.
    case after(UInt32)
    /// The first write beyond a file size in bytes; that write is cut short.
    case beyond(UInt64)
  }

  /// The number of its first batch.
  var first: Int
  /// The seed that determines the batches.
  var seed: UInt64
  var death: Death

  /// The number of batches that a process writes if it is not killed first.
  static let count = 120
}

/// A report from the second process to the first, written as one line.
enum ChildReport: Codable, Sendable, Equatable {
  /// Opening the store was refused with `locked`.
  case locked
  /// The store contains these keys and strings.
  case holds([String: String])
  /// A batch was acknowledged.
  case acknowledged(Int)
  /// All batches up to this one were synchronized.
  case synchronized(Int)
  /// An unexpected error occurred.
  case failed(String)

  init(holding entries: Entries) {
    self = .holds(Dictionary(uniqueKeysWithValues: entries.map { ($0.key.description, $0.value?.text ?? "nil") }))
  }
}

/// A step of the first process that the second one waits for.
enum ChildStep: String, Sendable {
  case isClosed, look, end
}

/// A batch that a process writes before it is killed; a number and a seed determine its changes.
struct ChildBatch: Sendable {
  /// The key whose value is the number of the latest batch.
  static let counter: StoreKey = "counter"

  let number: Int
  private let changes: [BatchChange<SampleValue?>]

  init(number: Int, seed: UInt64) {
    self.number = number
    var generator = SeededGenerator(seed: seed, purpose: "batch \(number)")
    var changes: [BatchChange<SampleValue?>] = [.set(ChildBatch.counter, SampleValue(integer: Int64(number)))]
    for _ in 0..<3 {
      let text = String(repeating: "\(number) ", count: .random(in: 1..<400, using: &generator))
      changes.append(.set(ChildBatch.key(using: &generator), SampleValue(text)))
    }
    changes.append(.set(ChildBatch.key(using: &generator), nil))
    changes.append(.remove(ChildBatch.key(using: &generator)))
    if number.isMultiple(of: 9) { changes.append(.removeAll("k0"..<"k3")) }
    self.changes = changes
  }

  private static func key(using generator: inout SeededGenerator) -> StoreKey {
    StoreKey("k\(Int.random(in: 0..<8, using: &generator))")
  }

  /// Writes the batch; every third batch that does not remove a range is written by an update.
  ///
  /// - Throws: Any error from the store.
  func write<Store: DataStore>(to store: Store) async throws where Store.Value == SampleValue? {
    let keys = Array(Set(changes.compactMap(\.key)))
    guard number % 3 == 1, !number.isMultiple(of: 9) else { return try await store.apply(ChangeBatch(changes)) }
    try await store.update(keys) { [changes] slots in
      var values = Dictionary(uniqueKeysWithValues: zip(keys, slots))
      for change in changes {
        if case .set(let key, let value) = change { values[key] = .some(.some(value)) }
        if case .remove(let key) = change { values[key] = .some(nil) }
      }
      slots.assign(keys.map { values[$0] ?? nil })
    }
  }

  /// Returns the entries of a store after a batch and all earlier batches.
  static func entries(afterBatch number: Int, seed: UInt64) -> Entries {
    var entries: Entries = [:]
    for number in 1..<number + 1 {
      for change in ChildBatch(number: number, seed: seed).changes { change.apply(to: &entries) }
    }
    return entries
  }
}

/// A process that a case has started.
final class StartedChild: Sendable {
  private let exchange: ConformanceLocation
  private let ended = Flag()
  private let task: Task<Void, any Error>
  private let reportsRead = Tally()

  init(_ start: @escaping ConformanceChild.Start, order: String, exchange: ConformanceLocation) {
    self.exchange = exchange
    // An exit test blocks its thread until its process exits. The store's tasks need the threads of the pool.
    task = Task(executorPreference: SeparateThreads()) { [ended] in
      defer { ended.raise() }
      try Data().write(to: URL(filePath: exchange.path("reports")))
      try await start(order)
    }
  }

  /// Runs a closure that communicates with the process, then ends the process.
  ///
  /// - Throws: Any error from the closure or from starting the process.
  func talk(_ body: () async throws -> Void) async throws {
    do {
      try await body()
    } catch {
      try take(.end)
      try await task.value
      throw error
    }
    try take(.end)
    try await task.value
  }

  /// Takes a step that the process waits for.
  ///
  /// - Throws: Any error from the file system.
  func take(_ step: ChildStep) throws {
    try Data().write(to: URL(filePath: exchange.path(step.rawValue)))
  }

  /// Returns the next report of the process when there is one.
  ///
  /// - Throws: A ``Mismatch`` if the process has exited without another report.
  func next() async throws -> ChildReport {
    let number = reportsRead.add()
    while true {
      let isOver = ended.isRaised
      let reports = try reportsUntilNow()
      if number < reports.count { return reports[number] }
      guard !isOver else {
        throw Mismatch(
          subject: "the reports of another process that opens the store", expected: "report \(number + 1)",
          got: "an exit after \(number) reports")
      }
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  /// Returns all reports of the process after it has exited.
  ///
  /// - Throws: Any error from starting the process.
  func reports() async throws -> [ChildReport] {
    try await task.value
    return try reportsUntilNow()
  }

  private func reportsUntilNow() throws -> [ChildReport] {
    guard let lines = FileManager.default.contents(atPath: exchange.path("reports")) else { return [] }
    // Bytes after the last line feed belong to a report that was cut short when the process ended.
    return try lines.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast()
      .map { try JSONDecoder().decode(ChildReport.self, from: $0) }
  }
}
