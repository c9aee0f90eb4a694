#if Crypto
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderCrypto

/// The example of the article `EncryptedValueFormat.md`.
@Suite struct FormatArticleTests {
  private func blocks(_ language: String) throws -> [String] {
    let url = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Modules/Codecs/LarderCrypto/LarderCrypto.docc/EncryptedValueFormat.md")
    let parts = try String(contentsOf: url, encoding: .utf8).components(separatedBy: "```")
    return stride(from: 1, to: parts.count, by: 2).map { parts[$0] }.filter { $0.hasPrefix("\(language)\n") }
      .map { String($0.dropFirst(language.count + 1)) }
  }

  @Test func `the example is this value of this ring`() async throws {
    let text = try #require(try blocks("json").first)
    #expect(text == SampleRing.text(SampleRing.first))
    let ring = try await KeyRing.open(in: MemoryKeySource(text))
    let lines = try #require(try blocks("").last).split(separator: "\n")
    let digits = lines.map { $0.split(separator: "#")[0] }.joined(separator: " ")
    let stored = try bytes(hexadecimal: digits)
    #expect(stored == (try bytes(hexadecimal: EncryptedCodecTests.golden)))
    let codec = RawCodec.raw.encrypted(with: ring, purpose: "users")
    #expect(try codec.value(of: stored) == Array("hello, larder".utf8))
  }
}
#endif
