import ArgumentParser
import Larder
import LarderQueue

/// `larder queue dead`.
struct QueueDeadCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dead",
    abstract: "Print the dead letters: what was delivered too often, or cannot be decoded.",
    discussion: """
      Prints a line {"key":…,"value":…,"attempts":…,"reason":"…","date":"…","sequence":…} for each, in the order of \
      arrival. In place of a value that cannot be decoded stands null, and a member "message" says why. If --limit cuts \
      the list short, a line on standard error says where to continue.

        larder queue dead queue:mail
        larder queue dead queue:mail --limit 100
        larder queue dead queue:mail --limit 100 --after 4711
      """)

  @OptionGroup var queue: QueueArgument
  @OptionGroup var access: AccessOption
  @Option(help: ArgumentHelp("The most dead letters to print.", valueName: "n")) var limit: Int?
  @Option(help: ArgumentHelp("Continue behind the dead letter with this sequence number.", valueName: "sequence"))
  var after: UInt64 = 0

  func validate() throws {
    guard limit.map({ $0 >= 1 }) ?? true else { throw ValidationError("--limit must be at least 1") }
  }

  func run() async throws {
    try await StoreSession.runQueue(queue, access: access.storeAccess, operation: .deadLetters) { queue in
      // One more tells whether any are left.
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
