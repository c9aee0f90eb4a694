import Foundation
import Testing

/// Output of earlier versions of the codec is still readable.
///
/// Each line of a file in `Fixtures` has the bytes of a value and the name of its sample. The bytes after a `!` were
/// unreadable to their own version, too, so they must never decode as another value.
@Suite struct EarlierBytesTests {
  private static let fixtures = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixtures")

  @Test(arguments: ["version-1.txt"]) func `earlier bytes are read`(_ file: String) throws {
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
      // These samples hold nothing in place of an unreadable value.
      case .value where wasUnreadable && ["forgiving(", "lossy elements("].contains { sample.name.hasPrefix($0) }: break
      // A `nil` in an optional of an optional is `nil`, as it is in JSON.
      case .value where sample.name == "optional field(nil)": break
      default: Issue.record("\(sample.name): \(outcome)")
      }
    }
    #expect(count > 1700)
  }

  /// Each line of the file has the bytes of a date, and the bits of its seconds since 2001.
  ///
  /// The first version wrote dates close to 2001 as binary fractions of up to 1,100 bits.
  @Test func `earlier dates are read`() throws {
    let file = EarlierBytesTests.fixtures.appending(path: "dates-version-1.txt")
    let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    for line in lines {
      let parts = line.split(separator: " ")
      let date = try Coding.decoded(Date.self, hex: String(parts[0]))
      #expect(String(date.timeIntervalSinceReferenceDate.bitPattern, radix: 16) == parts[1])
    }
    #expect(lines.count == 28)
  }

  /// Writes a file with the bytes of this version.
  ///
  /// Run it with `LARDER_WRITE_FIXTURES=version-2.txt` before you change the format.
  @Test(.enabled(if: ProcessInfo.processInfo.environment["LARDER_WRITE_FIXTURES"] != nil)) func `fixtures are written`()
    throws
  {
    let name = try #require(ProcessInfo.processInfo.environment["LARDER_WRITE_FIXTURES"])
    var text = ""
    for sample in SampleValues.samples() {
      // Some samples cannot be encoded.
      guard let bytes = try? sample.encoded() else { continue }
      text += "\(sample.read(bytes).isSame ? "" : "!")\(Coding.hex(bytes)) \(sample.name)\n"
    }
    try text.write(to: EarlierBytesTests.fixtures.appending(path: name), atomically: true, encoding: .utf8)
  }
}
