#if Crypto && LMDB
import Foundation
import Larder
import LarderCBOR
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

@testable import LarderCrypto

/// Two processes that rotate one ring at the same time, one of which is killed.
///
/// `LARDER_KILL_ROUNDS` sets the number of killed processes.
@Suite struct KeyRingKillTests {
  private static func open(_ folder: String) async throws -> (ring: KeyRing, store: LMDBStore<Int>) {
    let ring = try await KeyRing.open(in: .file(folder + "/keys.json"), createsIfMissing: true)
    let codec = CBORCodec<Int>().encrypted(with: ring, purpose: "numbers")
    return (ring, try await LMDBStore<Int>(path: folder + "/numbers", codec: codec, durability: .buffered))
  }

  /// Writes a value with each new key, without end if no number of rotations is given.
  fileprivate static func work(_ folder: String, name: String, rotations: Int = .max) async throws {
    let (ring, store) = try await open(folder)
    for number in 0..<rotations {
      try await ring.rotate()
      try await store.setValue(number, forKey: StoreKey("\(name)/\(number % 10)"))
    }
    try await store.close()
  }

  /// Ends this process by `SIGKILL` after a number of microseconds.
  fileprivate static func die(after microseconds: UInt32) {
    Thread.detachNewThread {
      usleep(microseconds)
      kill(getpid(), SIGKILL)
    }
  }

  @Test func `every value is readable with the ring at rest`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "killed rotations")
    var scratch = try TemporaryFolder()
    for round in 0..<ConformanceSuite.killsOfProcess {
      // Every process adds many keys, so a ring is not used for all rounds.
      if round.isMultiple(of: 10) {
        scratch = try TemporaryFolder()
        try await KeyRingKillTests.work(scratch.path, name: "first", rotations: 1)
      }
      let folder = scratch.path
      let delay = UInt32.random(in: 1_000..<60_000, using: &generator)
      async let other: Void = KeyRingKillTests.work(folder, name: "parent", rotations: 3)
      await #expect(processExitsWith: .signal(SIGKILL)) { [folder = folder as String, delay = delay as UInt32] in
        KeyRingKillTests.die(after: delay)
        try await KeyRingKillTests.work(folder, name: "child")
      }
      try await other
      let comment: Comment = "seed \(seed), round \(round), killed after \(delay) µs"
      let (ring, store) = try await KeyRingKillTests.open(folder)
      #expect(ring.keys.count > 3 * (round % 10 + 1), comment)
      let entries = try await store.entries(in: .all, limit: .max, order: .ascending)
      #expect(!entries.isEmpty, comment)
      try await store.close()
      // A killed process can leave a temporary file, which the next change of the ring removes.
      try await ring.addKey()
      #expect(try scratch.names.filter { $0.hasPrefix("keys") } == ["keys.json", "keys.json.lock"], comment)
    }
  }
}
#endif
