#if Compression
import Foundation
import Larder
import LarderJSON
import LarderTesting
import Testing

@testable import LarderCompression

/// Power loss and failures in random histories of a store with compressed values.
@Suite struct CompressedStoreDiskTests {
  private static func trial() throws -> DiskTrial<JSONFileStore<Int>> {
    let dictionary = try CompressionDictionary(Array("0123456789".utf8))
    return DiskTrial("JSONFileStore with compression") { disk in
      try await JSONFileStore(
        path: "/store.json", codec: .json().compressed(dictionary: dictionary, threshold: 0), fileSystem: disk)
    }
  }

  private static func seed(for purpose: String) -> UInt64 {
    print("\(SeededGenerator.seedVariable)=\(SeededGenerator.seedOfProcess) (\(purpose), compressed values)")
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "\(purpose), compressed values")
    return generator.next()
  }

  @Test func `power loss`() async throws {
    #expect(try await Self.trial().losePower(cuts: 300, seed: Self.seed(for: "power cuts")) >= 300)
  }

  @Test func failures() async throws {
    let count = try await Self.trial().fail(
      faults: 300, seed: Self.seed(for: "failures"), errorNumbers: [EIO, ENOSPC, EINTR, EMFILE])
    #expect(count >= 300)
  }
}
#endif
