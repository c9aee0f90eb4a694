import ArgumentParser
import Foundation
import Larder
import LarderQueue

/// A process that enqueues and processes items in many concurrent tasks until it is killed.
@main
struct QueueWorker: AsyncParsableCommand {
  @Argument(help: "The folder of the queue.") var path: String
  @Option(help: "The prefix of the names of the items.") var prefix: String
  @Option(help: "The seed of the random decisions.") var seed: UInt64
  @Option(help: "The number of tasks that enqueue.") var producers = 6
  @Option(help: "The number of tasks that receive and acknowledge.") var consumers = 6
  @Flag(help: "Use buffered durability.") var buffered = false
  @Flag(help: "Void the leases of a killed process.") var voids = false

  /// The configuration of the queue.
  ///
  /// Segments are small, so many are created and removed. There are no dead letters. The duplicate window is short,
  /// because otherwise each opening in a long run would read hundreds of thousands of keys.
  static let configuration = QueueConfiguration(
    policy: QueuePolicy(maximumDeliveries: nil, duplicateWindow: .seconds(30)),
    capacity: QueueCapacity(items: 500, policy: .wait),
    segmentSize: 16 << 10)

  func run() async throws {
    let queue = try await QueueStore<String>(
      path: path, configuration: QueueWorker.configuration, durability: buffered ? .buffered : .synced,
      leases: voids ? .void : .kept)
    try await QueueWork(queue: queue, prefix: prefix, seed: seed, producers: producers, consumers: consumers).run()
  }
}
