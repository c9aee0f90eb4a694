#if Crypto
import Foundation
import Larder
import Testing

@testable import LarderCrypto

/// Rings at rest that something else has replaced: by an older copy, by another ring, or by one with fewer keys.
@Suite struct RestoredRingTests {
  private let source = MemoryKeySource(SampleRing.text(SampleRing.first))

  /// Every operation that loads the ring.
  private static let operations: [(name: String, run: @Sendable (KeyRing) async throws -> Void)] = [
    ("refresh", { try await $0.refresh() }),
    ("rotate", { try await $0.rotate() }),
    ("addKey", { try await $0.addKey() }),
    ("addKeys", { try await $0.addKeys(from: SampleRing.open()) }),
    (
      "promote",
      { ring in
        if let first = ring.keys.first { try await ring.promote(first.id) }
      }
    ),
    (
      "remove",
      { ring in
        if let first = ring.keys.first { try await ring.remove(first.id) }
      }
    ),
  ]

  @Test func `an older copy never replaces the only copy of a key`() async throws {
    let ring = try await KeyRing.open(in: source)
    let codec = RawCodec.raw.encrypted(with: ring, purpose: "p")
    let older = source.text
    let key = try await ring.rotate()
    let stored = try codec.bytes(of: [1])
    source.text = older
    for operation in Self.operations {
      let error = await expectKeyRingError(.changed) { try await operation.run(ring) }
      #expect(error?.message.contains("\(key)") == true && error?.message.contains("save(to:)") == true)
      #expect(error?.storeErrorCode == .conflict)
      #expect(source.text == older, "\(operation.name) has changed the ring at rest")
      #expect(ring.primary == key, "\(operation.name)")
      #expect(try codec.value(of: stored) == [1], "\(operation.name)")
    }
    // The keys can be saved elsewhere, and put back.
    let elsewhere = MemoryKeySource()
    try await ring.save(to: elsewhere)
    #expect(try await KeyRing.open(in: elsewhere).keys.map(\.id) == ring.keys.map(\.id))
    try await ring.save()
    let reopened = try await KeyRing.open(in: source)
    #expect(reopened.primary == key && reopened.keys.count == 2)
    #expect(try RawCodec.raw.encrypted(with: reopened, purpose: "p").value(of: stored) == [1])
    try await ring.rotate()
    try await reopened.refresh()
    #expect(reopened.keys.count == 3)
  }

  /// A key that only this process has is kept even if it has sealed nothing yet.
  @Test func `an older copy without an unused key is refused`() async throws {
    let ring = try await KeyRing.open(in: source)
    try await ring.rotate()
    let older = source.text
    let added = try await ring.addKey()
    source.text = older
    await expectKeyRingError(.changed) { try await ring.refresh() }
    #expect(ring.keys.map(\.id).contains(added))
  }

  /// An older copy that another process has changed again has a newer generation, and still lacks the primary key.
  @Test func `an older copy that was rotated is refused`() async throws {
    let ring = try await KeyRing.open(in: source)
    let older = source.text
    try await ring.rotate()
    source.text = older
    let other = try await KeyRing.open(in: source)
    for _ in 0..<5 { try await other.rotate() }
    for operation in Self.operations { await expectKeyRingError(.changed) { try await operation.run(ring) } }
    // Saving keeps the keys of both.
    try await ring.save()
    try await other.refresh()
    #expect(other.keys.count == 7 && other.primary == ring.primary)
  }

  @Test func `another ring is refused`() async throws {
    let ring = try await KeyRing.open(in: source)
    let codec = RawCodec.raw.encrypted(with: ring, purpose: "p")
    let stored = try codec.bytes(of: [1])
    let other = SampleRing.text(SampleRing.second).replacing("\"primary\"", with: "\"generation\":99,\"primary\"")
    source.text = other
    for operation in Self.operations {
      let error = await expectKeyRingError(.changed) { try await operation.run(ring) }
      #expect(error?.message.contains("another key ring") == true)
    }
    await expectKeyRingError(.changed) { try await ring.save() }
    #expect(source.text == other)
    #expect(try codec.value(of: stored) == [1])
    #expect(ring.primary.description == SampleRing.first.id)
    source.text = nil
    let error = await expectKeyRingError(.notFound) { try await ring.refresh() }
    #expect(error?.message.contains("save()") == true)
    try await ring.save()
    #expect(try await KeyRing.open(in: source).primary == ring.primary)
  }

