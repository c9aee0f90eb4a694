import Foundation

/// Random numbers that can be had again: SplitMix64, from a seed that is printed once for each run of the tests.
///
/// The environment variable `LARDER_SEED` gives the seed of an earlier run.
struct SeededGenerator: RandomNumberGenerator {
  /// The seed of this run.
  static let seed: UInt64 = {
    let given = ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 0...UInt64.max)
    print("LARDER_SEED=\(seed)")
    return seed
  }()

  private var state: UInt64

  /// Starts a sequence of its own for a test, so that it does not hang on which other tests run.
  ///
  /// - Parameter test: The name of the test.
  init(_ test: String = #function) {
    state = test.utf8.reduce(SeededGenerator.seed) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// A number of a range.
  mutating func integer(in range: ClosedRange<Int>) -> Int {
    Int.random(in: range, using: &self)
  }

  /// Bytes of a few values only, so that many begin alike and the extremes come often.
  mutating func similarBytes(count: Int) -> [UInt8] {
    let alphabet: [UInt8] = [0x00, 0x00, 0x01, 0x61, 0x7F, 0x80, 0xFE, 0xFF]
    return (0..<count).map { _ in alphabet[integer(in: 0...alphabet.count - 1)] }
  }

  /// Any bytes.
  mutating func bytes(count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
  }

  /// One of the given elements.
  mutating func element<Element>(of elements: [Element]) -> Element {
    elements[integer(in: 0...elements.count - 1)]
  }
}
