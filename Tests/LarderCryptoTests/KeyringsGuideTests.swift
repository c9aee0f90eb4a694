#if Crypto
import LarderCrypto

/// The code of the guide `Keyrings`.
private struct KeyringsGuide {
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
