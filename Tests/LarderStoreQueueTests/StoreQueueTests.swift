#if LMDB
import Foundation
import Larder
import LarderBatching
import LarderCBOR
import LarderExpiry
import LarderLMDB
import LarderObservation
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import LarderStoreQueue

@Suite struct StoreQueueTests {
  private typealias Bytes = MemoryStore<[UInt8]>

  private static func open<Base: DataStore>(
    _ base: Base, _ clock: ManualClock, configuration: StoreQueueConfiguration = StoreQueueConfiguration()
  ) async throws -> StoreQueue<Base, Int> where Base.Value == [UInt8] {
    try await StoreQueue(
      base, prefix: "q/", codec: .cbor(), configuration: configuration, environment: .manual(clock))
  }

  @Test func `changes enqueue an item together with other entries`() async throws {
    let (bytes, clock) = (Bytes(), ManualClock())
    let queue = try await StoreQueueTests.open(bytes, clock)
    var batch = ChangeBatch<[UInt8]>([.set("order", [7])])
    for change in try queue.changes(enqueuing: 1, after: .seconds(5), priority: 3, group: "g").changes {
      batch.append(change)
    }
    try bytes.apply(batch)
    #expect(try await queue.counts() == QueueCounts(delayed: 1))
    clock.advance(by: .seconds(5))
    let delivery = try #require(try await queue.receive(lease: .seconds(1)))
    #expect(delivery.value == 1 && delivery.priority == 3 && delivery.group == "g")
    #expect(try bytes.value(forKey: "order") == [7])
  }

  /// Runs a closure before the first read of a range of keys returns.
  private struct InterruptedStore<Base: DataStore>: PassingStore {
    let base: Base
    let interruption = Interruption()

    final class Interruption: Sendable { let body = Locked<(@Sendable () async -> Void)?>(nil) }

