import ArgumentParser
import Larder
import LarderQueue

/// `larder queue requeue`.
struct QueueRequeueCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "requeue",
    abstract: "Put dead letters at the end of the queue, all of them at once.",
    discussion: """
      They are as if they came now and had never been delivered. A key that no dead letter has is left out. Prints \
      {"requeued":…}, how many there were.

        larder queue requeue queue:mail welcome:7
      """)

  @OptionGroup var queue: QueueArgument
  @Argument(help: ArgumentHelp("The keys of the dead letters.", valueName: "key")) var texts: [String]
  @OptionGroup var keys: KeyOptions

  func run() async throws {
    let keys = try texts.map { try self.keys.key($0) }
    try await StoreSession.runQueue(queue, operation: .requeue) { queue in
      do {
        return try await queue.requeue(keys)
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
