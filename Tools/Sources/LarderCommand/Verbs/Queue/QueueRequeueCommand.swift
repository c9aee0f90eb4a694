import ArgumentParser
import Larder
import LarderQueue

/// `larder queue requeue`.
struct QueueRequeueCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "requeue",
    abstract: "Put dead letters at the end of the queue: those of some keys, or all.",
    discussion: """
      They are as if they came now and had never been delivered. A key that no dead letter has is left out. Those of some \
      keys come back all at once or not at all; with --all, one whose key a living item has stays. Prints {"requeued":…}, \
      how many came back.

        larder queue requeue queue:mail welcome:7
        larder queue requeue queue:mail --all
      """)

  @OptionGroup var queue: QueueArgument
  @Argument(help: ArgumentHelp("The keys of the dead letters.", valueName: "key")) var texts: [String] = []
  @Flag(help: "Every dead letter.") var all = false
  @OptionGroup var keys: KeyOptions

  func validate() throws {
    guard texts.isEmpty == all else { throw ValidationError("either keys or --all must be given") }
  }

  func run() async throws {
    let keys = try texts.map { try self.keys.key($0) }
    try await StoreSession.runQueue(queue, operation: .requeue) { queue in
      do {
        return try await all ? queue.requeueDeadLetters() : queue.requeue(keys)
      } catch let error as StoreError where error.code == .conflict {
        throw CommandFailure(
          .badData, "\(error.fullMessage)\(error.key.map { " (key \($0))" } ?? "")",
          advice: "Nothing was changed; remove that item, or purge the dead letter.")
      }
    } print: { count, output in
      try output.writeLine("{\"requeued\":\(count)}")
    }
  }
}