    func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
      let keys = try await base.keys(in: range, limit: limit, order: order)
      let body = interruption.body.withLock { body in
        defer { body = nil }
        return body
      }
      await body?()
      return keys
    }
  }

  /// An item that is inserted after the keys of the range were read would outlive the removal, although its batch has not seen
  /// the items that the removal's own batch inserts.
  @Test func `a removal of a range and another batch are in one order`() async throws {
    let base = InterruptedStore(base: Bytes())
    let queue = try await StoreQueueTests.open(base, ManualClock())
    try await queue.setValue(15, forKey: "a")
    try await withThrowingTaskGroup(of: Void.self) { group in
      let (stream, start) = AsyncStream.makeStream(of: Void.self)
      group.addTask {
        for await _ in stream { break }
        try await queue.apply([.remove("b"), .set("c", 8)])
      }
      base.interruption.body.withLock { body in
        body = {
          start.yield()
          for _ in 0..<1000 { await Task.yield() }
        }
      }
      try await queue.apply([.removeAll(.all), .set("b", 2), .set("a", 3)])
      try await group.waitForAll()
    }
    #expect(try await queue.keys(in: .all, limit: 9, order: .ascending) == ["a", "c"])
  }

  @Test func `queues with different prefixes are independent`() async throws {
    let bytes = Bytes()
    let first = try await bytes.queue(of: Int.self, prefix: "a/", codec: .cbor())
    let second = try await bytes.queue(of: String.self, prefix: "b/", codec: .cbor())
    try await first.enqueue(1)
    try await second.enqueue("x")
    #expect(try await first.receive(max: 9, lease: .seconds(60)).map(\.value) == [1])
    try await first.removeAll()
    #expect(try await second.receive(max: 9, lease: .seconds(60)).map(\.value) == ["x"])
  }

  @Test func `a base without its key counts no delivery`() async throws {
    let (bytes, clock) = (Bytes(), ManualClock())
    let key = NonceCodec<RawCodec>.Switch()
    let queue = try await StoreQueueTests.open(bytes.typed([UInt8].self, codec: NonceCodec(.raw, key: key)), clock)
    try await queue.enqueue(1)
    key.isOn = false
    for _ in 0..<9 {
      await expectStoreError(.keyUnavailable) { try await queue.receive(lease: .seconds(60)) }
    }
    key.isOn = true
    #expect(try await queue.receive(lease: .seconds(60))?.attempt == 1)
  }

  @Test func `a closing queue releases items that need a key`() async throws {
    let folder = try TemporaryFolder()
    let clock = ManualClock()
    try await expectReleaseWhileClosing { codec in
      try await StoreQueue(
        LMDBStore<[UInt8]>(path: folder.path("queue"), codec: .raw, durability: .buffered), prefix: "q/", codec: codec,
        environment: .manual(clock))
    }
  }

  @Test func `a base whose entries expire is refused`() async throws {
    let base = MemoryStore<Expiring<[UInt8]>>().expiring(.after(.seconds(60)))
    await expectStoreError(.unsupported) { try await StoreQueueTests.open(base, ManualClock()) }
  }

  @Test func `invalid configurations and prefixes are refused`() async throws {
    for prefix in ["", String(repeating: "p", count: 440)] {
      await expectStoreError(.invalidArgument) {
        try await Bytes().queue(of: Int.self, prefix: StoreKey(prefix), codec: .cbor())
      }
    }
    for configuration in [
      StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 0)),
      StoreQueueConfiguration(policy: QueuePolicy(duplicateWindow: .seconds(-1))),
      StoreQueueConfiguration(pollInterval: .zero),
      StoreQueueConfiguration(policy: QueuePolicy(deadLetterRetention: .seconds(-1))),
      StoreQueueConfiguration(policy: QueuePolicy(retryPolicy: RetryPolicy(jitter: 2))),
    ] {
      await expectStoreError(.invalidArgument) {
        try await Bytes().queue(of: Int.self, prefix: "q/", codec: .cbor(), configuration: configuration)
      }
    }
  }

  @Test(arguments: [[QueueLayout.formatVersion + 1], [QueueLayout.formatVersion + 1] + "cbor".utf8, []])
  func `another format is refused`(record: [UInt8]) async throws {
    let bytes = Bytes()
    try await bytes.setValue(record, forKey: "q/f")
    let error = await expectStoreError(.versionMismatch) {
      try await bytes.queue(of: Int.self, prefix: "q/", codec: .cbor())
    }
    #expect(error?.message.contains("format version \(record.first ?? 0)") == true)
    await expectStoreError(.versionMismatch) { try await bytes.codecName(ofQueue: "q/") }
    #expect(try bytes.value(forKey: "q/f") == record)
  }

  @Test func `another objects items are found by polling`() async throws {
    let (bytes, clock) = (Bytes(), ManualClock())
    let (first, second) = (try await StoreQueueTests.open(bytes, clock), try await StoreQueueTests.open(bytes, clock))
    let waiting = Task { try await first.nextDelivery(lease: .seconds(60)).get().value }
    try await clock.waitForSleepers(1)
    try await second.enqueue(1)
    clock.advance(by: .milliseconds(999))
    #expect(try await second.counts() == QueueCounts(waiting: 1))
    clock.advance(by: .milliseconds(1))
    #expect(try await waiting.value == 1)
  }

  @Test func `an observable base wakes consumers of other objects`() async throws {
    let (bytes, clock) = (Bytes().observable(), ManualClock())
    let (first, second) = (try await StoreQueueTests.open(bytes, clock), try await StoreQueueTests.open(bytes, clock))
    // The clock does not move, so only a report can wake the consumers.
    let waiting = (0..<3).map { _ in Task { try await first.nextDelivery(lease: .seconds(60)).get().value } }
    for _ in 0..<50 { await Task.yield() }
    try await second.enqueue([QueueInput(1), QueueInput(2)])
    try await bytes.apply(second.changes(enqueuing: 3))
    var values: [Int] = []
    for task in waiting { values.append(try await task.value) }
    #expect(values.sorted() == [1, 2, 3])
  }

  @Test func `dead letters are removed after their retention`() async throws {
    let (bytes, clock) = (Bytes(), ManualClock())
    let queue = try await StoreQueueTests.open(
      bytes, clock,
      configuration: StoreQueueConfiguration(
        policy: QueuePolicy(maximumDeliveries: 1, deadLetterRetention: .seconds(100))))
    try await queue.enqueue(1)
    try await queue.release(#require(try await queue.receive(lease: .seconds(60))).receipt)
    clock.advance(by: .seconds(99))
    #expect(try await queue.receive(lease: .seconds(60)) == nil)
    #expect(try await queue.counts().dead == 1)
    clock.advance(by: .seconds(1))
    #expect(try await queue.receive(lease: .seconds(60)) == nil)
    #expect(try await queue.counts().dead == 0)
    #expect(try bytes.count(in: .all) == 1)
  }

  @Test func `an item that may have crashed a process is received alone`() async throws {
    let (bytes, clock) = (Bytes(), ManualClock())
    let queue = try await StoreQueueTests.open(bytes, clock)
    try await queue.enqueue((0..<5).map { QueueInput($0) })
    for _ in 0..<2 {
      #expect(try await queue.receive(max: 1, lease: .seconds(60)).map(\.value) == [0])
      clock.advance(by: .seconds(60))
    }
    #expect(try await queue.receive(max: 5, lease: .seconds(60)).map(\.value) == [0])
    #expect(try await queue.receive(max: 5, lease: .seconds(60)).map(\.value) == [1, 2, 3, 4])
  }

  @Test func `a lost state blocks no other item`() async throws {
    let (bytes, clock) = (Bytes(), ManualClock())
    let queue = try await StoreQueueTests.open(bytes, clock)
    try await queue.enqueue([QueueInput(1, id: "a"), QueueInput(2, id: "b"), QueueInput(3)])
    let states = try bytes.keys(in: .prefix("q/s"), limit: 2, order: .ascending)
    try bytes.apply([.remove(states[0]), .set(states[1], [9])])
    #expect(try await queue.receive(max: 9, lease: .seconds(60)).map(\.value) == [3])
    // The values are still there.
    #expect(try await queue.value(forKey: "a") == 1)
    #expect(try await queue.value(forKey: "b") == 2)
  }

  /// Each encrypted value belongs to the key of its item, also as a dead letter and after requeuing.
  @Test func `encrypted items stay readable and a missing key costs no delivery`() async throws {
    let key = NonceCodec<CBORCodec<Int>>.Switch()
    let clock = ManualClock()
    let queue = try await StoreQueue(
      Bytes(), prefix: "q/", codec: NonceCodec(.cbor(Int.self), key: key),
      configuration: StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1, retryPolicy: .immediate)),
      environment: .manual(clock)
    )
    try await queue.enqueue([QueueInput(1, id: "a"), QueueInput(2)])
    key.isOn = false
    for _ in 0..<5 {
      await expectStoreError(.keyUnavailable) { try await queue.receive(max: 9, lease: .seconds(60)) }
    }
    #expect(try await queue.counts() == QueueCounts(waiting: 2))
    key.isOn = true
    let deliveries = try await queue.receive(max: 9, lease: .seconds(60))
    #expect(deliveries.map(\.value).sorted() == [1, 2] && deliveries.map(\.attempt) == [1, 1])
    _ = try await queue.release(deliveries.map(\.receipt))
    #expect(try await queue.deadLetters().map { try $0.value.get() }.sorted() == [1, 2])
    #expect(try await queue.requeueDeadLetters() == 2)
    #expect(try await queue.receive(max: 9, lease: .seconds(60)).map(\.value).sorted() == [1, 2])
  }

  @Test func `verification finds lost and damaged entries`() async throws {
    let folder = try TemporaryFolder()
    let bytes = try await LMDBStore<[UInt8]>(path: folder.path("lmdb"), codec: .raw, durability: .buffered)
    let queue = try await bytes.queue(of: Int.self, prefix: "q/", codec: .cbor())
    for key: StoreKey in ["a", "b", "c", "d", "e"] { try await queue.enqueue(1, id: key) }
    #expect(try await queue.verify() == VerificationReport(entryCount: 5))
    #expect(try await queue.storeStatistics().details.first { $0.name == "waiting" }?.value == 5)
    let states = try bytes.keys(in: .prefix("q/s"), limit: .max, order: .ascending)
    try await bytes.apply([.set(states[0], [9]), .remove(states[1]), .remove("q/ic"), .set("q/id", [1])])
    let report = try await queue.verify()
    #expect(report.entryCount == 4)
    #expect(report.findings.compactMap(\.key).sorted() == ["b", "c", "d", "d"])
    #expect(report.findings.count == 5)
    try await queue.close()
  }

  @Test func `a missing value makes a dead letter`() async throws {
    let (bytes, clock) = (Bytes(), ManualClock())
    let queue = try await StoreQueueTests.open(bytes, clock)
    try await queue.enqueue(1, id: "a")
    try await queue.enqueue(2)
    try await bytes.removeValue(forKey: "q/ia")
    #expect(try await queue.receive(max: 9, lease: .seconds(60)).map(\.value) == [2])
    #expect(try await queue.deadLetters().map(\.reason) == [.undecodable])
  }

  @Test func `a read only base can be read and not changed`() async throws {
    let folder = try TemporaryFolder()
    let writer = try await LMDBStore<[UInt8]>(path: folder.path("lmdb"), codec: .raw)
      .queue(of: Int.self, prefix: "q/", codec: .cbor())
    try await writer.enqueue(1)
    try await writer.close()
    let reader = try await LMDBStore<[UInt8]>(path: folder.path("lmdb"), codec: .raw, access: .readOnly)
      .queue(of: Int.self, prefix: "q/", codec: .cbor())
    #expect(try await reader.peek()?.value == 1)
    await expectStoreError(.notPermitted) { try await reader.enqueue(2) }
    await expectStoreError(.notPermitted) { try await reader.receive(lease: .seconds(1)) }
    await expectStoreError(.notPermitted) { () async throws in try reader.changes(enqueuing: 2) }
    try await reader.close()
  }

  /// Producers and consumers share commits of a base that batches them.
  @Test func `writers share commits of a batching base`() async throws {
    let base = CountingStore(base: Bytes())
    let queue = try await base.batched().queue(of: Int.self, prefix: "q/", codec: .cbor())
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<200 { group.addTask { try await queue.enqueue(number) } }
      try await group.waitForAll()
    }
    #expect(try await queue.count() == 200)
    #expect(base.commits.load(ordering: .relaxed) < 150)
  }

  /// A queue that has drained keeps no entries, whatever happened to its items.
  @Test func `a drained queue leaves nothing`() async throws {
    let (bytes, clock) = (Bytes(), ManualClock())
    let queue = try await StoreQueueTests.open(
      bytes, clock, configuration: StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 2)))
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "drained queue")
    for number in 0..<300 {
      try await queue.enqueue(
        number, id: Bool.random(using: &generator) ? "id \(number)" : nil,
        after: .seconds(.random(in: 0..<3, using: &generator)), priority: .random(in: -2...2, using: &generator),
        group: Bool.random(using: &generator) ? "group \(number % 4)" : nil)
    }
    while try await queue.count() > 0 {
      for delivery in try await queue.receive(max: 7, lease: .seconds(30)) {
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: try await queue.release(delivery.receipt)
        case 1: try await queue.removeValue(forKey: delivery.key)
        case 2: break
        default: try await queue.acknowledge(delivery.receipt)
        }
      }
      clock.advance(by: .seconds(5))
    }
    try await queue.purgeDeadLetters()
    clock.advance(by: .seconds(600))
    #expect(try await queue.receive(lease: .seconds(1)) == nil)
    #expect(try bytes.keys(in: .all, limit: .max, order: .ascending) == ["q/f"], "seed \(seed)")
  }
}

/// A store that takes a moment for each commit, and counts them.
private final class CountingStore: PassingStore {
  typealias Value = [UInt8]

  let base: MemoryStore<[UInt8]>
  let commits = Atomic(0)

  init(base: MemoryStore<[UInt8]>) { self.base = base }

  func apply(_ changes: ChangeBatch<[UInt8]>) async throws {
    commits.add(1, ordering: .relaxed)
    for _ in 0..<20 { await Task.yield() }
    try base.apply(changes)
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<[UInt8]>) -> UpdateDecision<Result>
  ) async throws -> Result {
    commits.add(1, ordering: .relaxed)
    for _ in 0..<20 { await Task.yield() }
    return try await base.update(deciding: keys, body)
  }
}
#endif
