import Larder
import LarderFiles
import LarderCBOR
import LarderQueue
import LarderTesting

/// The environment of a queue's tests: a simulated disk and a manual clock.
struct QueueBench: Sendable {
  let disk: SimulatedFileSystem
  let clock = ManualClock()

  init(seed: UInt64 = SeededGenerator.seedOfProcess) {
    disk = SimulatedFileSystem(seed: seed)
  }

  /// Opens the queue of integers on the disk.
  func open(
    _ configuration: QueueConfiguration = QueueConfiguration(), durability: Durability.File = .synced,
    leases: LeasesOnOpening = .kept, codec: some Codec<Int> = .cbor()
  ) async throws -> QueueStore<Int> {
    let clock = clock
    return try await QueueStore(
      path: "/queue", codec: codec, configuration: configuration, durability: durability, leases: leases,
      fileSystem: disk, environment: .manual(clock))
  }

  /// The names of the queue's files.
  var names: [String] {
    get throws { try disk.contentsOfDirectory(at: "/queue").sorted() }
  }
}
