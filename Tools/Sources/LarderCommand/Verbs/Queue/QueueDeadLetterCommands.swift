public import ArgumentParser
import Foundation
import Larder
import StoreAccess

/// `larder queue dead`.
struct QueueDeadCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dead",
    abstract: "List dead letters, requeue them, or remove them.",
    discussion: """
      A dead letter is an item that was delivered too often or cannot be decoded. It is no longer delivered.

        larder queue dead list queue:mail
        larder queue dead requeue queue:mail --all
        larder queue dead expire queue:mail --older-than 7d
      """,
    subcommands: [
      QueueDeadListCommand.self, QueueDeadRequeueCommand.self, QueueDeadExpireCommand.self, QueueDeadPurgeCommand.self,
    ])
}

/// `larder queue dead list`.
struct QueueDeadListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Print the dead letters.",
    discussion: """
      Prints a line {"key":...,"value":...,"attempts":...,"reason":"...","date":"...","sequence":...} for each dead \
      letter, in the order of arrival. A value that cannot be decoded is null, and a further member "message" holds \
      the reason. If --limit ends the list early, a line on standard error holds the sequence number to continue \
      after.

        larder queue dead list queue:mail
        larder queue dead list queue:mail --limit 100
        larder queue dead list queue:mail --limit 100 --after 4711
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
    try await StoreSession.runQueue(queue.target, access: access.storeAccess) { queue in
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

/// `larder queue dead requeue`.
struct QueueDeadRequeueCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "requeue",
    abstract: "Move dead letters to the end of the queue.",
    discussion: """
      The items count as new and never delivered. Keys without a dead letter are ignored. With keys, either all their \
      dead letters are moved or none is. With --all, dead letters stay if there is a live item with their key. Prints \
      {"requeued":...} with the number of moved dead letters.

        larder queue dead requeue queue:mail welcome:7
        larder queue dead requeue queue:mail --all
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
    try await StoreSession.runQueue(queue.target) { queue in
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

/// `larder queue dead expire`.
struct QueueDeadExpireCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "expire",
    abstract: "Permanently remove dead letters that have been dead for a time.",
    discussion: """
      A dead letter stays if a later one with the same key has not been dead for that time. Prints {"expired":...} with \
      the number of removed dead letters.

        larder queue dead expire queue:mail --older-than 7d
      """)

  @OptionGroup var queue: QueueArgument
  @Option(help: ArgumentHelp("The time for which removed dead letters have been dead, such as 7d.", valueName: "time"))
  var olderThan: DurationArgument

  func run() async throws {
    try await StoreSession.runQueue(queue.target) { queue in
      let end = Date.now.addingTimeInterval(-(olderThan.duration / .seconds(1)))
      let keys = try await Self.keys(ofLettersIn: queue, until: end)
      return try await keys.isEmpty ? 0 : queue.purgeDeadLetters(keys)
    } print: { count, output in
      try output.writeLine("{\"expired\":\(count)}")
    }
  }

  /// Returns the keys of which all dead letters died until a date.
  ///
  /// - Parameters:
  ///   - queue: The queue.
  ///   - end: The date.
  /// - Throws: The errors of the queue.
  static func keys(ofLettersIn queue: some DurableQueue, until end: Date) async throws -> [StoreKey] {
    var (old, kept): (Set<StoreKey>, Set<StoreKey>) = ([], [])
    var page = try await queue.deadLetters(limit: 256)
    while let last = page.last {
      for letter in page {
        // A damaged dead letter has no date, and is not removed because it cannot be read.
        let isOld = letter.date > Date(timeIntervalSince1970: 0) && letter.date <= end
        if isOld { old.insert(letter.key) } else { kept.insert(letter.key) }
      }
      page = try await queue.deadLetters(limit: 256, after: last.sequence)
    }
    return old.subtracting(kept).sorted()
  }
}

/// `larder queue dead purge`.
struct QueueDeadPurgeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "purge",
    abstract: "Remove dead letters permanently.",
    discussion: """
      Keys without a dead letter are ignored. Prints {"purged":...} with the number of removed dead letters.

        larder queue dead purge queue:mail
        larder queue dead purge queue:mail welcome:7
      """)

  @OptionGroup var queue: QueueArgument
  @Argument(help: ArgumentHelp("The keys of the dead letters. Defaults to all dead letters.", valueName: "key"))
  var texts: [String] = []
  @OptionGroup var keys: KeyOptions

  func run() async throws {
    let keys = try texts.map { try self.keys.key($0) }
    try await StoreSession.runQueue(queue.target) { queue in
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
