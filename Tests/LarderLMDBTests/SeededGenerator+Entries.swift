#if LMDB
import Larder
import LarderTesting

extension SeededGenerator {
  /// Creates the generator of a test, and prints how to repeat its run.
  init(test: String) {
    print("\(test): \(SeededGenerator.seedVariable)=\(SeededGenerator.seedOfProcess)")
    self.init(seed: SeededGenerator.seedOfProcess, purpose: test)
  }

  /// Returns random bytes.
  mutating func bytes(count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
  }

  /// Returns a key of random length, mostly a short one.
  ///
  /// Many keys share prefixes.
  mutating func key() -> StoreKey {
    let alphabet: [UInt8] = [0x00, 0x01, 0x2F, 0x61, 0x62, 0x7F, 0x80, 0xC3, 0xFF]
    let count =
      Int.random(in: 0..<20, using: &self) == 0
      ? Int.random(in: 1...511, using: &self) : Int.random(in: 1...6, using: &self)
    return StoreKey(bytes: (0..<count).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &self)] })
  }

  /// Returns a value of random length.
  ///
  /// Some values are empty, and some take overflow pages.
  mutating func value() -> [UInt8] {
    let counts = [0...0, 1...40, 1...40, 1...40, 100...2200, 3000...20000]
    return bytes(count: Int.random(in: counts[Int.random(in: 0..<counts.count, using: &self)], using: &self))
  }

  /// Returns a batch of random entries.
  mutating func batch(count: Int) -> ChangeBatch<[UInt8]> {
    ChangeBatch((0..<count).map { _ in .set(key(), value()) })
  }

  /// Returns a bound of a range: a key, an empty key, or more bytes than a key can have.
  mutating func bound() -> StoreKey {
    switch Int.random(in: 0..<8, using: &self) {
    case 0: StoreKey(bytes: [])
    case 1: StoreKey(bytes: key().withUnsafeBytes { Array($0) } + [UInt8](repeating: 0x61, count: 520))
    default: key()
    }
  }

  /// Returns a range of any kind, which may be empty.
  mutating func range() -> KeyRange {
    switch Int.random(in: 0..<6, using: &self) {
    case 0: KeyRange(from: bound(), upTo: nil)
    case 1: .prefix(key())
    default: bound()..<bound()
    }
  }
}
#endif
