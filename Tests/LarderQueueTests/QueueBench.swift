import Larder
import LarderFiles
import LarderCBOR
import LarderQueue
import LarderTesting

/// What the tests of a queue stand on: a simulated disk and a clock that is moved by hand.
struct QueueBench: Sendable {
  let disk: SimulatedFileSystem
  let clock = ManualClock()

  init(seed: UInt64 = SeededGenerator.seedOfProcess) {
    disk = SimulatedFileSystem(seed: seed)
  }

  /// Opens the queue of integers that is on the disk.
  func open(
    _ configuration: QueueConfiguration = QueueConfiguration(), durability: Durability = .synced,
    leases: LeasesOnOpening = .kept, codec: some Codec<Int> = .cbor()
  ) async throws -> QueueStore<Int> {
    let clock = clock
    return try await QueueStore(
      path: "/queue", codec: codec, configuration: configuration, durability: durability, leases: leases,
      fileSystem: disk, clock: clock, now: { clock.date })
  }

  /// The names of the files of the queue.
  var names: [String] {
    get throws { try disk.contentsOfDirectory(at: "/queue").sorted() }
  }
}
