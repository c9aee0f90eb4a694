import Dispatch
import Foundation
import Larder
import LarderCBOR
import LarderFiles
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import LarderQueue

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Combined faults: a full disk and old dead letters, a crash and a batch, a clock change and a reopening.
@Suite(.timeLimit(.minutes(60))) struct QueueAdversityTests {
  // MARK: Failed writes

  @Test(arguments: [ENOSPC, EIO], Durability.File.allCases)
  func `dead letters that expire on a full disk`(_ errorNumber: Int32, _ durability: Durability.File) async throws {
    let bench = QueueBench()
    let fileSystem = StubbornFileSystem(bench.disk, refusing: [.write], errorNumber: errorNumber)
    fileSystem.isStubborn = false
    let queue = try await QueueStore<Int>(
      path: "/queue", codec: .cbor(),
      configuration: QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1, deadLetterRetention: .seconds(60))),
      durability: durability,
      fileSystem: fileSystem, environment: .manual(bench.clock))
    try await queue.enqueue((0..<3).map { QueueInput($0) })
    let deliveries = try await queue.receive(max: 2, lease: .seconds(5))
    #expect(try await queue.release(deliveries.map(\.receipt)).isEmpty)
    bench.clock.advance(by: .seconds(61))
    fileSystem.isStubborn = true
    await expectStoreError(errorNumber == ENOSPC ? .full : .ioFailed) { try await queue.enqueue(3) }
    #expect(try await queue.counts() == QueueCounts(waiting: 1, dead: 2))
    fileSystem.isStubborn = false
    bench.clock.advance(by: .seconds(2))
    try await queue.enqueue(3)
    #expect(try await queue.counts() == QueueCounts(waiting: 2))
    try await queue.close()
  }

  /// Changes made at opening are written late, after other changes to the same items.
  @Test func `leases that were voided on a full disk`() async throws {
    let bench = QueueBench()
    var queue = try await bench.open()
    try await queue.enqueue((0..<2).map { QueueInput($0) })
    #expect(try await queue.receive(max: 2, lease: .seconds(600)).count == 2)
    try await queue.close()
    let fileSystem = StubbornFileSystem(bench.disk, refusing: [.write], errorNumber: ENOSPC)
    queue = try await QueueStore<Int>(
      path: "/queue", codec: .cbor(), leases: .void, fileSystem: fileSystem, environment: .manual(bench.clock))
    await expectStoreError(.full) { try await queue.receive(lease: .seconds(600)) }
    fileSystem.isStubborn = false
    #expect(try await queue.receive(lease: .seconds(600))?.value == 0)
    #expect(try await queue.counts() == QueueCounts(waiting: 1, leased: 1))
    try await queue.close()
    queue = try await bench.open()
    #expect(try await queue.counts() == QueueCounts(waiting: 1, leased: 1))
    try await queue.close()
  }

  // MARK: Full disks

  /// Enqueues items with identifiers until the disk is full.
  private static func fill(_ queue: QueueStore<Int>) async throws -> Int {
    var count = 0
    do {
      while true {
        try await queue.enqueue(
          (0..<100).map { QueueInput(count + $0, id: StoreKey("an item with an id \(count + $0)")) })
        count += 100
      }
    } catch StoreError.Code.full {
      return count
    }
  }

  /// Remembered keys and failed deliveries take space that acknowledgements do not free immediately.
  ///
  /// A short run takes one of the sizes, which depends on the seed.
  @Test(arguments: TestDepth.part(of: [16_384, 1 << 20], oneIn: 2, for: "segments of a full disk"))
  func `items with IDs drain from a full disk`(_ segmentSize: Int) async throws {
    let bench = QueueBench()
    bench.disk.capacity = 1_500_000
    let queue = try await bench.open(
      QueueConfiguration(policy: QueuePolicy(maximumDeliveries: nil), segmentSize: segmentSize), durability: .buffered)
    let count = try await QueueAdversityTests.fill(queue)
    #expect(count > 5000)
    // The server is down.
    for _ in 0..<200 {
      _ = try await queue.release(try await queue.receive(max: 100, lease: .seconds(30)).map(\.receipt))
      bench.clock.advance(by: .milliseconds(300))
    }
    var values: Set<Int> = []
    for _ in 0..<1000 where values.count < count {
      while true {
        let deliveries = try await queue.receive(max: 100, lease: .seconds(30))
        guard !deliveries.isEmpty else { break }
        values.formUnion(deliveries.map(\.value))
        #expect(try await queue.acknowledge(deliveries.map(\.receipt)).isEmpty)
      }
      bench.clock.advance(by: .seconds(10))
    }
    #expect(values.count == count)
    try await queue.enqueue(1)
    try await queue.close()
  }

  /// The sizes of segments and batches with which a full queue is drained.
  ///
  /// Draining in batches of 1 takes many times as long, so a short run drains only the smallest segments that way, and
  /// of the larger ones either.
  private static let drains =
    [16_384, 1 << 20, 32 << 20].map { (segmentSize: $0, batch: 40) }.filter {
      !TestDepth.isShort || $0.segmentSize != skippedSize
    } + (TestDepth.isShort ? [16_384] : [16_384, 1 << 20, 32 << 20]).map { (segmentSize: $0, batch: 1) }

  private static let skippedSize = TestDepth.start(distance: 2, of: "drained segments") == 0 ? 1 << 20 : 32 << 20

  /// Dropping the remembered identifiers of removed items frees the segments, without any delay.
  @Test(arguments: drains) func `items with IDs drain without a delay`(_ segmentSize: Int, _ batch: Int) async throws {
    let bench = QueueBench()
    // Many segments of the smallest size, and less than one of the largest size.
    bench.disk.capacity =
      switch segmentSize {
      case 16_384: TestDepth.isShort ? 400_000 : 1_500_000
      case 1 << 20: 1_500_000
      default: 4_000_000
      }
    let configuration = QueueConfiguration(policy: QueuePolicy(maximumDeliveries: nil), segmentSize: segmentSize)
    var queue = try await bench.open(configuration, durability: .buffered)
    let count = try await QueueAdversityTests.fill(queue)
    #expect(count > 2000)
    var next = 0
    while true {
      let deliveries = try await queue.receive(max: batch, lease: .seconds(30))
      guard !deliveries.isEmpty else { break }
      #expect(deliveries.first?.value == next)
      next += deliveries.count
      #expect(try await queue.acknowledge(deliveries.map(\.receipt)).isEmpty)
      if next == 1000 {
        try await queue.close()
        queue = try await bench.open(configuration, durability: .buffered)
      }
    }
    #expect(next == count)
    bench.clock.advance(by: .seconds(1))
    #expect(try await queue.enqueue(1, id: "an item with an id 1").isDuplicate)
    try await queue.enqueue(1)
    try await queue.close()
  }

  /// A consumer that waits for an item receives it when there is room again.
  @Test func `a waiting consumer is served on a full disk`() async throws {
    let bench = QueueBench()
    bench.disk.capacity = 600_000
    let queue = try await bench.open(
      QueueConfiguration(policy: QueuePolicy(maximumDeliveries: nil), segmentSize: 1 << 20), durability: .buffered)
    let count = try await QueueAdversityTests.fill(queue)
    let values = Locked<Set<Int>>([])
    let expected = count
    let consumer = Task {
      while values.withLock({ $0.count }) < expected {
        try await queue.withNext(lease: .seconds(30)) { delivery in
          values.withLock { _ = $0.insert(delivery.value) }
        }
      }
    }
    for _ in 0..<100_000 where values.withLock({ $0.count }) < count {
      while bench.clock.sleeperCount == 0, values.withLock({ $0.count }) < count { await Task.yield() }
      bench.clock.advance(by: .seconds(10))
    }
    #expect(values.withLock { $0.count } == count)
    try await consumer.value
    try await queue.close()
  }

  // MARK: Cleaning

  private static func item(_ sequence: UInt64, in segment: UInt32) -> QueueRecord {
    let place = QueuePlace(segment: segment, offset: UInt32(sequence * 100), length: 10)
    return .put(
      ItemState(
        item: QueueItem(
          sequence: sequence, key: StoreKey("\(sequence)"), arrival: 0, place: place, stateSegment: segment,
          hasCallersKey: true)))
  }

  /// A segment stays if too much must be recorded about its removed items.
  ///
  /// Then the records about it in other segments must stay, too.
  @Test func `records about retained segments stay`() {
    var ledger = QueueLedger(rules: QueueRules(QueueConfiguration()))
    for sequence: UInt64 in 1...9 { ledger.replay(QueueAdversityTests.item(sequence, in: 1), in: 1) }
    for sequence: UInt64 in 20...22 { ledger.replay(QueueAdversityTests.item(sequence, in: 2), in: 2) }
    for sequence: UInt64 in [2, 4, 6] { ledger.replay(.remove(sequence...sequence), in: 2) }
    ledger.replay(.remove(20...22), in: 3)
    _ = ledger.begin(at: 0)
    ledger.segment = 4
    var cleaning = Cleaning(targets: [2, 3])
    var records: [QueueRecord] = []
    var said: [UInt32] = []
    while !cleaning.isOver {
      let part = ledger.nextSurvivors(of: &cleaning, bytes: 16, looks: 1000)
      records += part.records
      said += part.covered
    }
    #expect(said == [3])
    #expect(records == [.remove(20...22)])
  }

  // MARK: Clocks and names

  @Test func `a dead letter from the future`() async throws {
    let bench = QueueBench()
    let configuration = QueueConfiguration(
      policy: QueuePolicy(maximumDeliveries: 1, deadLetterRetention: .seconds(3600)))
    var queue = try await QueueStore<Int>(
      path: "/queue", codec: .cbor(), configuration: configuration, fileSystem: bench.disk,
      environment: QueueEnvironment(clock: bench.clock, now: { bench.clock.date.addingTimeInterval(1_000_000) }))
    try await queue.enqueue(0, id: "a")
    try await queue.release(try #require(try await queue.receive(lease: .seconds(5))).receipt)
    try await queue.close()
    queue = try await bench.open(configuration)
    #expect(try await queue.enqueue(1, id: "a").isDuplicate)
    bench.clock.advance(by: .seconds(3000))
    #expect(try await !queue.enqueue(1, id: "a").isDuplicate)
    try await queue.close()
    // Each opening continues from the time that the first one has set.
    queue = try await bench.open(configuration)
    bench.clock.advance(by: .seconds(700))
    try await queue.enqueue(2)
    #expect(try await queue.counts() == QueueCounts(waiting: 2))
    try await queue.close()
  }

  @Test(arguments: ["end-ffffffff-10", "end-7fffffff-10", "end-1-7fffffffffffffff", "end-00000001-7fffffffffffffff"])
  func `an unknown file name`(_ name: String) async throws {
    for isNew in [true, false] {
      let bench = QueueBench()
      if !isNew {
        let queue = try await bench.open()
        try await queue.enqueue(0)
        try await queue.close()
      } else {
        try bench.disk.createDirectory(at: "/queue")
        try bench.disk.place([], at: "/queue/lock")
      }
      try bench.disk.place([], at: "/queue/\(name)")
      do {
        let queue = try await bench.open()
        #expect(try await queue.enqueue(1).sequence < 10)
        try await queue.close()
      } catch StoreError.Code.unrecognizedFormat {
        #expect(isNew)
      }
    }
  }

  // MARK: Poison

  /// Other items of a batch survive an item that crashes its decoder.
  @Test(arguments: [5, nil]) func `a poisoned batch`(_ maximum: Int?) async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("queue")
    let configuration = QueueConfiguration(policy: QueuePolicy(maximumDeliveries: maximum))
    do {
      let queue = try await QueueStore<QueuePoisonTests.Trap>(path: path, configuration: configuration)
      for number in [1, 2, 3, 0, 4, 5, 6, 7] { try await queue.enqueue(QueuePoisonTests.Trap(number)) }
      try await queue.close()
    }
    for _ in 0..<(maximum == nil ? 6 : 5) {
      await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, maximum = maximum as Int?] in
        let queue = try await QueueStore<QueuePoisonTests.Trap>(
          path: path, configuration: QueueConfiguration(policy: QueuePolicy(maximumDeliveries: maximum)), leases: .void)
        while true {
          let deliveries = try await queue.receive(max: 100, lease: .seconds(60))
          guard !deliveries.isEmpty else { break }
          _ = try await queue.acknowledge(deliveries.map(\.receipt))
        }
      }
    }
    let queue = try await QueueStore<QueuePoisonTests.Trap>(path: path, configuration: configuration, leases: .void)
    if maximum == nil {
      // It waits after all other items, forever.
      #expect(try await queue.counts() == QueueCounts(waiting: 1))
    } else {
      let deliveries = try await queue.receive(max: 100, lease: .seconds(60))
      #expect(deliveries.map(\.value.number) == [4, 5, 6, 7])
      #expect(try await queue.counts() == QueueCounts(leased: 4, dead: 1))
    }
    try await queue.close()
  }

  /// Bad items at the head of the queue do not keep a new program from the good items after them.
  @Test(arguments: [1, 2, 10], [RetryPolicy(), .immediate])
  func `bad items at the head`(_ batch: Int, retryPolicy: RetryPolicy) async throws {
    let bench = QueueBench()
    let raw = try await QueueStore<[UInt8]>(
      path: "/queue", codec: RenamedCodec(), fileSystem: bench.disk, environment: .manual(bench.clock))
    try await raw.enqueue([0xFF, 0xFF, 0xFF, 1, 2].map { QueueInput([$0]) })
    try await raw.close()
    let queue = try await bench.open(QueueConfiguration(policy: QueuePolicy(retryPolicy: retryPolicy)))
    var values: [Int] = []
    for _ in 0..<9 {
      do { values += try await queue.receive(max: batch, lease: .seconds(60)).map(\.value) } catch StoreError.Code
        .corrupted
      {}
    }
    #expect(values == [1, 2])
    try await queue.close()
  }

  // MARK: Concurrent reads

  /// Readers of segments keep them, and release them whether the read succeeds or not.
  @Test(arguments: ["backup", "verify", "peek"]) func `failed reads keep no segment`(_ reader: String) async throws {
    let bench = QueueBench()
    let fileSystem = StubbornFileSystem(bench.disk, refusing: [.createDirectory])
    fileSystem.isStubborn = false
    let queue = try await QueueStore<Int>(
      path: "/queue", codec: .cbor(), configuration: QueueConfiguration(segmentSize: 4096), fileSystem: fileSystem,
      environment: .manual(bench.clock))
    for number in 0..<300 { try await queue.enqueue(number) }
    let first = try #require(bench.disk.content(at: QueueRecoveryTests.first))
    switch reader {
    case "backup":
      fileSystem.isStubborn = true
      await expectStoreError(.notPermitted) { try await queue.backup(to: "/copy", compacting: false) }
    case "verify":
      try bench.disk.place(Array("something else".utf8), at: QueueRecoveryTests.first)
      await expectStoreError(.unrecognizedFormat) { try await queue.verify() }
      try bench.disk.place(first, at: QueueRecoveryTests.first)
    default:
      fileSystem.badBytes = [QueueRecoveryTests.first: 0..<4096]
      await expectStoreError(.ioFailed) { try await queue.peek() }
      fileSystem.badBytes = [:]
    }
    let received = try await queue.receive(max: 999, lease: .seconds(5))
    #expect(received.count == 300)
    #expect(try await queue.acknowledge(received.map(\.receipt)).isEmpty)
    try await queue.enqueue(1)
    #expect(try bench.names.filter { $0.hasPrefix("segment") }.count == 1)
    try await queue.close()
  }

  /// A backup during another one is too late for the path, and neither damages the other.
  @Test func `two backups to one path`() async throws {
    let bench = QueueBench()
    let fileSystem = StubbornFileSystem(bench.disk, refusing: [])
    let queue = try await QueueStore<Int>(
      path: "/queue", codec: .cbor(), fileSystem: fileSystem, environment: .manual(bench.clock))
    try await queue.enqueue((0..<500).map { QueueInput($0) })
    let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
    let gate = DispatchSemaphore(value: 0)
    let isFirst = Atomic(true)
    fileSystem.beforeCreating = { path in
      guard path.hasPrefix("/copy"), isFirst.exchange(false, ordering: .relaxed) else { return }
      beginning.finish()
      gate.wait()
    }
    let first = Task { try await queue.backup(to: "/copy", compacting: false) }
    for await _ in begun {}
    let second = Task { try await queue.backup(to: "/copy", compacting: false) }
    let result = await second.result
    gate.signal()
    await #expect(throws: StoreError.self) { try await first.value }
    try result.get()
    #expect(try bench.disk.contentsOfDirectory(at: "/").sorted() == ["copy", "queue"])
    let copy = try await QueueStore<Int>(path: "/copy", codec: .cbor(), fileSystem: bench.disk)
    #expect(try await copy.count() == 500)
    #expect(!copy.recovery.hasDamage)
    try await copy.close()
    try await queue.close()
  }
}
