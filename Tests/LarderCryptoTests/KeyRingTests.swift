#if Crypto
import Foundation
import Larder
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import LarderCrypto

/// Key rings: their form at rest, their changes, their limits, and what they never show.
@Suite struct KeyRingTests {
  @Test func `a ring is read and written in the documented form`() async throws {
    let source = MemoryKeySource(SampleRing.text(SampleRing.first, SampleRing.second))
    let ring = try await KeyRing.open(in: source)
    #expect(ring.keys.map(\.id.description) == [SampleRing.first.id, SampleRing.second.id])
    #expect(ring.keys.map(\.isPrimary) == [true, false])
    #expect(ring.keys[0].created == Date(timeIntervalSince1970: 1_767_225_600))
    try await ring.promote(ring.keys[1].id)
    #expect(
      source.text
        == "{\"keys\":[\(SampleRing.first.json),\(SampleRing.second.json)],\"primary\":\"\(SampleRing.second.id)\",\"generation\":1}\n"
    )
    #expect(SampleRing.first.id == "5aa8cf3d1bc03fca")
    #expect(KeyRing.KeyID("5aa8cf3d1bc03fca")?.bytes == [0x5A, 0xA8, 0xCF, 0x3D, 0x1B, 0xC0, 0x3F, 0xCA])
    for text in ["", "5AA8CF3D1BC03FCA", "+aa8cf3d1bc03fca", "5aa8cf3d1bc03fc", "5aa8cf3d1bc03fca0"] {
      #expect(KeyRing.KeyID(text) == nil)
    }
  }

  @Test func `a missing ring is created only on request`() async throws {
    let source = MemoryKeySource()
    await expectKeyRingError(.notFound) { try await KeyRing.open(in: source) }
    #expect(source.text == nil)
    let clock = ManualClock()
    let ring = try await KeyRing.open(in: source, createsIfMissing: true) { clock.date }
    #expect(ring.keys.count == 1)
    #expect(ring.keys[0].created == clock.date)
    #expect(try await KeyRing.open(in: source, createsIfMissing: true).primary == ring.primary)
    // Another process creates the ring first.
    let shared = MemoryKeySource()
    shared.onNextSave { $0.text = SampleRing.text(SampleRing.first) }
    let late = try await KeyRing.open(in: shared, createsIfMissing: true)
    #expect(late.primary.description == SampleRing.first.id)
  }

  @Test func `unknown members are kept`() async throws {
    let key = SampleRing.first.json.replacing("{\"kty\"", with: "{\"key_ops\":[\"encrypt\"],\"kty\"")
    let source = MemoryKeySource(
      "{\"note\":{\"a\":[1.0e1,null]},\"keys\":[\(key)],\n\"primary\":\"\(SampleRing.first.id)\"}")
    try await KeyRing.open(in: source).addKey()
    let text = try #require(source.text)
    #expect(text.contains("\"key_ops\":[\"encrypt\"]"))
    #expect(text.contains("\"note\":{\"a\":[1.0e1,null]}"))
    #expect(try await KeyRing.open(in: source).keys.count == 2)
  }

  @Test func `damaged rings are refused`() async throws {
    let text = SampleRing.text(SampleRing.first, SampleRing.second)
    let (first, second) = (SampleRing.first, SampleRing.second)
    for (problem, damaged) in [
      ("empty", ""), ("not JSON", "hello"), ("an array", "[]"), ("no keys", "{\"primary\":\"\(first.id)\"}"),
      ("no key", "{\"keys\":[],\"primary\":\"\(first.id)\"}"),
      ("no primary", text.replacing(",\"primary\":\"\(first.id)\"", with: "")),
      ("another primary", text.replacing("\"primary\":\"\(first.id)\"", with: "\"primary\":\"0123456789abcdef\"")),
      ("the wrong type", text.replacing("\"primary\":\"\(first.id)\"", with: "\"primary\":1")),
      ("a key twice", SampleRing.text(first, first)),
      ("another kid", text.replacing("\"kid\":\"\(first.id)\"", with: "\"kid\":\"0123456789abcdef\"")),
      ("exchanged kids", text.replacing("\"kid\":\"\(first.id)\"", with: "\"kid\":\"\(second.id)\"")),
      ("a short key", SampleRing.text(SampleRing.key(Array(0..<16)))),
      ("a long key", SampleRing.text(SampleRing.key(Array(0..<33)))),
      ("padding", text.replacing("Hh8\"", with: "Hh8=\"")), ("unused bits", text.replacing("Hh8\"", with: "Hh9\"")),
      ("another type", text.replacing("\"oct\"", with: "\"RSA\"")),
      ("another algorithm", text.replacing("A256GCM", with: "A128GCM")),
      ("no time", text.replacing("\"iat\":1767225600,", with: "")),
      ("a fraction", text.replacing("1767225600", with: "1767225600.5")),
      ("a member twice", text.replacing("{\"kty\"", with: "{\"kty\":\"oct\",\"kty\"")),
      ("a key that is a string", "{\"keys\":[\"a\"],\"primary\":\"\(first.id)\"}"),
      ("a generation that is text", text.replacing("\"primary\"", with: "\"generation\":\"1\",\"primary\"")),
      ("a negative generation", text.replacing("\"primary\"", with: "\"generation\":-1,\"primary\"")),
      ("too long", text + String(repeating: " ", count: 1 << 20)),
    ] {
      let error = await expectKeyRingError(.corrupted) { try await KeyRing.open(in: MemoryKeySource(damaged)) }
      #expect(error?.storeErrorCode == .corrupted, "\(problem)")
    }
    for count in 0..<text.utf8.count - 1 {
      await expectKeyRingError(.corrupted) { try await KeyRing.open(in: MemoryKeySource(String(text.prefix(count)))) }
    }
  }

  @Test func `keys are added promoted and removed`() async throws {
    let source = MemoryKeySource(SampleRing.text(SampleRing.first))
    let ring = try await KeyRing.open(in: source)
    let first = ring.primary
    let codec = RawCodec.raw.encrypted(with: ring, purpose: "p")
    let stored = try codec.bytes(of: [1])
    let second = try await ring.addKey()
    #expect(ring.primary == first)
    try await ring.promote(second)
    #expect(ring.primary == second)
    #expect(ring.keys.map(\.sealCount) == [1, 0])
    let third = try await ring.rotate()
    #expect(ring.keys.map(\.id) == [first, second, third])
    #expect(ring.keys.map(\.isPrimary) == [false, false, true])
    #expect(try codec.value(of: stored) == [1])

    let unknown = try #require(KeyRing.KeyID("0123456789abcdef"))
    await expectKeyRingError(.invalidArgument) { try await ring.remove(third) }
    await expectKeyRingError(.invalidArgument) { try await ring.remove(unknown) }
    await expectKeyRingError(.invalidArgument) { try await ring.promote(unknown) }
    try await ring.remove(first)
    let error = #expect(throws: KeyRingError.self) { try codec.value(of: stored) }
    #expect(error?.code == .unavailable)
    #expect(error?.storeErrorCode == .keyUnavailable)
    #expect(try await KeyRing.open(in: source).keys.map(\.id) == [second, third])
  }

  @Test func `the changes of another process are kept`() async throws {
    let source = MemoryKeySource(SampleRing.text(SampleRing.first))
    let ring = try await KeyRing.open(in: source)
    let other = try await KeyRing.open(in: source)
    let codec = RawCodec.raw.encrypted(with: ring, purpose: "p")
    // The other ring rotates between the load and the save of this one.
    source.onNextSave { _ in try await other.rotate() }
    source.onNextSave { _ in }
    let added = try await ring.addKey()
    #expect(ring.keys.count == 3)
    #expect(ring.primary == other.primary)
    // A value under a key that another process added is read after a refresh.
    try await ring.promote(added)
    let stored = try codec.bytes(of: [1])
    let otherCodec = RawCodec.raw.encrypted(with: other, purpose: "p")
    #expect(throws: KeyRingError.self) { try otherCodec.value(of: stored) }
    try await other.refresh()
    #expect(try otherCodec.value(of: stored) == [1])
  }

  @Test func `a new key is used only after it is saved`() async throws {
    let source = MemoryKeySource(SampleRing.text(SampleRing.first))
    let ring = try await KeyRing.open(in: source)
    let codec = RawCodec.raw.encrypted(with: ring, purpose: "p")
    source.onNextSave { _ in
      let stored = try codec.bytes(of: [1])
      #expect(try stored.withUnsafeBytes { try KeyRing.KeyID(ofEncryptedValue: $0.bytes) } == ring.primary)
      throw KeyRingError(.ioFailed, message: "the disk fails")
    }
    await expectKeyRingError(.ioFailed) { try await ring.rotate() }
    #expect(ring.primary.description == SampleRing.first.id)
    #expect(source.text == SampleRing.text(SampleRing.first))
    source.text = nil
    await expectKeyRingError(.notFound) { try await ring.rotate() }
    await expectKeyRingError(.notFound) { try await ring.refresh() }
    source.text = "{}"
    await expectKeyRingError(.corrupted) { try await ring.refresh() }
    // It keeps the keys that it has.
    #expect(try codec.value(of: codec.bytes(of: [1])) == [1])
  }

  @Test func `a ring that would be too large to be read is not saved`() async throws {
    let filler = String(repeating: "x", count: (1 << 20) - 250)
    let text = SampleRing.text(SampleRing.first).replacing("{\"keys\"", with: "{\"note\":\"\(filler)\",\"keys\"")
    let source = MemoryKeySource(text)
    let ring = try await KeyRing.open(in: source)
    await expectKeyRingError(.full) { try await ring.rotate() }
    let isUnchanged = source.text == text
    #expect(isUnchanged)
    #expect(ring.keys.count == 1)
  }

  @Test func `a source that always changes is given up`() async throws {
    let source = MemoryKeySource(SampleRing.text(SampleRing.first))
    let ring = try await KeyRing.open(in: source)
    for count in 1...100 {
      source.onNextSave { $0.text = SampleRing.text(SampleRing.first) + String(repeating: " ", count: count) }
    }
    let error = await expectKeyRingError(.changed) { try await ring.rotate() }
    #expect(error?.storeErrorCode == .conflict)
  }

  @Test func `changes at the same time are made one after the other`() async throws {
    let ring = try await SampleRing.open()
    let added = try await withThrowingTaskGroup(of: KeyRing.KeyID.self) { group in
      for _ in 0..<20 { group.addTask { try await ring.rotate() } }
      for _ in 0..<20 {
        group.addTask {
          try await ring.refresh()
          return ring.primary
        }
      }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(ring.keys.count == 21)
    #expect(added.isSubset(of: ring.keys.map(\.id)))
    #expect(ring.keys.last?.isPrimary == true)
  }

  @Test func `an older state never replaces a newer one`() async throws {
    let source = MemoryKeySource(SampleRing.text(SampleRing.first))
    let ring = try await KeyRing.open(in: source)
    let rotating = Locked<Task<KeyRing.KeyID, any Error>?>(nil)
    // A rotation begins after a refresh has loaded the ring, and has time to finish before the refresh uses it.
    source.onNextLoad {
      rotating.withLock { $0 = Task { try await ring.rotate() } }
      for _ in 0..<1000 { await Task.yield() }
    }
    try await ring.refresh()
    let rotated = try await rotating.withLock { $0 }?.value
    #expect(ring.primary == rotated)
  }

  @Test func `a key is replaced in time and is full at its limit`() async throws {
    let clock = ManualClock()
    let source = MemoryKeySource()
    let ring = try await KeyRing.open(in: source, createsIfMissing: true) { clock.date }
    let codec = RawCodec.raw.encrypted(with: ring, purpose: "p")
    #expect(!ring.needsRotation)
    clock.advance(by: KeyRing.rotationAge - .seconds(1))
    #expect(!ring.needsRotation)
    clock.advance(by: .seconds(1))
    #expect(ring.needsRotation)
    try await ring.rotate()
    #expect(!ring.needsRotation)

    ring.snapshot.primary.sealCount.store((1 << 31) - 1, ordering: .relaxed)
    #expect(!ring.needsRotation)
    let stored = try codec.bytes(of: [1])
    #expect(ring.needsRotation)
    try await ring.refresh()
    #expect(ring.needsRotation)

    ring.snapshot.primary.sealCount.store((1 << 32) - 1, ordering: .relaxed)
    _ = try codec.bytes(of: [1])
    let error = #expect(throws: KeyRingError.self) { try codec.bytes(of: [1]) }
    #expect(error?.code == .full)
    #expect(error?.storeErrorCode == .full)
    #expect(try codec.value(of: stored) == [1])
    #expect(try codec.bytes(of: [1], stored: stored) == stored)
    try await ring.rotate()
    #expect(try codec.value(of: codec.bytes(of: [2])) == [2])
  }

  @Test func `read only sources`() async throws {
    let text = SampleRing.text(SampleRing.first)
    let environment = EnvironmentKeySource(name: "KEYS") { $0 == "KEYS" ? text : nil }
    let ring = try await KeyRing.open(in: environment, createsIfMissing: true)
    #expect(ring.primary.description == SampleRing.first.id)
    let error = await expectKeyRingError(.readOnly) { try await ring.rotate() }
    #expect(error?.storeErrorCode == .notPermitted)
    #expect(ring.keys.count == 1)
    for value in [nil, ""] {
      await expectKeyRingError(.notFound) {
        try await KeyRing.open(in: EnvironmentKeySource(name: "KEYS") { _ in value }, createsIfMissing: true)
      }
    }
    await expectKeyRingError(.notFound) {
      try await KeyRing.open(in: .environment("LARDER_NO_SUCH_RING"), createsIfMissing: true)
    }

    let folder = try TemporaryFolder()
    try Data(text.utf8).write(to: URL(filePath: folder.path("keys")))
    let credential = SystemdCredentialKeySource(name: "keys", folder: folder.path)
    let loaded = try await KeyRing.open(in: credential)
    #expect(loaded.primary.description == SampleRing.first.id)
    await expectKeyRingError(.readOnly) { try await loaded.addKey() }
    for (name, path) in [("other", Optional(folder.path)), ("keys", nil)] {
      await expectKeyRingError(.notFound) {
        try await KeyRing.open(in: SystemdCredentialKeySource(name: name, folder: path), createsIfMissing: true)
      }
    }
    for name in ["", "..", "../keys", "a/b"] {
      await expectKeyRingError(.invalidArgument) {
        try await SystemdCredentialKeySource(name: name, folder: folder.path).load()
      }
    }
    // A folder is not a credential.
    let url = URL(filePath: folder.path)
    await expectKeyRingError(.corrupted) {
      try await SystemdCredentialKeySource(
        name: url.lastPathComponent, folder: url.deletingLastPathComponent().path
      ).load()
    }
  }
}
#endif
