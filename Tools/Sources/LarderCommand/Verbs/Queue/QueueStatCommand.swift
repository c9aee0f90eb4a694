import ArgumentParser
import Larder
import LarderQueue

/// `larder queue stat`.
struct QueueStatCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stat",
    abstract: "Print how many items are in each state, and how old the oldest is.",
    discussion: """
      Prints one object with waiting, delayed, leased, dead and oldestAge: how many seconds ago the oldest item came that \
      is not acknowledged, null where there is none; dead letters do not count there. `larder stat` tells more.

        larder queue stat queue:mail
      """)

  @OptionGroup var queue: QueueArgument
  @OptionGroup var access: AccessOption

  func run() async throws {
    try await StoreSession.runQueue(queue, access: access.storeAccess, operation: .statistics) { queue in
      (counts: try await queue.counts(), age: try await queue.oldestAge())
    } print: { state, output in
      try output.writeLine { QueueLine.append(state.counts, oldestAge: state.age, to: &$0) }
    }
  }
}
