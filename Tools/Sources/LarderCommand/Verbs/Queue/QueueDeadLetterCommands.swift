import ArgumentParser
import Larder
import LarderQueue

/// `larder queue dead`.
struct QueueDeadCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dead",
    abstract: "Print the dead letters: items that were delivered too often or cannot be decoded.",
    discussion: """
      Prints a line {"key":...,"value":...,"attempts":...,"reason":"...","date":"...","sequence":...} for each dead \
      letter, in the order of arrival. A value that cannot be decoded is null, and a further member "message" holds \
      the reason. If --limit ends the list early, a line on standard error holds the sequence number to continue \
      after.

        larder queue dead queue:mail
        larder queue dead queue:mail --limit 100
        larder queue dead queue:mail --limit 100 --after 4711
      """)

  @OptionGroup var queue: QueueArgument
  @OptionGroup var access: AccessOption
  @Option(help: ArgumentHelp("The maximum number of dead letters to print.", valueName: "n")) var limit: Int?
  @Option(help: ArgumentHelp("Continue after the dead letter with this sequence number.", valueName: "sequence"))
  var after: UInt128 = 0

  func validate() throws {
    guard limit.map({ $0 >= 1 }) ?? true else { throw ValidationError("--limit must be at least 1") }
  }

  func run() async throws {
    try await StoreSession.runQueue(queue, access: access.storeAccess, operation: .deadLetters) { queue in
      // One more dead letter shows whether there are any beyond the limit.
      try await queue.deadLetters(limit: limit.map { $0 == .max ? $0 : $0 + 1 } ?? .max, after: after)
    } print: { letters, output in
      let page = letters.prefix(limit ?? .max)
      for letter in page {
        try output.writeLine { QueueLine.append(letter, to: &$0) }
      }
      if page.count < letters.count, let last = page.last { Diagnostics.writeLine("next: \(last.sequence)") }
    }
  }
}

/// `larder queue requeue`.
struct QueueRequeueCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "requeue",
    abstract: "Move dead letters to the end of the queue.",
    discussion: """
      The items count as new and never delivered. Keys without a dead letter are ignored. With keys, either all their \
      dead letters are moved or none is. With --all, dead letters stay if there is a live item with their key. Prints \
      {"requeued":...} with the number of moved dead letters.

        larder queue requeue queue:mail welcome:7
        larder queue requeue queue:mail --all
      """)

  @OptionGroup var queue: QueueArgument
  @Argument(help: ArgumentHelp("The keys of the dead letters.", valueName: "key")) var texts: [String] = []
  @Flag(help: "Move all dead letters.") var all = false
  @OptionGroup var keys: KeyOptions

  func validate() throws {
    guard texts.isEmpty == all else { throw ValidationError("give either keys or --all") }
  }

  func run() async throws {
    let keys = try texts.map { try self.keys.key($0) }
    try await StoreSession.runQueue(queue, operation: .requeue) { queue in
      do {
        return try await all ? queue.requeueDeadLetters() : queue.requeue(keys)
      } catch let error as StoreError where error.code == .conflict {
        throw CommandFailure(
          .badData, "\(error.fullMessage)\(error.key.map { " (key \($0))" } ?? "")",
          advice: "Nothing was changed. Remove that item, or purge the dead letter.")
      }
    } print: { count, output in
      try output.writeLine("{\"requeued\":\(count)}")
    }
  }
}

/// `larder queue purge`.
struct QueuePurgeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "purge",
    abstract: "Remove dead letters permanently.",
    discussion: """
      Keys without a dead letter are ignored. Prints {"purged":...} with the number of removed dead letters.

        larder queue purge queue:mail
        larder queue purge queue:mail welcome:7
      """)

  @OptionGroup var queue: QueueArgument
  @Argument(help: ArgumentHelp("The keys of the dead letters; defaults to all dead letters.", valueName: "key"))
  var texts: [String] = []
  @OptionGroup var keys: KeyOptions

  func run() async throws {
    let keys = try texts.map { try self.keys.key($0) }
    try await StoreSession.runQueue(queue, operation: .purgeDeadLetters) { queue in
      try await keys.isEmpty ? queue.purgeDeadLetters() : queue.purgeDeadLetters(keys)
    } print: { count, output in
      try output.writeLine("{\"purged\":\(count)}")
    }
  }
}

/// A sequence number is decimal.
extension UInt128: @retroactive ExpressibleByArgument {
  /// Creates a number from its text.
  public init?(argument: String) {
    self.init(argument)
  }
}
