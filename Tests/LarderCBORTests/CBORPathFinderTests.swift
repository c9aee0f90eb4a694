import LarderTesting
import Testing

@testable import LarderCBOR

@Suite struct CBORPathFinderTests {
  private func path(_ finder: inout CBORPathFinder, to offset: Int, in bytes: [UInt8]) -> String {
    bytes.withUnsafeBytes { bytes in
      finder.path(to: offset, in: bytes).map { $0.intValue.map { "\($0)" } ?? $0.stringValue }.joined(separator: "/")
    }
  }

  @Test func `finds every byte`() {
    // {"a": [1, "xy"], 2: {[3]: 4}, "b": 5(_ [6, 7])}, in which the last array has an indefinite length
    let bytes = Coding.bytes("a3" + "61618201627879" + "02a1810304" + "6162c59f0607ff")
    let paths = [
      "", "", "", "a", "a/0", "a/1", "a/1", "a/1", "", "2", "2", "2/0", "2/…", "", "", "b", "b", "b/0", "b/1", "b/2",
      "",
    ]
    var finder = CBORPathFinder()
    var found: [String] = []
    for offset in 0...bytes.count { found.append(path(&finder, to: offset, in: bytes)) }
    #expect(found == paths)
  }

  /// A path finder gives the same result whatever its previous position.
  @Test func `continues from its previous position`() {
    var random = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "paths of CBOR")
    for round in 0..<300 {
      var bytes = RandomItem.bytes(using: &random)
      // Includes malformed bytes.
      if round.isMultiple(of: 3), let index = bytes.indices.randomElement(using: &random) {
        bytes[index] = UInt8.random(in: 0...255, using: &random)
      }
      var finder = CBORPathFinder()
      var offset = 0
      for _ in 0..<30 {
        offset =
          Bool.random(using: &random)
          ? Int.random(in: 0...bytes.count, using: &random)
          : max(0, min(bytes.count, offset + Int.random(in: -3...5, using: &random)))
        var other = CBORPathFinder()
        let (known, new) = (path(&finder, to: offset, in: bytes), path(&other, to: offset, in: bytes))
        guard known == new else {
          Issue.record("\(Coding.hex(bytes)) at \(offset): \(known), not \(new)")
          return
        }
      }
    }
  }

  /// Nested arrays, each of which claims as many elements as there are bytes.
  @Test func `reserved memory is a few times the input`() {
    let bytes = [UInt8](repeating: 0, count: 10_000)
    let sum = bytes.withUnsafeBytes { bytes in
      var reader = CBORReader(bytes)
      return (0..<CBORWriter.maximumDepth).reduce(0) { sum, _ in
        sum + reader.capacity(bytes.count, ofStride: 24) * 24
      }
    }
    #expect(sum > 70_000)
    #expect(sum <= 80_000)
  }
}
