import ArgumentParser
import Larder
import LarderQueue

/// `larder queue purge`.
struct QueuePurgeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "purge",
    abstract: "Remove dead letters for good: all of them, or those of some keys.",
    discussion: """
      A key that no dead letter has is left out. Prints {"purged":…}, how many there were.

        larder queue purge queue:mail
        larder queue purge queue:mail welcome:7
      """)

  @OptionGroup var queue: QueueArgument
  @Argument(help: ArgumentHelp("The keys of the dead letters; every one unless given.", valueName: "key"))
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
