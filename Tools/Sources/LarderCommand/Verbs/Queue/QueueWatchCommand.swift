import ArgumentParser
import Foundation
import Larder
import StoreAccess

/// `larder queue watch`.
struct QueueWatchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch",
    abstract: "Print the number of items in each state, and its rate of change, again and again.",
    discussion: """
      Prints the object of `larder queue stat` for each interval, with a further member perSecond: by how much each \
      number has changed per second since the last line, which is null in the first line. On a terminal, one line is \
      rewritten instead.

      The queue is open only while it is counted, so that other programs can use it in between. If another program keeps \
      a queue: open, the verb ends with 75.

        larder queue watch queue:mail
        larder queue watch lmdb:shop#queues --prefix jobs/ --every 10s --count 6
      """)

  @OptionGroup var queue: QueueArgument
  @OptionGroup var access: AccessOption
  @Option(help: ArgumentHelp("The time between two lines, such as 500ms or 1m.", valueName: "time"))
  var every = DurationArgument(.seconds(1))
  @Option(help: ArgumentHelp("The number of lines. Defaults to no limit.", valueName: "n")) var count: Int?

  func validate() throws {
    guard every.duration > .zero else { throw ValidationError("--every must be greater than zero") }
    guard count.map({ $0 >= 1 }) ?? true else { throw ValidationError("--count must be at least 1") }
  }

  func run() async throws {
    do {
      try await StoreSession.watchQueue(queue.target, access: access.storeAccess) { look, output in
        try await watch(look, printingTo: output, clock: ContinuousClock())
      }
    } catch let error as StoreError where error.code == .locked && error.operation == .open {
      throw CommandFailure(
        error, hint: "Only one program at a time can have this queue open, so only that program can count its items.")
    }
  }

  private func watch(
    _ look: () async throws -> QueueStatistics, printingTo output: ByteOutput, clock: ContinuousClock
  ) async throws {
    let isTerminal = Descriptor.standardOutput.isTerminal
    let start = clock.now
    var last: QueueLook?
    var number = 1
    while true {
      let look = QueueLook(statistics: try await look(), time: start.duration(to: clock.now))
      let rates = last.flatMap { look.rates(since: $0) }
      if isTerminal {
        // The last column stays free, because some terminals begin a new line after writing it.
        let text = look.text(rates).prefix((Descriptor.standardOutput.columns ?? 80) - 1)
        try output.write(Array("\r\(text)\u{1B}[K".utf8))
        if number == count { try output.writeLine("") }
      } else {
        try output.writeLine(look.json(rates))
      }
      try output.flush()
      guard number != count else { return }
      (last, number) = (look, number + 1)
      try await clock.sleep(for: every.duration)
    }
  }
}

/// The statistics of a queue at one moment.
struct QueueLook {
  /// The statistics.
  let statistics: QueueStatistics

  /// The time since the first look.
  let time: Duration

  /// The numbers of items by state, with their names.
  private static let states: [(name: String, count: any KeyPath<QueueCounts, Int> & Sendable)] = [
    ("waiting", \.waiting), ("delayed", \.delayed), ("leased", \.leased), ("dead", \.dead),
  ]

  /// Returns by how much the number of items in each state has changed per second.
  ///
  /// - Parameter earlier: An earlier look.
  /// - Returns: The rates in the order waiting, delayed, leased, dead; `nil` if no time has passed.
  func rates(since earlier: QueueLook) -> [Double]? {
    let seconds = (time - earlier.time) / .seconds(1)
    guard seconds > 0 else { return nil }
    return Self.states.map { state in
      Double(statistics.counts[keyPath: state.count] - earlier.statistics.counts[keyPath: state.count]) / seconds
    }
  }

  /// Returns the line for a program.
  ///
  /// - Parameter rates: The changes per second, or `nil` if they are unknown.
  func json(_ rates: [Double]?) -> String {
    let perSecond = rates.map { rates in
      let members = zip(Self.states, rates).map { "\"\($0.name)\":\(String(format: "%.3f", $1))" }
      return "{\(members.joined(separator: ","))}"
    }
    return "{\(QueueLine.members(of: statistics)),\"perSecond\":\(perSecond ?? "null")}"
  }

  /// Returns the line for a terminal.
  ///
  /// - Parameter rates: The changes per second, or `nil` if they are unknown.
  func text(_ rates: [Double]?) -> String {
    var parts = Self.states.enumerated().map { index, state in
      let rate = rates.map { String(format: " (%+.1f/s)", $0[index]) } ?? ""
      return "\(state.name) \(statistics.counts[keyPath: state.count])\(rate)"
    }
    if let age = statistics.oldestAge { parts.append("oldest \(age.inSeconds)") }
    return parts.joined(separator: "  ")
  }
}
