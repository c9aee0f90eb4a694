#if LMDB
import Larder
import LarderCBOR
import LarderStoreQueue
import LarderTesting
import TestSupport
import Testing

/// Queues with more work than one call does: timers that end together, and groups that are blocked.
@Suite struct StoreQueueStepTests {
  /// A store that counts the keys of its updates.
  private struct CountingStore: PassingStore {
    let base = MemoryStore<[UInt8]>()
    let counter = Counter()

    final class Counter: Sendable { let largest = Locked(0) }

    func update<Result: Sendable>(
      deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<[UInt8]>) -> UpdateDecision<Result>
    ) async throws -> Result {
      counter.largest.withLock { $0 = max($0, keys.count) }
      return try await base.update(deciding: keys, body)
    }

    /// Returns the number of keys of the largest update since the last call.
    func largestUpdate() -> Int {
      counter.largest.withLock { largest in
        defer { largest = 0 }
        return largest
      }
    }
  }

  private let base = CountingStore()
  private let clock = ManualClock()

  private func open(
    _ configuration: StoreQueueConfiguration = StoreQueueConfiguration()
  ) async throws -> StoreQueue<CountingStore, Int> {
    try await StoreQueue(
      base, prefix: "q/", codec: .cbor(), configuration: configuration, environment: .manual(clock))
  }

  @Test func `each call settles some timers and returns an item`() async throws {
    let queue = try await open()
    try await queue.enqueue((0..<2000).map { QueueInput($0, after: .seconds(60)) })
    clock.advance(by: .seconds(60))
    _ = base.largestUpdate()
    var received: [Int] = []
    for _ in 0..<2000 {
      let delivery = try #require(try await queue.receive(lease: .seconds(60)))
      received.append(delivery.value)
      try await queue.acknowledge(delivery.receipt)
      #expect(base.largestUpdate() <= 256 * 3)
    }
    #expect(received == Array(0..<2000))
    #expect(try await queue.receive(lease: .seconds(60)) == nil)
  }

  @Test func `a call settles as many timers as it needs`() async throws {
    let queue = try await open()
    try await queue.enqueue((0..<1000).map { QueueInput($0, after: .seconds(60)) })
    clock.advance(by: .seconds(60))
    #expect(try await queue.peek(max: 600).map(\.value) == Array(0..<600))
    #expect(try await queue.receive(max: 700, lease: .seconds(60)).map(\.value) == Array(0..<700))
    #expect(try await queue.receive(max: 700, lease: .seconds(60)).map(\.value) == Array(700..<1000))
  }

  /// The only item that can be received has the last timer of many.
  @Test func `a call continues until it finds an item`() async throws {
    let queue = try await open()
    try await queue.enqueue(-1, group: "g")
    let first = try #require(try await queue.receive(lease: .seconds(9999)))
    try await queue.enqueue((0..<1000).map { QueueInput($0, after: .seconds($0 % 60), group: "g") })
    try await queue.enqueue(1000, after: .seconds(60))
    clock.advance(by: .seconds(60))
    #expect(try await queue.peek(max: 1).map(\.value) == [1000])
    #expect(try await queue.receive(lease: .seconds(60))?.value == 1000)
    #expect(try await queue.receive(lease: .seconds(60)) == nil)
    try await queue.acknowledge(first.receipt)
    for number in 0..<1000 {
      let delivery = try #require(try await queue.receive(lease: .seconds(60)))
      #expect(delivery.value == number)
      try await queue.acknowledge(delivery.receipt)
    }
  }

  /// The only item that can be received has the last timer of many, and all others are of a blocked group.
  @Test func `the timers of a blocked group are passed over`() async throws {
    let queue = try await open()
    try await queue.enqueue(-1, group: "g")
    let first = try #require(try await queue.receive(lease: .seconds(9999)))
    for part in 0..<3 {
      try await queue.enqueue((0..<1000).map { QueueInput(part * 1000 + $0, after: .seconds(1 + $0 % 60), group: "g") })
    }
    try await queue.enqueue(3000, after: .seconds(60))
    clock.advance(by: .seconds(60))
    let lock = try await base.value(forKey: "q/lg")?.prefix(16)
    #expect(try await queue.receive(lease: .seconds(9999))?.value == 3000)
    #expect(try await base.value(forKey: "q/lg")?.prefix(16) == lock, "the item is still the leased one")
    #expect(try await base.count(in: .prefix("q/t")) == 2 + 3000 - 256, "one call parks some of the items")
    for _ in 0..<11 { #expect(try await queue.receive(lease: .seconds(9999)) == nil) }
    #expect(try await base.count(in: .prefix("q/t")) == 2, "later calls park the others")
    try await queue.acknowledge(first.receipt)
    for number in 0..<3000 {
      let delivery = try #require(try await queue.receive(lease: .seconds(9999)))
      #expect(delivery.value == number)
      try await queue.acknowledge(delivery.receipt)
    }
  }

  /// The group is unblocked while the timers of some of its items have been passed over.
  @Test func `a group is unblocked before all of its items are parked`() async throws {
    let queue = try await open()
    try await queue.enqueue(-1, group: "g")
    let first = try #require(try await queue.receive(lease: .seconds(9999)))
    // Those that are parked are behind those that are not.
    try await queue.enqueue((0..<600).map { QueueInput($0, after: .seconds(60 - $0 / 20), group: "g") })
    clock.advance(by: .seconds(60))
    #expect(try await queue.receive(lease: .seconds(9999)) == nil)
    #expect(try await base.count(in: .prefix("q/t")) == 1 + 600 - 256)
    try await queue.acknowledge(first.receipt)
    for number in 0..<600 {
      let delivery = try #require(try await queue.receive(lease: .seconds(9999)))
      #expect(delivery.value == number)
      try await queue.acknowledge(delivery.receipt)
    }
  }

  /// A store that runs closures between the calls of its user, one after each page that it reads.
  private struct InterruptedStore: PassingStore {
    let base: MemoryStore<[UInt8]>
    let steps = Steps()

    final class Steps: Sendable {
      private let rest = Locked<[@Sendable () async throws -> Void]>([])

      func set(_ steps: [@Sendable () async throws -> Void]) { rest.withLock { $0 = steps } }

      func runNext() async throws {
        try await rest.withLock { $0.isEmpty ? nil : $0.removeFirst() }?()
      }
    }

    func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
      let keys = try base.keys(in: range, limit: limit, order: order)
      try await steps.runNext()
      return keys
    }

    func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<[UInt8]>] {
      let entries = try base.entries(in: range, limit: limit, order: order)
      try await steps.runNext()
      return entries
    }
  }

  /// Another consumer empties the group between two pages that a consumer reads, and it is filled then or between later ones.
  @Test(arguments: 0..<6, 0..<3) func `a group that is emptied and filled holds nothing back`(
    pages: Int, later: Int
  ) async throws {
    let bytes = MemoryStore<[UInt8]>()
    let other = try await StoreQueue(bytes, prefix: "q/", codec: .cbor(Int.self), environment: .manual(clock))
    let store = InterruptedStore(base: bytes)
    let queue = try await StoreQueue(store, prefix: "q/", codec: .cbor(Int.self), environment: .manual(clock))
    try await other.enqueue(1, group: "g")
    var steps = (0..<pages + later + 1).map { _ in [@Sendable () async throws -> Void]() }
    steps[pages].append {
      if let delivery = try await other.receive(lease: .seconds(60)) { try await other.acknowledge(delivery.receipt) }
    }
    steps[pages + later].append { try await other.enqueue(2, group: "g") }
    store.steps.set(steps.map { step in { for part in step { try await part() } } })
    var values: [Int] = []
    for _ in 0..<10 {
      guard let delivery = try await queue.receive(lease: .seconds(60)) else { continue }
      try await queue.acknowledge(delivery.receipt)
      values.append(delivery.value)
    }
    #expect(values.last == 2)
  }

  /// Also a schedule of a trial repeats only then.
  @Test func `equal random numbers give equal entries`() async throws {
    var contents: [[StoreEntry<[UInt8]>]] = []
    for seed: UInt64 in [7, 7, 8] {
      let bytes = MemoryStore<[UInt8]>()
      let queue = try await StoreQueue(
        bytes, prefix: "q/", codec: .cbor(Int.self),
        environment: .manual(ManualClock(), randomness: SeededGenerator(seed: seed)))
      try await queue.enqueue((0..<3).map { QueueInput($0, group: "g") })
      _ = try await queue.receive(max: 2, lease: .seconds(60))
      contents.append(try bytes.entries(in: .all, limit: .max, order: .ascending))
    }
    #expect(contents[0] == contents[1])
    #expect(contents[0] != contents[2])
  }

  @Test func `an item without a state holds back no group`() async throws {
    let queue = try await open()
    try await queue.enqueue((0..<3).map { QueueInput($0, group: "g") })
    for state in try await base.keys(in: .prefix("q/s"), limit: 2, order: .ascending) {
      try await base.removeValue(forKey: state)
    }
    #expect(try await queue.receive(max: 3, lease: .seconds(60)).map(\.value) == [2])
  }

  /// A call that has leased items does not hold their leases while it looks for more behind many others.
  @Test func `a call that has items does not look on`() async throws {
    let queue = try await open(StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1)))
    try await queue.enqueue((0..<1000).map { QueueInput($0) })
    #expect(try await queue.receive(max: 1000, lease: .seconds(60)).count == 1000)
    try await queue.enqueue([QueueInput(1000), QueueInput(1001, after: .seconds(61))])
    clock.advance(by: .seconds(61))
    #expect(try await queue.receive(max: 2, lease: .seconds(60)).map(\.value) == [1000])
    #expect(try await base.count(in: .prefix("q/t")) > 256, "the other leases that have ended are left")
    #expect(try await queue.receive(max: 2, lease: .seconds(60)).map(\.value) == [1001])
  }

  /// Ids and dead letters are removed when no more items wait for their timers.
  @Test func `ids and dead letters come after items`() async throws {
    let queue = try await open(
      StoreQueueConfiguration(
        policy: QueuePolicy(maximumDeliveries: 1, duplicateWindow: .seconds(1), deadLetterRetention: .seconds(1))))
    try await queue.enqueue((0..<300).map { QueueInput($0, id: StoreKey("\($0)")) })
    for delivery in try await queue.receive(max: 300, lease: .seconds(60)) { try await queue.release(delivery.receipt) }
    try await queue.enqueue((0..<300).map { QueueInput($0, after: .seconds(1)) })
    clock.advance(by: .seconds(1))
    func counts() async throws -> [Int] {
      try await [base.count(in: .prefix("q/t")), base.count(in: .prefix("q/u")), base.count(in: .prefix("q/x"))]
    }
    #expect(try await counts() == [300, 600, 300])
    #expect(try await queue.receive(lease: .seconds(60)) != nil)
    #expect(try await counts() == [45, 600, 300])
    #expect(try await queue.receive(lease: .seconds(60)) != nil)
    #expect(try await counts()[0] == 2)
    #expect(try await counts()[1] == 388)
    while try await queue.receive(lease: .seconds(60)) != nil {}
    #expect(try await counts() == [300, 0, 0])
  }

  // MARK: Pausing

  @Test func `a call that has begun leases nothing after a pause`() async throws {
    let memory = MemoryStore<[UInt8]>()
    let base = memory.faulty()
    let queue = try await base.queue(of: Int.self, prefix: "q/", codec: .cbor())
    let other = try await memory.queue(of: Int.self, prefix: "q/", codec: .cbor())
    try await queue.enqueue(7)
    base.schedule(.suspension(), on: .update, number: 1)
    let receiving = Task { try await queue.receive(max: 1, lease: .seconds(60)).count }
    try await base.waitForSuspended(1, of: .update)
    try await other.pause()
    base.resume()
    #expect(try await receiving.value == 0)
    try await other.resume()
    #expect(try await queue.receive(lease: .seconds(60))?.value == 7)
  }

  // MARK: Groups

  @Test func `a blocked group is passed over`() async throws {
    let queue = try await open()
    try await queue.enqueue((0..<3000).map { QueueInput($0, group: "g") })
    try await queue.enqueue([QueueInput(-1), QueueInput(-2, group: "h"), QueueInput(-3)])
    let first = try #require(try await queue.receive(lease: .seconds(9999)))
    _ = base.largestUpdate()
    #expect(try await queue.peek(max: 9).map(\.value) == [-1, -2, -3])
    for number in [-1, -2, -3] {
      #expect(try await queue.receive(lease: .seconds(9999))?.value == number)
      #expect(base.largestUpdate() <= 512 * 3 + 16)
    }
    for _ in 0..<8 { #expect(try await queue.receive(lease: .seconds(9999)) == nil) }
    #expect(try await base.count(in: .prefix("q/r")) == 0, "all items of the group are parked")
    try await queue.acknowledge(first.receipt)
    for number in 1..<3000 {
      let delivery = try #require(try await queue.receive(lease: .seconds(9999)))
      #expect(delivery.value == number)
      try await queue.acknowledge(delivery.receipt)
    }
  }

  /// The first item of a group has a lower priority than many others of it, which are passed over.
  @Test func `the first item of a group is found behind many others`() async throws {
    let queue = try await open()
    try await queue.enqueue(0, priority: -1, group: "g")
    for part in 0..<5 { try await queue.enqueue((1...1000).map { QueueInput(part * 1000 + $0, group: "g") }) }
    #expect(try await queue.receive(lease: .seconds(60))?.value == 0)
  }

  /// The next item of the group is one that the waiting consumer has passed over without parking it.
  @Test func `a waiting consumer is woken for an item that it has passed over`() async throws {
    let queue = try await open(StoreQueueConfiguration(pollInterval: .seconds(9999)))
    try await queue.enqueue([QueueInput(0, group: "g"), QueueInput(1, priority: -1, group: "g")])
    let first = try #require(try await queue.receive(lease: .seconds(9999)))
    try await queue.enqueue((2..<1000).map { QueueInput($0, group: "g") })
    let waiting = Task { try await queue.nextDelivery(lease: .seconds(60)).get().value }
    try await clock.waitForSleepers(1)
    #expect(try await base.count(in: .prefix("q/r")) > 1)
    try await queue.acknowledge(first.receipt)
    #expect(try await waiting.value == 1)
  }

  /// Items whose last leases have ended, before the only one that can be received.
  @Test func `items that were delivered too often are passed over`() async throws {
    let queue = try await open(StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1)))
    try await queue.enqueue((0..<1000).map { QueueInput($0) })
    #expect(try await queue.receive(max: 1000, lease: .seconds(60)).count == 1000)
    clock.advance(by: .seconds(60))
    try await queue.enqueue(1000)
    #expect(try await queue.receive(lease: .seconds(60))?.value == 1000)
    #expect(try await queue.receive(lease: .seconds(60)) == nil)
    #expect(try await queue.counts() == QueueCounts(leased: 1, dead: 1000))
  }
}
#endif
