#if Crypto && LMDB
import Foundation
import Larder
import LarderCBOR
import LarderFiles
import LarderLMDB
import TestSupport
import Testing

@testable import LarderCrypto

/// Stores of encrypted values: with the ring, without it, and what their files and errors show.
@Suite struct EncryptedStoreTests {
  struct User: Codable, Equatable {
    var name: String
  }

  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func open(_ ring: KeyRing) async throws -> LMDBStore<String> {
    try await LMDBStore<String>(
      path: folder.path("users"), codec: .cbor(String.self).encrypted(with: ring, purpose: "users"))
  }

  /// The content of every file in the folder and its folders, except lock files.
  private func files() throws -> [String: Data] {
    var files: [String: Data] = [:]
    for name in try FileManager.default.subpathsOfDirectory(atPath: folder.path) where !name.contains("lock") {
      let path = folder.path(name)
      guard try POSIXFileSystem().attributes(at: path)?.kind == .file else { continue }
      files[name] = try Data(contentsOf: URL(filePath: path))
    }
    #expect(files.count > 0)
    return files
  }

  @Test func `the landing page shows this code`() async throws {
    let scratch = folder
    do {
      let (folder, keyFolder, isFirstStart) = (scratch.path, scratch.path, true)
      // snippet.encryption
      let source = FileKeySource(path: keyFolder + "/keys.json")
      let ring = try await KeyRing.open(in: source, createsIfMissing: isFirstStart)
      let users = try await LMDBStore<User>(
        path: folder + "/users", codec: .cbor(User.self).encrypted(with: ring, purpose: "users"))
      // snippet.end
      try await users.setValue(User(name: "Ada"), forKey: "1")
      #expect(try users.value(forKey: "1") == User(name: "Ada"))
      try await users.close()
    }
  }

  @Test func `without the key nothing changes and with it everything is read`() async throws {
    let ring = try await SampleRing.open()
    let users = try await open(ring)
    for number in 0..<50 { try await users.setValue("user \(number)", forKey: StoreKey(integer: number)) }
    try await ring.rotate()
    try await users.setValue("late", forKey: "late")
    try await users.close()
    let before = try files()

    let other = try await KeyRing.open(in: MemoryKeySource(SampleRing.text(SampleRing.second)))
    let locked = try await open(other)
    #expect(try locked.count(in: .all) == 51)
    #expect(try locked.keys(in: .all, limit: 100, order: .ascending).count == 51)
    expectStoreError(.keyUnavailable) { try locked.value(forKey: "late") }
    await expectStoreError(.keyUnavailable) { try await locked.entries(in: .all, limit: 100, order: .ascending) }
    await expectStoreError(.keyUnavailable) { try await locked.update(["late"]) { $0[0] = "changed" } }
    try await locked.close()
    #expect(try files() == before)

    let again = try await open(ring)
    #expect(try await again.entries(in: .all, limit: 100, order: .ascending).count == 51)
    #expect(try again.value(forKey: "late") == "late")
    try await again.close()
    // The same codec without encryption is refused.
    await expectStoreError(.versionMismatch) {
      try await LMDBStore<String>(path: folder.path("users"), codec: .cbor(String.self))
    }
  }

  @Test func `a value that is copied to another entry is corrupted`() async throws {
    let ring = try await SampleRing.open()
    let users = try await open(ring)
    try await users.setValue("Ada", forKey: "1")
    try await users.close()
    let copy = try await LMDBStore<[UInt8]>(path: folder.path("copy"), codec: .raw)
    let stored = try CBORCodec<String>().encrypted(with: ring, purpose: "users").bytes(of: "Ada", key: "1")
    try await copy.setValue(stored, forKey: "1")
    try await copy.setValue(stored, forKey: "2")
    let typed = copy.typed(String.self, codec: .cbor(String.self).encrypted(with: ring, purpose: "users"))
    #expect(try await typed.value(forKey: "1") == "Ada")
    let error = await expectStoreError(.corrupted) { try await typed.value(forKey: "2") }
    #expect(error?.underlying is EncryptedValueError)
    try await copy.close()
  }

  /// Neither a key nor a value appears in errors, descriptions, mirrors, or files other than the ring.
  @Test func `marked secrets never appear`() async throws {
    let key = Array("MARKED-SECRET-KEY-0123456789abcd".utf8)
    let value = "MARKED-PLAIN-VALUE"
    let path = folder.path("keys.json")
    let secrets = [
      String(decoding: key, as: UTF8.self), key.withUnsafeBytes { Base64URL.text(of: $0) },
      Data(key).base64EncodedString(), Hexadecimal.text(of: key), value,
    ]
    let text = SampleRing.text(SampleRing.key(key))
    try Data(text.utf8).write(to: URL(filePath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    let ring = try await KeyRing.open(in: .file(path))
    let codec = CBORCodec<String>().encrypted(with: ring, purpose: "users")
    let users = try await open(ring)
    try await users.setValue(value, forKey: "1")

    var shown: [String] = []
    func show(_ subject: Any) {
      var text = ""
      dump(subject, to: &text)
      shown += [text, "\(subject)", String(reflecting: subject)]
    }
    show(ring)
    show(ring.keys)
    show(codec)
    show(users)
    show(FileKeySource(path: path))
    show(EnvironmentKeySource(name: "KEYS") { _ in text })
    #expect(shown[1] == "KeyRing(primary: \(ring.primary), keys: [\(ring.primary)])")

    for count in stride(from: 0, to: text.utf8.count - 1, by: 1) {
      for damaged in [String(text.prefix(count)), text.replacing("\"k\":\"", with: "\"k\":\"A")] {
        do {
          _ = try await KeyRing.open(in: MemoryKeySource(damaged))
          Issue.record("a damaged ring was opened")
        } catch {
          shown += ["\(error)", String(reflecting: error)]
        }
      }
    }
    let stored = try codec.bytes(of: value)
    for damaged in [Array(stored.dropLast()), stored.reversed(), [], stored.map { $0 ^ 1 }] {
      do {
        _ = try codec.value(of: damaged)
      } catch {
        show(error)
      }
    }
    let strange = CBORCodec<Int>().encrypted(with: ring, purpose: "users")
    do {
      _ = try strange.value(of: stored)
    } catch {
      shown.append("\(StoreError(.undecodable, during: .value, store: "users", message: "", underlying: error))")
    }
    let other = try await KeyRing.open(in: MemoryKeySource(SampleRing.text(SampleRing.second)))
    do {
      _ = try CBORCodec<String>().encrypted(with: other, purpose: "users").value(of: stored)
    } catch {
      show(error)
    }
    try await ring.rotate()
    try await users.close()
    for text in shown {
      for secret in secrets { #expect(!text.contains(secret)) }
    }
    for (name, content) in try files() where name != "keys.json" {
      for secret in secrets { #expect(content.range(of: Data(secret.utf8)) == nil, "\(name)") }
    }
    // The search works: the ring at rest has the key.
    #expect(try Data(contentsOf: URL(filePath: path)).range(of: Data(secrets[1].utf8)) != nil)
  }
}
#endif
