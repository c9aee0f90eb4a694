import ArgumentParser
import Foundation
import Larder
import StoreAccess

/// `larder queue move`.
struct QueueMoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "move",
    abstract: "Move the items of a queue to another queue.",
    discussion: """
      A missing destination is created. Items that are due are moved in the order of delivery, with their priorities and \
      groups, until none is due. Delayed and leased items and dead letters stay behind. Prints {"moved":...,\
      "duplicates":...,"left":{...}}, where duplicates is the number of items that the destination had already, and left \
      counts by state the items that stay behind.

      Each item is in the destination before it leaves the source, under its key as the id. So no item is lost if the \
      verb is killed. Run it again when the leases have ended. If the destination has an item with the same key and \
      another value, or had one in the last 5 minutes, the item stays in the source, and the verb ends with 65.

        larder queue move queue:mail queue:archive
        larder queue move queue:mail lmdb:shop#queues --to-prefix mail/
      """)

  @Argument(help: ArgumentHelp("The queue to move from, or the store that it is in.", valueName: "source"))
  var source: String
  @Argument(help: ArgumentHelp("The queue to move to, or the store that it is in.", valueName: "destination"))
  var destination: String
  @Option(help: ArgumentHelp("The prefix of the source's keys in its store.", valueName: "prefix"))
  var fromPrefix: String?
  @Option(help: ArgumentHelp("The prefix of the destination's keys in its store.", valueName: "prefix"))
  var toPrefix: String?
  @Option(help: ArgumentHelp("The recorded codec of the source's items in its store.", valueName: "name"))
  var fromCodec: QueueItemCodec?
  @Option(
    help: ArgumentHelp("The codec of the items of a new destination in its store. Defaults to json.", valueName: "name")
  )
  var toCodec: QueueItemCodec?
  @Option(
    name: .customLong("batch"), help: ArgumentHelp("The number of items to move in one step.", valueName: "n"))
  var batchSize = 100
  @Option(help: ArgumentHelp("The lease of the items of one step, such as 30s.", valueName: "time"))
  var lease = DurationArgument(.seconds(30))
  @OptionGroup var opening: OpeningOptions

  mutating func validate() throws {
    (source, destination) = (try ConfiguredStacks.url(source), try ConfiguredStacks.url(destination))
    guard batchSize >= 1 else { throw ValidationError("--batch must be at least 1") }
    try lease.checkAsLease()
    try QueueArgument.check(fromPrefix, of: "--from-prefix")
    try QueueArgument.check(toPrefix, of: "--to-prefix")
  }

  func run() async throws {
    try await checkThatQueuesDiffer()
    let from = opening.target(source)
    let to = opening.target(destination, sharingKeysOf: from)
    let sourceTarget = QueueTarget(store: from, prefix: fromPrefix, itemCodec: fromCodec)
    let destinationTarget = QueueTarget(store: to, prefix: toPrefix, itemCodec: toCodec)
    try await StoreSession.useQueue(sourceTarget) { source, output in
      var move = QueueMove(batchSize: batchSize, lease: lease.duration)
      do {
        try await StoreSession.useQueue(destinationTarget, createsIfMissing: true) { destination, _ in
          try await move.run(from: source.queue, to: destination)
        }
      } catch let error as StoreError where error.code == .locked && error.operation == .open {
        throw CommandFailure(error, hint: "Items cannot be moved between two queues in one exclusive store.")
      }
      let left = try await source.queue.queueStatistics().counts
      try output.writeLine(
        "{\"moved\":\(move.movedCount),\"duplicates\":\(move.duplicateCount),\"left\":{\(QueueLine.members(of: left))}}"
      )
    }
  }

  /// Refuses to move a queue to itself, or into its own keys.
  private func checkThatQueuesDiffer() async throws {
    let (from, to) = (StoreKey(fromPrefix ?? ""), StoreKey(toPrefix ?? ""))
    guard from.hasPrefix(to) || to.hasPrefix(from) else { return }
    if try StoreURL(source) != StoreURL(destination) {
      guard try await Stores.areSameSharedStore(source, destination) else { return }
    }
    throw CommandFailure(.usage, "\(source) cannot be moved to itself", advice: "Give another destination.")
  }
}

/// A move of all items that are due from one queue to another.
struct QueueMove {
  private let batchSize: Int
  private let lease: Duration

  /// The number of items moved so far.
  private(set) var movedCount = 0

  /// The number of items so far that the destination had already.
  private(set) var duplicateCount = 0

  /// Creates a move that has not begun.
  ///
  /// - Parameters:
  ///   - batchSize: The number of items to move in one step, at least 1.
  ///   - lease: The lease of the items of one step.
  init(batchSize: Int, lease: Duration) {
    self.batchSize = batchSize
    self.lease = lease
  }

