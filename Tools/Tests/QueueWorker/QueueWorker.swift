import ArgumentParser
import Foundation
import Larder
import LarderQueue

/// Puts items into a queue and works them off from many tasks at once, until it is killed.
@main
struct QueueWorker: AsyncParsableCommand {
  @Argument(help: "The folder of the queue.") var path: String
  @Option(help: "What the names of its items begin with.") var prefix: String
  @Option(help: "What the random decisions come from.") var seed: UInt64
  @Option(help: "How many tasks enqueue.") var producers = 6
  @Option(help: "How many tasks work off.") var consumers = 6
  @Flag(help: "Make nothing durable against power loss.") var buffered = false
  @Flag(help: "End the leases that a killed process had.") var voids = false

  /// The rules of the queue: small segments, so that many come and go; no dead letters; and a short memory, or each opening
  /// in a long run would read hundreds of thousands of keys.
  static let configuration = QueueConfiguration(
    maximumDeliveries: nil, duplicateWindow: .seconds(30), capacity: QueueCapacity(items: 500, policy: .wait),
    segmentSize: 16 << 10)

  func run() async throws {
    let queue = try await QueueStore<String>(
      path: path, configuration: QueueWorker.configuration, durability: buffered ? .buffered : .synced,
      leases: voids ? .void : .kept)
    try await QueueWork(queue: queue, prefix: prefix, seed: seed, producers: producers, consumers: consumers).run()
  }
}
