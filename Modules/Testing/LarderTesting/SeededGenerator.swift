import Foundation

/// A random number generator that returns the same numbers for the same seed on every machine.
///
/// The algorithm is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
///
/// ```swift
/// var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess)
/// let keys = (0..<100).map { _ in StoreKey(integer: Int.random(in: 0..<10, using: &generator)) }
/// ```
public struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// Creates a generator.
  ///
  /// - Parameter seed: The seed that determines all the numbers.
  public init(seed: UInt64) {
    state = seed
  }

  /// Returns the next random number.
  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

extension SeededGenerator {
  /// The name of the environment variable that sets ``seedOfProcess``.
  public static let seedVariable = "LARDER_SEED"

  /// The seed of this process, from the environment variable `LARDER_SEED`.
  ///
  /// Defaults to a random seed.
  public static let seedOfProcess: UInt64 =
    ProcessInfo.processInfo.environment[seedVariable].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)

  /// Creates a generator for one purpose.
  ///
  /// Generators with the same seed and different purposes return independent numbers.
  ///
  /// - Parameters:
  ///   - seed: The seed that, together with the purpose, determines all the numbers.
  ///   - purpose: A text that names the use of the numbers.
  public init(seed: UInt64, purpose: String) {
    self.init(seed: seed ^ SeededGenerator.hash(of: purpose.utf8))
  }

  /// Returns the FNV-1a hash of bytes, because Swift's own hashes differ between processes.
  static func hash(of bytes: some Sequence<UInt8>) -> UInt64 {
    bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
  }
}