  /// A key that another process removes on purpose is removed here, too.
  @Test func `a removal is no older copy`() async throws {
    let ring = try await KeyRing.open(in: source)
    let other = try await KeyRing.open(in: source)
    let codec = RawCodec.raw.encrypted(with: ring, purpose: "p")
    _ = try codec.bytes(of: [1])
    let first = ring.primary
    try await other.rotate()
    // Until it loads the new key, this process encrypts with the old one.
    await expectKeyRingError(.invalidArgument) { try await ring.remove(first) }
    try await ring.refresh()
    try await other.remove(first)
    try await ring.refresh()
    #expect(ring.keys.map(\.id) == [other.primary])
    // A process that has not loaded the new key keeps the old one.
    let late = try await KeyRing.open(in: source)
    _ = try RawCodec.raw.encrypted(with: late, purpose: "p").bytes(of: [1])
    try await other.rotate()
    try await other.remove(late.primary)
    await expectKeyRingError(.changed) { try await late.refresh() }
  }

  @Test func `the generation of a foreign ring is bounded`() async throws {
    source.text = SampleRing.text(SampleRing.first)
      .replacing("\"primary\"", with: "\"generation\":\(UInt64.max),\"primary\"")
    let ring = try await KeyRing.open(in: source)
    try await ring.rotate()
    #expect(try await KeyRing.open(in: source).keys.count == 2)
  }

  @Test func `keys of a backup are added back`() async throws {
    let ring = try await KeyRing.open(in: source)
    let stored = try RawCodec.raw.encrypted(with: ring, purpose: "p").bytes(of: [1])
    let backup = MemoryKeySource()
    try await ring.save(to: backup)
    let first = ring.primary
    try await ring.rotate()
    try await ring.remove(first)
    let reading = RawCodec.raw.encrypted(with: ring, purpose: "p")
    #expect(throws: KeyRingError.self) { try reading.value(of: stored) }
    let primary = ring.primary
    #expect(try await ring.addKeys(from: KeyRing.open(in: backup)) == [first])
    #expect(try await ring.addKeys(from: KeyRing.open(in: backup)) == [])
    #expect(try reading.value(of: stored) == [1])
    #expect(ring.primary == primary && ring.keys.map(\.id) == [first, primary])
    #expect(try await KeyRing.open(in: source).keys.count == 2)
  }

  // MARK: Opening a store

  @Test func `a wrong ring is noticed before the first write`() async throws {
    let ring = try await KeyRing.open(in: source)
    let other = try await KeyRing.open(in: MemoryKeySource(SampleRing.text(SampleRing.second)))
    func store(_ bytes: MemoryStore<[UInt8]>, _ ring: KeyRing, purpose: String = "p") -> some DataStore<[UInt8]> {
      bytes.typed([UInt8].self, codec: RawCodec.raw.encrypted(with: ring, purpose: purpose))
    }
    func filled() async throws -> MemoryStore<[UInt8]> {
      let bytes = MemoryStore<[UInt8]>()
      for number in 0..<20 { try await store(bytes, ring).setValue([1], forKey: StoreKey(integer: number)) }
      return bytes
    }
    try await store(MemoryStore(), other).checkingValues()
    let bytes = try await filled()
    try await store(bytes, ring).checkingValues()
    // One damaged value, and one under an old key, do not prevent the start.
    try bytes.apply([.set(StoreKey(integer: 0), [1])])
    try await store(bytes, other).setValue([1], forKey: StoreKey(integer: 1))
    try await store(bytes, ring).checkingValues()
    for (keys, purpose, code) in [(other, "p", StoreError.Code.keyUnavailable), (ring, "other", .corrupted)] {
      let wrong = store(try await filled(), keys, purpose: purpose)
      let error = await #expect(throws: StoreError.self) { try await wrong.checkingValues() }
      #expect(error?.code == code)
      let closed = await #expect(throws: StoreError.self) { try await wrong.setValue([1], forKey: "k") }
      #expect(closed?.code == .closed)
    }
  }
}
#endif
