package import Foundation

/// A seeded generator of random numbers: SplitMix64, by Guy Steele and others.
package struct SplitMix64: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(seed: UInt64) {
    state = seed
  }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// Returns a random identifier, version 4.
  package mutating func nextUUID() -> UUID {
    var halves = (next(), next())
    return withUnsafeMutableBytes(of: &halves) { bytes in
      bytes[6] = bytes[6] & 0x0F | 0x40
      bytes[8] = bytes[8] & 0x3F | 0x80
      return UUID(uuid: bytes.load(as: uuid_t.self))
    }
  }
}
