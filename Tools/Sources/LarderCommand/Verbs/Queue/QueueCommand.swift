import ArgumentParser
import Foundation
import Larder
import LarderQueue

/// `larder queue`.
struct QueueCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "queue",
    abstract: "Enqueue items in a queue, and process them.",
    discussion: """
      Receipts that `receive` prints are valid in any process until the lease ends. While another program has the queue \
      open, each verb waits, for 5 seconds by default or for the time of --wait.

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

/// `larder queue stat`.
struct QueueStatCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stat",
    abstract: "Print the number of items in each state, and the age of the oldest item.",
    discussion: """
      Prints one object with waiting, delayed, leased, dead and oldestAge. That is the age in seconds of the oldest item \
      that is not acknowledged and not a dead letter, or null if there is none. `larder stat` prints more figures.

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

/// The queue that a verb works on.
struct QueueArgument: ParsableArguments {
  @Argument(help: "The queue, such as queue:outbox: the scheme, a colon and the path of its folder.")
  var url: String
  @OptionGroup var opening: OpeningOptions

  /// The queue, with the options for opening it.
  var target: StoreTarget { opening.target(url) }
}

/// The lines of JSON that the tool prints for a queue.
enum QueueLine {
  /// Appends the line of an item that was enqueued, without its end.
  static func append(_ item: EnqueuedItem, to bytes: inout [UInt8]) {
    EntryLine.append(key: item.key, [("isDuplicate", "\(item.isDuplicate)")], to: &bytes)
  }

  /// Appends the line of a delivery, without its end.
  static func append(_ delivery: Delivery<JSONText>, to bytes: inout [UInt8]) {
    EntryLine.append(
      key: delivery.key, value: delivery.value,
      [("attempt", "\(delivery.attempt)"), ("receipt", "\"\(delivery.receipt)\"")], to: &bytes)
  }

  /// Appends the line of a dead letter, without its end.
  static func append(_ letter: DeadLetter<JSONText>, to bytes: inout [UInt8]) {
    var members: [(name: String, json: String)] = [
      ("attempts", "\(letter.attempts)"), ("reason", "\"\(letter.reason)\""),
      ("date", "\"\(letter.date.formatted(.iso8601))\""), ("sequence", "\(letter.sequence)"),
    ]
    switch letter.value {
    case .success(let value):
      EntryLine.append(key: letter.key, value: value, members, to: &bytes)
    case .failure(let error):
      members.insert(("value", "null"), at: 0)
      members.append(("message", "\(JSONText(string: error.fullMessage))"))
      EntryLine.append(key: letter.key, members, to: &bytes)
    }
  }

  /// Appends the line of the numbers of items by state, without its end.
  static func append(_ counts: QueueCounts, oldestAge: Duration?, to bytes: inout [UInt8]) {
    let age = oldestAge.map { String(format: "%.3f", $0 / .seconds(1)) } ?? "null"
    let line = """
      {"waiting":\(counts.waiting),"delayed":\(counts.delayed),"leased":\(counts.leased),"dead":\(counts.dead),\
      "oldestAge":\(age)}
      """
    bytes.append(contentsOf: line.utf8)
  }
}
