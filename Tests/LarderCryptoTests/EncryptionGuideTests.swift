#if Crypto && LMDB
import Foundation
import Larder
import LarderCBOR
import LarderCrypto
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

/// The code of the guide *Encryption*.
@Suite(.timeLimit(.minutes(60))) struct EncryptionGuideTests {
  private struct User: Codable, Sendable, Equatable {
    var name: String
  }

  @Test func `values are encrypted and encrypted again`() async throws {
    let temporary = try TemporaryFolder()
    let (folder, keyFolder, isFirstStart) = (temporary.path, temporary.path, true)
    let source = FileKeySource(path: keyFolder + "/keys.json")
    let ring = try await KeyRing.open(in: source, createsIfMissing: isFirstStart)
    let users = try await LMDBStore<User>(
      path: folder + "/users", codec: .cbor(User.self).encrypted(with: ring, purpose: "users"))
    try await users.setValue(User(name: "Ada"), forKey: "ada")
    // snippet.if-a-key-is-missing
    try await users.checkingValues()
    // snippet.end
    let first = ring.primary
    // A year later.
    let later = try await KeyRing.open(in: .file(folder + "/keys.json")) { Date(timeIntervalSinceNow: 366 * 86_400) }
    try await rotate(later)
    try await ring.refresh()
    let outcome = try await users.reencrypt()
    #expect(outcome.examinedCount == 1 && outcome.failureCount == 0)
    // snippet.rotating-keys
    for key in ring.keys where !key.isPrimary { try await ring.remove(key.id) }
    // snippet.end
    #expect(ring.keys.map(\.id) == [ring.primary] && ring.primary != first)
    #expect(try users.value(forKey: "ada") == User(name: "Ada"))
    try await recover(ring, usbStick: folder, secret: "correct horse")
    let recovered = try await KeyRing.open(
      in: .passwordFile(folder + "/recovery.jwe", password: KeyFilePassword("correct horse")))
    #expect(recovered.primary == ring.primary)
    try await users.close()
  }

  private func rotate(_ ring: KeyRing) async throws {
    let users = MemoryStore<User>()
    #expect(ring.needsRotation)
    // snippet.rotating-keys-2
    if ring.needsRotation {
      try await ring.rotate()
      let outcome = try await users.reencrypt()
      print(outcome.examinedCount, outcome.failureCount)
    }
    // snippet.end
  }

  private func recover(_ ring: KeyRing, usbStick: String, secret: String) async throws {
    // snippet.where-does-the-key-come-from
    try await ring.save(to: .passwordFile(usbStick + "/recovery.jwe", password: KeyFilePassword(secret)))
    // snippet.end
    // snippet.if-the-ring-was-restored-or
    let backup = try await KeyRing.open(
      in: .passwordFile(usbStick + "/recovery.jwe", password: KeyFilePassword(secret)))
    try await ring.addKeys(from: backup)
    // snippet.end
  }
}
#endif
