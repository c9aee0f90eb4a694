#if LMDB
import Larder
import LarderBounded
import LarderCBOR
import LarderExpiry
import LarderIndexes
import LarderMirror
import LarderStoreQueue
import LarderTesting
import TestSupport
import Testing

/// Decorators over a base whose keys are in no order, as in a damaged file: each walk through their records comes to an end.
@Suite(.timeLimit(.minutes(5))) struct DisorderedLayersTests {
  private static let changes = (0..<3000).map { BatchChange<Int>.set(StoreKey("key\(10_000 + $0)"), $0) }

  @Test func `the accounts of a bounded store`() async throws {
    let base = DisorderedStore<[UInt8]>()
    let store = try await BoundedStore(base, bytes: 1 << 30)
    try await store.apply(ChangeBatch((0..<3000).map { .set(StoreKey("key\(10_000 + $0)"), [1]) }))
    #expect(try await store.verifyAccounting().findings == [])
    base.damage()
    await expectStoreError(.corrupted) { try await store.verifyAccounting() }
  }

  @Test func `the indexes of a store`() async throws {
    let base = DisorderedStore<[UInt8]>()
    let store = try await base.indexed(by: [StoreIndex("parity") { [[$1 % 2]] }], codec: .cbor(Int.self))
    try await store.apply(ChangeBatch(Self.changes))
    base.damage()
    await expectStoreError(.corrupted) { try await store.rebuildIndexes(fromScratch: true) }
  }

  @Test func `expired entries`() async throws {
    let base = DisorderedStore<Expiring<Int>>()
    let store = base.expiring(.after(.seconds(60)))
    try await store.apply(ChangeBatch(Self.changes))
    base.damage()
    await expectStoreError(.corrupted) { try await store.purgeExpired(limit: .max) }
  }

  @Test func `a mirror`() async throws {
    let base = DisorderedStore<Int>()
    let store = try MirroredStore(primary: base, secondary: MemoryStore<Int>())
    try await store.apply(ChangeBatch(Self.changes))
    base.damage()
    await expectStoreError(.corrupted) { try await store.repair() }
  }

  @Test func `a queue`() async throws {
    let base = DisorderedStore<[UInt8]>()
    let queue = try await base.queue(of: Int.self, prefix: "q/", codec: .cbor())
    for part in 0..<3 {
      try await queue.enqueue((0..<1000).map { QueueInput($0, group: StoreKey(integer: 1000 * part + $0)) })
    }
    base.damage()
    await expectStoreError(.corrupted) { try await queue.receive(max: 3000, lease: .seconds(60)) }
    await expectStoreError(.corrupted) { try await queue.peek(max: 3000) }
  }
}
#endif