  /// Moves items until none is due.
  ///
  /// An item is acknowledged in the source after the destination has it.
  ///
  /// - Parameters:
  ///   - source: The queue to move from.
  ///   - destination: The queue to move to.
  /// - Throws: ``CommandFailure`` if the destination keeps nothing, or has another item with the same key or had one
  ///   shortly before; the errors of the queues. The steps before an error are complete.
  mutating func run(from source: any DurableQueue<JSONText>, to destination: OpenedQueue) async throws {
    guard destination.queue.information.durability != .volatile else {
      throw CommandFailure(
        .usage, "\(destination.queue.information.name) keeps nothing, so moved items would be lost",
        advice: "Give another destination.")
    }
    while true {
      let deliveries = try await source.receive(max: batchSize, lease: lease)
      if deliveries.isEmpty { return }
      let results: [EnqueuedItem]
      let conflicts: Set<StoreKey>
      do {
        results = try await destination.queue.enqueue(
          deliveries.map { delivery in
            QueueInput(
              delivery.value, id: Self.id(of: delivery), priority: delivery.priority, group: delivery.group)
          })
        conflicts = try await Self.conflicts(among: deliveries, results, in: destination)
      } catch {
        try await Self.release(deliveries, in: source, after: error)
        throw error
      }
      let isTaken = results.map { !conflicts.contains($0.key) }
      _ = try await source.acknowledge(zip(deliveries, isTaken).filter(\.1).map(\.0.receipt))
      movedCount += results.count { !$0.isDuplicate }
      duplicateCount += results.count { $0.isDuplicate && !conflicts.contains($0.key) }
      guard let conflict = conflicts.min() else { continue }
      let failure = CommandFailure(
        .badData,
        "\(destination.queue.information.name) has another item with the key \(conflict), or had one in the last 5 minutes",
        advice: "That item stays in the source. Remove one of the two, or run the verb again in 5 minutes.")
      try await Self.release(zip(deliveries, isTaken).filter { !$0.1 }.map(\.0), in: source, after: failure)
      throw failure
    }
  }

  /// Returns the id of an item in the destination.
  ///
  /// It is the key of the item. The scheme `queue:` generates keys by counting, so other queues have the same ones.
  /// Such a key is followed by the time when the item was enqueued, in microseconds.
  static func id(of delivery: QueueDelivery<JSONText>) -> StoreKey {
    let digits = String(delivery.receipt.sequence, radix: 16)
    guard delivery.key == StoreKey(String(repeating: "0", count: max(0, 16 - digits.count)) + digits) else {
      return delivery.key
    }
    let time = Int64((delivery.enqueueDate.timeIntervalSince1970 * 1_000_000).rounded())
    return StoreKey(bytes: delivery.key.bytes + Array("-\(String(time, radix: 16))".utf8))
  }

  /// Returns the keys of items that were not enqueued, and that the destination does not have with the same value.
  private static func conflicts(
    among deliveries: [QueueDelivery<JSONText>], _ results: [EnqueuedItem], in destination: OpenedQueue
  ) async throws -> Set<StoreKey> {
    let duplicates = zip(deliveries, results).filter(\.1.isDuplicate)
    guard !duplicates.isEmpty else { return [] }
    let present = try await destination.queue.values(forKeys: duplicates.map(\.1.key))
    var conflicts: Set<StoreKey> = []
    for ((delivery, result), value) in zip(duplicates, present) {
      // An item that is gone may have been moved before and processed, but it may also have been moved away from there.
      let moved = try stored(delivery.value, forKey: result.key, with: destination.codec)
      if value != moved { conflicts.insert(result.key) }
    }
    return conflicts
  }

  /// Returns a value as a codec stores it.
  private static func stored(
    _ value: JSONText, forKey key: StoreKey, with codec: some Codec<JSONText>
  ) throws -> JSONText {
    var bytes: [UInt8] = []
    try codec.encode(value, into: &bytes, context: ValueContext(key: key))
    return try codec.decode(bytes.span.bytes, context: ValueContext(key: key))
  }

  /// Releases items that were not moved, so they need not wait for the end of the lease.
  private static func release(
    _ deliveries: [QueueDelivery<JSONText>], in source: any DurableQueue<JSONText>, after failure: any Error
  ) async throws {
    do {
      _ = try await source.release(deliveries.map(\.receipt), after: .zero, countsAsAttempt: false)
    } catch {
      // The first failure is the one to report.
      Diagnostics.writeLine("larder: the items stay leased until their leases end: \(error)")
      throw failure
    }
  }
}
