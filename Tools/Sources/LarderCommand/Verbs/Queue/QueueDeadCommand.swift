import ArgumentParser
import Larder
import LarderQueue

/// `larder queue dead`.
struct QueueDeadCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dead",
    abstract: "Print the dead letters: what was delivered too often, or cannot be decoded.",
    discussion: """
      Prints a line {"key":…,"value":…,"attempts":…,"reason":"…","date":"…"} for each, in the order of arrival. In place of \
      a value that cannot be decoded stands null, and a member "message" says why.

        larder queue dead queue:mail
      """)

  @OptionGroup var queue: QueueArgument
  @OptionGroup var access: AccessOption

  func run() async throws {
    try await StoreSession.runQueue(queue, access: access.storeAccess, operation: .deadLetters) { queue in
      try await queue.deadLetters()
    } print: { letters, output in
      for letter in letters {
        try output.writeLine { QueueLine.append(letter, to: &$0) }
      }
    }
  }
}
