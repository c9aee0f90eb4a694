#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension SeededGenerator {
  /// The environment variable from which ``seedOfProcess`` comes.
  public static let seedVariable = "LARDER_SEED"

  /// The seed of this process: that of the environment variable `LARDER_SEED`, or a random one.
  public static let seedOfProcess: UInt64 =
    ProcessInfo.processInfo.environment[seedVariable].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)

  /// Makes a generator whose numbers have nothing to do with those of the same seed and another purpose.
  ///
  /// - Parameters:
  ///   - seed: Decides, with the purpose, on all the numbers to come.
  ///   - purpose: What the numbers are for.
  public init(seed: UInt64, purpose: String) {
    self.init(seed: seed ^ SeededGenerator.hash(of: purpose.utf8))
  }

  /// The FNV-1a hash of some bytes: Swift's own hash differs from process to process.
  static func hash(of bytes: some Sequence<UInt8>) -> UInt64 {
    bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
  }
}
