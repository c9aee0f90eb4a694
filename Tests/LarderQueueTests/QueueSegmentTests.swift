import Foundation
import Larder
import LarderCBOR
import LarderFiles
import LarderTesting
import TestSupport
import Testing

@testable import LarderQueue

/// The files of the log: their number, the number of open files, and their state after failures.
@Suite struct QueueSegmentTests {
  /// The segments are small because the process was killed repeatedly.
  ///
  /// Joining them must end.
  @Test func `small segments are joined`() async throws {
    let bench = QueueBench()
    for number in 0..<30 {
      let queue = try await bench.open()
      try await queue.enqueue([QueueInput(2 * number)])
      try await queue.enqueue([QueueInput(2 * number + 1)])
      bench.disk.killProcess()
    }
    let queue = try await bench.open()
    try await queue.enqueue(60)
    #expect(try bench.names.count { $0.hasPrefix("segment") } <= 16)
    let operations = bench.disk.operationCount
    for number in 61..<71 { try await queue.enqueue(number) }
    #expect(bench.disk.operationCount - operations < 50)
    #expect(try await queue.peek(max: 99).map(\.value) == Array(0..<71))
  }

  @Test func `failed removals of segments are not retried constantly`() async throws {
    let bench = QueueBench()
    let fileSystem = StubbornFileSystem(bench.disk)
    let queue = try await QueueStore<Int>(
      path: "/queue", codec: .cbor(), configuration: QueueConfiguration(segmentSize: 4096), fileSystem: fileSystem,
      environment: .manual(bench.clock))
    func work(rounds: Int) async throws {
      for round in 0..<rounds {
        try await queue.enqueue((0..<20).map { QueueInput(round * 20 + $0) })
        let deliveries = try await queue.receive(max: 20, lease: .seconds(60))
        #expect(try await queue.acknowledge(deliveries.map(\.receipt)).isEmpty)
      }
    }
    try await work(rounds: 40)
    let count = try bench.names.count
    // Some 2 KiB per round.
    #expect(count < 60)
    fileSystem.isStubborn = false
    try await work(rounds: 5)
    #expect(try bench.names.count < 8)
  }

