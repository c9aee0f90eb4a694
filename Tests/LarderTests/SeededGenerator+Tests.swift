import Foundation
import LarderTesting

extension SeededGenerator {
  /// The seed of this test run, printed once.
  ///
  /// Set `LARDER_SEED` to repeat an earlier run.
  static let runSeed: UInt64 = {
    let given = ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 0...UInt64.max)
    print("LARDER_SEED=\(seed)")
    return seed
  }()

  /// Creates a separate generator for a test, so its numbers do not depend on other tests.
  ///
  /// - Parameter test: The name of the test. Defaults to the calling function.
  init(_ test: String = #function) {
    self.init(seed: test.utf8.reduce(SeededGenerator.runSeed) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 })
  }

  /// Returns a number in a range.
  mutating func integer(in range: ClosedRange<Int>) -> Int {
    Int.random(in: range, using: &self)
  }

  /// Returns bytes with only a few distinct values, so prefixes repeat and extreme values are frequent.
  mutating func similarBytes(count: Int) -> [UInt8] {
    let alphabet: [UInt8] = [0x00, 0x00, 0x01, 0x61, 0x7F, 0x80, 0xFE, 0xFF]
    return (0..<count).map { _ in alphabet[integer(in: 0...alphabet.count - 1)] }
  }

  /// Returns random bytes.
  mutating func bytes(count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
  }

  /// Returns one of the given elements.
  mutating func element<Element>(of elements: [Element]) -> Element {
    elements[integer(in: 0...elements.count - 1)]
  }
}
