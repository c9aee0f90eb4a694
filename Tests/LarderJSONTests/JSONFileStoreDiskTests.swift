import Larder
import LarderFiles
import LarderJSON
import LarderTesting
import Testing

@Suite struct JSONFileStoreDiskTests {
  static func trial(_ durability: Durability) -> DiskTrial<JSONFileStore<Int>> {
    DiskTrial("JSONFileStore, \(durability)") { disk in
      try await JSONFileStore(path: "/store.json", codec: .json(), durability: durability, fileSystem: disk)
    }
  }

  @Test(arguments: Durability.allCases) func powerLossAtEveryOperation(_ durability: Durability) async throws {
    let count = try await Self.trial(durability).losePower(cuts: 4_000, seed: 1030201)
    #expect(count >= 4_000)
  }

  @Test(arguments: Durability.allCases) func failureOfEveryOperation(_ durability: Durability) async throws {
    let count = try await Self.trial(durability).fail(faults: 4_000, seed: 2030201, errorNumbers: [5, 28, 4, 24])
    #expect(count >= 4_000)
  }
}
