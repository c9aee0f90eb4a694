import Foundation
import LarderTesting

extension SeededGenerator {
  /// The seed of this run of the tests, printed once; the environment variable `LARDER_SEED` gives that of an earlier run.
  static let runSeed: UInt64 = {
    let given = ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 0...UInt64.max)
    print("LARDER_SEED=\(seed)")
    return seed
  }()

  /// Starts a sequence of its own for a test, so that it does not hang on which other tests run.
  ///
  /// - Parameter test: The name of the test.
  init(_ test: String = #function) {
    self.init(seed: test.utf8.reduce(SeededGenerator.runSeed) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 })
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
