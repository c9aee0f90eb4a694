import Foundation
import Testing

/// What earlier versions of the codec wrote is still read.
///
/// Each line of a file of `Fixtures` has the bytes of a value and the name of the sample; behind a `!` are bytes that
/// their own version could not read either, so that they must never become another value.
@Suite struct EarlierBytesTests {
  private static let fixtures = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixtures")

  @Test(arguments: ["version-1.txt"]) func areRead(_ file: String) throws {
    let text = try String(contentsOf: EarlierBytesTests.fixtures.appending(path: file), encoding: .utf8)
    var samples: [String: CodingSample] = [:]
    for sample in SampleValues.samples() { samples[sample.name] = sample }
    var count = 0
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: " ", maxSplits: 1)
      let sample = try #require(samples[String(parts[1])], "\(parts[1])")
      let wasUnreadable = parts[0].hasPrefix("!")
      let outcome = sample.read(Coding.bytes(String(parts[0].drop { $0 == "!" })))
      switch outcome {
      case .value(true, _): count += 1
      case .decodingFailed where wasUnreadable: break
      // These have nothing in the place of what cannot be read.
      case .value where wasUnreadable && ["forgiving(", "lossy elements("].contains { sample.name.hasPrefix($0) }: break
      // The `nil` in an optional of an optional is `nil`, as it is in JSON.
      case .value where sample.name == "optional field(nil)": break
      default: Issue.record("\(sample.name): \(outcome)")
      }
    }
    #expect(count > 1700)
  }

  /// Writes a file of this version's bytes; by `LARDER_WRITE_FIXTURES=version-2.txt`, before the format changes.
  @Test(.enabled(if: ProcessInfo.processInfo.environment["LARDER_WRITE_FIXTURES"] != nil)) func areWritten() throws {
    let name = try #require(ProcessInfo.processInfo.environment["LARDER_WRITE_FIXTURES"])
    var text = ""
    for sample in SampleValues.samples() {
      // Some cannot be encoded.
      guard let bytes = try? sample.encoded() else { continue }
      text += "\(sample.read(bytes).isSame ? "" : "!")\(Coding.hex(bytes)) \(sample.name)\n"
    }
    try text.write(to: EarlierBytesTests.fixtures.appending(path: name), atomically: true, encoding: .utf8)
  }
}
