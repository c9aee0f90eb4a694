import ArgumentParser
import Larder
import StoreAccess

/// `larder queue pause`.
struct QueuePauseCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pause",
    abstract: "Pause a queue, so that no program receives items of it.",
    discussion: """
      All programs that share the queue obey, also those that start later, until `larder queue resume`. Items are still \
      enqueued, and those that were received before are acknowledged, released and extended. Prints {"paused":true}, \
      also if the queue was paused before.

      A queue of the scheme queue: cannot be paused, because only one program at a time can have it open: end that program.

        larder queue pause lmdb:shop#queues --prefix jobs/
        larder queue pause postgres-queue:jobs
      """)

  @OptionGroup var queue: QueueArgument

  func run() async throws {
    try await QueuePausing.set(true, queue)
  }
}

/// `larder queue resume`.
struct QueueResumeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "resume",
    abstract: "Resume a queue that was paused.",
    discussion: """
      Programs that wait for items receive them. Prints {"paused":false}, also if the queue was not paused.

        larder queue resume lmdb:shop#queues --prefix jobs/
        larder queue resume postgres-queue:jobs
      """)

  @OptionGroup var queue: QueueArgument

  func run() async throws {
    try await QueuePausing.set(false, queue)
  }
}

/// Pausing and resuming a queue, and asking whether it is paused.
enum QueuePausing {
  /// Pauses or resumes a queue, and prints the result.
  ///
  /// - Throws: ``CommandFailure`` if the queue cannot be paused; the errors of ``StoreSession``.
  fileprivate static func set(_ isPaused: Bool, _ argument: QueueArgument) async throws {
    try await StoreSession.runQueue(argument.target) { queue in
      guard let queue = AnyDataStore(queue).pausableQueue else {
        throw CommandFailure(
          .usage, "\(argument.url) cannot be paused",
          advice: "Only one program at a time can have this queue open. End that program instead.")
      }
      if isPaused { try await queue.pause() } else { try await queue.resume() }
      return try await queue.isPaused()
    } print: { isPaused, output in
      try output.writeLine("{\"paused\":\(isPaused)}")
    }
  }

  /// Returns whether a queue is paused, or `false` if it cannot be paused.
  ///
  /// - Throws: The errors of the queue.
  static func isPaused(_ queue: some DurableQueue<JSONText>) async throws -> Bool {
    guard let queue = AnyDataStore(queue).pausableQueue else { return false }
    return try await queue.isPaused()
  }
}
