import ArgumentParser

/// `larder queue`.
struct QueueCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "queue",
    abstract: "Put items into a queue, and work them off.",
    discussion: """
      A receipt that `receive` has printed is good in any process, until the lease ends. Every verb waits where another \
      program has the queue open, for 5 seconds unless --wait says how long.

        larder queue enqueue queue:mail '{"to":"ada"}'
        larder queue receive queue:mail --max 10 --lease 1m
        larder queue acknowledge queue:mail 1-1-8c6f02d1e5a94b37
      """,
    subcommands: [
      QueueEnqueueCommand.self, QueueReceiveCommand.self, QueueAcknowledgeCommand.self, QueueReleaseCommand.self,
      QueueExtendCommand.self, QueueDeadCommand.self, QueueRequeueCommand.self, QueuePurgeCommand.self,
      QueueStatCommand.self,
    ])
}
