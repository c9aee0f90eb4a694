#if Crypto
import LarderCrypto
import TestSupport
import Testing

/// The code of the guide `Keyrings`.
@Suite struct KeyringsGuideTests {
  @Test func theCodeOfThePageIsCompiled() throws {
    #expect(try Guide("Modules/Codecs/LarderCrypto/LarderCrypto.docc/Keyrings.md").piecesMissing() == [])
  }

  /// It is not called, because it would use the keyring of the person who runs the tests.
  private func open(isFirstStart: Bool) async throws -> KeyRing {
    // snippet.overview
    let ring = try await KeyRing.open(
      in: .secretService(application: "Notes", name: "notes"), createsIfMissing: isFirstStart)
    // snippet.end
    return ring
  }
}
#endif
