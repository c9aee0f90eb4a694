import ArgumentParser
import Foundation
import Larder
import StoreAccess

/// `larder queue`.
struct QueueCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "queue",
    abstract: "Enqueue items in a queue, and process them.",
    discussion: """
      A queue is a store of its own, such as queue:mail, or a part of a store of bytes, such as lmdb:shop#queues. The \
      keys of such a part begin with a prefix, which --prefix names.

      Receipts that `receive` prints are valid in any process until the lease ends. While another program has the queue \
      open, each verb waits, for 5 seconds by default or for the time of --wait.

        larder queue enqueue queue:mail '{"to":"ada"}'
        larder queue receive queue:mail --max 10 --lease 1m
        larder queue acknowledge queue:mail 1-1-8c6f02d1e5a94b37
        larder queue receive lmdb:shop#queues --prefix jobs/
      """,
    subcommands: [
      QueueEnqueueCommand.self, QueueReceiveCommand.self, QueueAcknowledgeCommand.self, QueueReleaseCommand.self,
      QueueExtendCommand.self, QueueDeadCommand.self, QueueMoveCommand.self, QueueStatCommand.self,
      QueueWatchCommand.self, QueueLeasedCommand.self, QueuePauseCommand.self, QueueResumeCommand.self,
    ])
}

/// `larder queue stat`.
struct QueueStatCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stat",
    abstract: "Print the number of items in each state, and the age of the oldest item.",
    discussion: """
      Prints one object with waiting, delayed, leased, dead and oldestAge. That is the age in seconds of the oldest item \
      that is not acknowledged and not a dead letter, or null if there is none. If the queue is paused, there is a further \
      member, "paused":true. `larder stat` prints more figures.

        larder queue stat queue:mail
      """)

  @OptionGroup var queue: QueueArgument
  @OptionGroup var access: AccessOption

  func run() async throws {
    try await StoreSession.runQueue(queue.target, access: access.storeAccess) { queue in
      (statistics: try await queue.queueStatistics(), isPaused: try await QueuePausing.isPaused(queue))
    } print: { look, output in
      try output.writeLine("{\(QueueLine.members(of: look.statistics))\(look.isPaused ? ",\"paused\":true" : "")}")
    }
  }
}

/// The queue that a verb works on.
struct QueueArgument: ParsableArguments {
  @Argument(help: "The queue, such as queue:outbox, or the store that it is in, such as lmdb:shop#queues.")
  var url: String
  @Option(help: "The prefix of the queue's keys in the store; omit it for the scheme queue:.") var prefix: String?
  @Option(help: ArgumentHelp("The codec of the items of a new queue in a store. Defaults to json.", valueName: "name"))
  var codec: QueueItemCodec?
  @OptionGroup var opening: OpeningOptions

  mutating func validate() throws {
    url = try ConfiguredStacks.url(url)
    try QueueArgument.check(prefix, of: "--prefix")
  }

  /// Checks that a prefix is not empty.
  ///
  /// - Throws: `ValidationError`.
  static func check(_ prefix: String?, of option: String) throws {
    guard prefix != "" else { throw ValidationError("\(option) is empty; give the prefix of the queue's keys") }
  }

  /// The queue, with the options for opening it.
  var target: QueueTarget { QueueTarget(store: opening.target(url), prefix: prefix, itemCodec: codec) }
}

extension QueueItemCodec: ExpressibleByArgument {}

/// The lines of JSON that the tool prints for a queue.
enum QueueLine {
  /// Appends the line of an item that was enqueued, without its end.
  static func append(_ item: EnqueuedItem, to bytes: inout [UInt8]) {
    EntryLine.append(key: item.key, [("isDuplicate", "\(item.isDuplicate)")], to: &bytes)
  }

  /// Appends the line of a delivery, without its end.
  static func append(_ delivery: QueueDelivery<JSONText>, to bytes: inout [UInt8]) {
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

  /// Appends the line of a leased item, without its end.
  static func append(_ item: HeldItem, to bytes: inout [UInt8]) {
    var members: [(name: String, json: String)] = [
      ("attempt", "\(item.attempt)"), ("deadline", "\"\(item.deadline.formatted(.iso8601))\""),
      ("sequence", "\(item.sequence)"),
    ]
    if let group = item.group {
      let name = group.string ?? "0x" + group.hexadecimal
      members.append(("group", "\(JSONText(string: name))"))
    }
    EntryLine.append(key: item.key, members, to: &bytes)
  }

  /// Returns the members of an object for the numbers of items by state.
  static func members(of counts: QueueCounts) -> String {
    """
    "waiting":\(counts.waiting),"delayed":\(counts.delayed),"leased":\(counts.leased),"dead":\(counts.dead)
    """
  }

  /// Returns the members of an object for the statistics of a queue.
  static func members(of statistics: QueueStatistics) -> String {
    let age = statistics.oldestAge.map { String(format: "%.3f", $0 / .seconds(1)) } ?? "null"
    return "\(members(of: statistics.counts)),\"oldestAge\":\(age)"
  }
}
