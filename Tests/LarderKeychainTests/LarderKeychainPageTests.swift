#if Crypto
import LarderCrypto
import LarderKeychain
import TestSupport
import Testing

/// The code of the landing page of LarderKeychain.
@Suite struct LarderKeychainPageTests {
  @Test func theCodeOfThePageIsCompiled() throws {
    #expect(try Guide("Modules/Codecs/LarderKeychain/LarderKeychain.docc/LarderKeychain.md").piecesMissing() == [])
  }

  /// It is not called, because it would use the keyring of the person who runs the tests.
  private func open(isFirstStart: Bool) async throws -> KeyRing {
    let ring = try await KeyRing.open(
      in: .secretService(application: "Notes", name: "notes"), createsIfMissing: isFirstStart)
    return ring
  }
}
#endif