  @Test func `few files are open at the same time`() async throws {
    let folder = try TemporaryFolder()
    func open() async throws -> QueueStore<[UInt8]> {
      try await QueueStore<[UInt8]>(
        path: folder.path("queue"), codec: .cbor(), configuration: QueueConfiguration(segmentSize: 4096),
        durability: .buffered)
    }
    func openCount() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count { descriptor in
        let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
        return target?.hasPrefix(folder.path) ?? false
      }
    }
    var queue = try await open()
    let value = [UInt8](repeating: 7, count: 4096)
    for _ in 0..<100 { try await queue.enqueue(value) }
    #if os(Linux)
    #expect(try openCount() < 40)
    #endif
    try await queue.close()
    queue = try await open()
    #expect(try await queue.receive(max: 100, lease: .seconds(60)).count == 100)
    #if os(Linux)
    #expect(try openCount() < 40)
    #endif
    try await queue.close()
  }

  @Test func `the most recently used file stays open`() throws {
    let disk = SimulatedFileSystem(seed: 1)
    let folder = QueueFolder(
      name: "queue", path: "/", durability: .synced, access: .readWrite, createsIfMissing: true, segmentSize: 4096,
      fileSystem: disk)
    let files = SegmentFiles(folder: folder)
    func read(_ segment: UInt32) throws {
      _ = try files.read([QueuePlace(segment: segment, offset: 0, length: 0)])
    }
    for segment: UInt32 in 1...40 { try disk.place([0, 0, 0, 0], at: folder.segmentPath(segment)) }
    for segment: UInt32 in 1...40 {
      try read(segment)
      try read(1)
    }
    let operations = disk.operationCount
    try read(1)
    #expect(disk.operationCount == operations + 1)
    try read(2)
    #expect(disk.operationCount == operations + 3)
  }

  /// Otherwise the space of the removed segment would not be freed.
  @Test func `the file of a segment that is removed while it is opened does not stay open`() throws {
    let disk = SimulatedFileSystem(seed: 1)
    let fileSystem = StubbornFileSystem(disk, refusing: [])
    let folder = QueueFolder(
      name: "queue", path: "/", durability: .synced, access: .readWrite, createsIfMissing: true, segmentSize: 4096,
      fileSystem: fileSystem)
    let files = SegmentFiles(folder: folder)
    try disk.place([0, 0, 0, 0], at: folder.segmentPath(1))
    let place = QueuePlace(segment: 1, offset: 0, length: 0)
    fileSystem.beforeReading = { _ in files.remove(1) }
    #expect(try files.read([place]) == [[]])
    fileSystem.beforeReading = { _ in }
    try disk.removeFile(at: folder.segmentPath(1))
    #expect(throws: FileError.self) { try files.read([place]) }
  }

  /// After a failed synchronization, data that is not durable is rewritten and otherwise unchanged.
  @Test func `rewritten data is unchanged`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open(
      QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1)), durability: .buffered)
    try await queue.enqueue(1, id: "k")
    let delivery = try #require(try await queue.receive(lease: .seconds(5)))
    try await queue.release(delivery.receipt, after: .zero)
    try await queue.synchronize()
    // A dead letter is requeued with a key that another item had in the meantime.
    try await queue.setValue(2, forKey: "k")
    try await queue.removeValue(forKey: "k")
    #expect(try await queue.requeue(["k"]) == 1)
    try await queue.enqueue(3, id: "leased")
    try await queue.enqueue(4, id: "gone")
    try await queue.enqueue(6, id: "dead")
    let deliveries = try await queue.receive(max: 9, lease: .seconds(60))
    #expect(deliveries.map(\.value) == [1, 3, 4, 6])
    try await queue.acknowledge(deliveries[2].receipt)
    try await queue.release(deliveries[3].receipt, after: .zero)
    bench.disk.schedule(.error(EIO), atOperation: bench.disk.operationCount + 1)
    let error = await expectStoreError(.ioFailed) { try await queue.synchronize() }
    #expect(error?.underlying != nil)
    try await queue.enqueue(5)
    #expect(try await queue.counts() == QueueCounts(waiting: 1, leased: 2, dead: 1))
    #expect(try await queue.entries(in: .all, limit: 9).map(\.value).sorted() == [1, 3, 5])
    // Data that was durable is still in its place.
    let segments = try await queue.perform(.keys, .looks) { core in
      let live = ["k", "leased"].compactMap { core.ledger.item(forKey: $0)?.place.segment }
      return live + core.ledger.deadLetters(9).map(\.item.place.segment)
    }
    #expect(segments == [1, 2, 2])
    #expect(try await queue.enqueue(4, id: "gone").isDuplicate)
    #expect(try await queue.acknowledge(deliveries.map(\.receipt)) == deliveries[2...].map(\.receipt))
    try await queue.synchronize()
    bench.disk.losePower()
    let again = try await bench.open(QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1)))
    #expect(!again.recovery.hasDamage)
    #expect(try await again.enqueue(4, id: "gone").isDuplicate)
    #expect(try await again.entries(in: .all, limit: 9).map(\.value) == [5])
    #expect(try await again.deadLetters().first?.value.get() == 6)
  }

  /// Data left by a failed synchronization may disappear on power loss, even if a later synchronization succeeds.
  ///
  /// So an opening must rewrite the data that it finds.
  @Test(arguments: 1...20 as ClosedRange<UInt64>) func `data found at opening is made durable`(_ seed: UInt64)
    async throws
  {
    let bench = QueueBench(seed: seed)
    var queue = try await bench.open()
    try await queue.enqueue(1, id: "a")
    bench.disk.schedule(.error(EIO), atOperation: bench.disk.operationCount + 4)
    await expectStoreError(.ioFailed) { try await queue.enqueue(2, id: "b") }
    bench.disk.killProcess()
    queue = try await bench.open()
    let found = try await queue.keys(in: .all, limit: 9)
    #expect(found == ["a", "b"])
    try await queue.enqueue(3, id: "c")
    bench.disk.losePower()
    queue = try await bench.open()
    #expect(!queue.recovery.hasDamage)
    #expect(try await queue.entries(in: .all, limit: 9).map(\.key) == found + ["c"])
  }

  /// A segment may exist although its creation failed, and it records the end of the previous segment.
  ///
  /// Nothing may be appended to the previous one any more.
  @Test(arguments: [SimulatedFault.error(EIO), .errorAfterwards(EIO)])
  func `a failure at the start of a segment loses nothing`(_ fault: SimulatedFault) async throws {
    for operation in 1...16 {
      let bench = QueueBench(seed: UInt64(operation))
      let configuration = QueueConfiguration(segmentSize: 4096)
      let queue = try await bench.open(configuration)
      try await queue.enqueue((0..<100).map { QueueInput($0) })
      bench.disk.schedule(fault, atOperation: bench.disk.operationCount + operation)
      var expected = Array(0..<100)
      var possible: Set<Int> = []
      for number in 100..<104 {
        do {
          try await queue.enqueue(number)
          expected.append(number)
        } catch let error as StoreError {
          if error.outcome == .unknown { possible.insert(number) }
        }
      }
      bench.disk.killProcess()
      let again = try await bench.open(configuration)
      let found = try await again.entries(in: .all, limit: 999).map(\.value)
      #expect(found.filter { !possible.contains($0) } == expected, "at operation \(operation)")
      #expect(!again.recovery.hasDamage)
    }
  }

  /// A failed backup must not be mistaken for a complete one.
  @Test func `an incomplete backup is refused or reports missing data`() async throws {
    var failures = 0
    for operation in 1... {
      let bench = QueueBench(seed: 1)
      let queue = try await bench.open(QueueConfiguration(segmentSize: 4096))
      for part in 0..<4 { try await queue.enqueue((0..<70).map { QueueInput(part * 70 + $0) }) }
      let due = bench.disk.operationCount + operation
      bench.disk.schedule(.error(EIO), atOperation: due)
      do {
        try await queue.backup(to: "/copy", compacting: false)
        if bench.disk.operationCount < due { break }
      } catch let error as StoreError {
        #expect(error.code == .ioFailed)
        failures += 1
      }
      bench.disk.clearFaults()
      do {
        let copy = try await QueueStore<Int>(
          path: "/copy", codec: .cbor(), createsIfMissing: false, fileSystem: bench.disk)
        let count = try await copy.count()
        #expect(copy.recovery.hasDamage || count == 280, "at operation \(operation)")
      } catch let error as StoreError {
        #expect(error.code == .notFound)
      }
      try await queue.close()
    }
    #expect(failures > 10)
  }

  /// Another process may have opened the queue after its lock file was removed.
  @Test func `nothing is written without the lock`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open()
    try await queue.enqueue(1)
    bench.clock.advance(by: .seconds(1))
    try bench.disk.removeFile(at: "/queue/lock")
    await expectStoreError(.locked) { try await queue.enqueue(2) }
    await expectStoreError(.locked) { try await queue.receive(lease: .seconds(5)) }
    #expect(try await queue.peek(max: 9).map(\.value) == [1])
  }

  /// Callers affected by a failed synchronization learn that the outcome is unknown.
  ///
  /// No other caller gets an error.
  @Test func `a failed synchronization fails the affected callers`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open()
    try await queue.enqueue(1, id: "before")
    // Two checks of the files, the write, and the synchronization.
    bench.disk.schedule(.error(EIO), atOperation: bench.disk.operationCount + 4)
    let error = await expectStoreError(.ioFailed) { try await queue.enqueue(2, id: "lost") }
    #expect(error?.outcome == .unknown)
    #expect(try await queue.keys(in: .all, limit: 9) == ["before"])
    let after = try await queue.enqueue(3, id: "after")
    #expect(after.sequence == 3)
    bench.disk.losePower()
    let again = try await bench.open()
    #expect(try await again.keys(in: .all, limit: 9) == ["after", "before"])
    #expect(!again.recovery.hasDamage)
    #expect(try await again.enqueue(4).sequence == 4)
  }

  @Test func `a full disk changes nothing`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open()
    try await queue.enqueue(1, id: "a")
    bench.disk.capacity = 250
    let long = StoreKey(String(repeating: "x", count: 300))
    let error = await expectStoreError(.full) { try await queue.enqueue(2, id: long) }
    #expect(error?.outcome == .nothingChanged)
    bench.disk.capacity = nil
    #expect(try await queue.enqueue(3, id: "b").isDuplicate == false)
    bench.disk.losePower()
    let again = try await bench.open()
    #expect(again.recovery == RecoveryReport())
    #expect(try await again.keys(in: .all, limit: 9) == ["a", "b"])
  }

  @Test func `a folder without its segments is an empty queue`() async throws {
    let bench = QueueBench()
    try bench.disk.createDirectory(at: "/queue")
    try bench.disk.place([1, 2, 3], at: "/queue/damaged-1-5a")
    let queue = try await bench.open()
    #expect(try await queue.count() == 0)
    #expect(bench.disk.content(at: "/queue/damaged-1-5a") == [1, 2, 3])
  }

  @Test func `items delivered too often are not peeked`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open(QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1)))
    try await queue.enqueue([QueueInput(1), QueueInput(2)])
    _ = try await queue.receive(lease: .seconds(5))
    bench.clock.advance(by: .seconds(5))
    #expect(try await queue.peek()?.value == 2)
    #expect(try await queue.receive(lease: .seconds(5))?.value == 2)
  }
}
