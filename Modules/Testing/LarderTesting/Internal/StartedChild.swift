import Foundation
import Larder

/// A process that a case has started.
final class StartedChild: Sendable {
  private let exchange: ConformanceLocation
  private let ended = Flag()
  private let task: Task<Void, any Error>
  private let reportsRead = Tally()

  init(_ start: @escaping ConformanceChild.Start, order: String, exchange: ConformanceLocation) {
    self.exchange = exchange
    // An exit test blocks the thread that it runs on until its process ends. The tasks of the store need theirs.
    task = Task(executorPreference: SeparateThreads()) { [ended] in
      defer { ended.raise() }
      try Data().write(to: URL(filePath: exchange.path("reports")))
      try await start(order)
    }
  }

  /// Talks to the process, and then ends it.
  ///
  /// - Throws: What the closure throws, and what starting the process has thrown.
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

  /// Lets the process go on that waits for a step.
  ///
  /// - Throws: What the file system throws.
  func take(_ step: ChildStep) throws {
    try Data().write(to: URL(filePath: exchange.path(step.rawValue)))
  }

  /// The next report of the process, once there is one.
  ///
  /// - Throws: A ``Mismatch`` if the process has ended without one.
  func next() async throws -> ChildReport {
    let number = reportsRead.add()
    while true {
      let isOver = ended.isRaised
      let reports = try reportsUntilNow()
      if number < reports.count { return reports[number] }
      guard !isOver else {
        throw Mismatch(
          subject: "another process that opens the store", expected: "report \(number + 1)",
          got: "its end; \(number) reports before", place: "\(#fileID):\(#line)")
      }
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  /// All reports of the process, when it has ended.
  ///
  /// - Throws: What starting it has thrown.
  func reports() async throws -> [ChildReport] {
    try await task.value
    return try reportsUntilNow()
  }

  private func reportsUntilNow() throws -> [ChildReport] {
    guard let lines = FileManager.default.contents(atPath: exchange.path("reports")) else { return [] }
    // What stands behind the last end of a line was cut short by the end of the process.
    return try lines.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast()
      .map { try JSONDecoder().decode(ChildReport.self, from: $0) }
  }
}
