import Larder
import LarderCBOR
import LarderFiles
import LarderTesting
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

/// Readers that change nothing, files that are moved while they are open, file owners, and opening without a write.
@Suite struct QueueAccessTests {
  /// Fills a queue with three items: one is dead, one is leased and one waits.
  private static func fill(_ bench: QueueBench, isClosed: Bool) async throws {
    let queue = try await bench.open(QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1)))
    try await queue.enqueue([QueueInput(1, id: "dead"), QueueInput(2, id: "leased"), QueueInput(3, id: "waiting")])
    let deliveries = try await queue.receive(max: 2, lease: .seconds(60))
    try await queue.release(deliveries[0].receipt)
    if isClosed { try await queue.close() }
    bench.disk.killProcess()
  }

  private static func open(_ bench: QueueBench, _ disk: some StoreFileSystem, _ access: StoreAccess) async throws
    -> QueueStore<Int>
  {
    try await QueueStore<Int>(
      path: "/queue", codec: .cbor(), access: access, fileSystem: disk, environment: .manual(bench.clock))
  }

  @Test(arguments: [StoreAccess.readOnly, .immutable], [true, false])
  func `a reader changes no file`(_ access: StoreAccess, isClosed: Bool) async throws {
    let bench = QueueBench()
    try await QueueAccessTests.fill(bench, isClosed: isClosed)
    try bench.disk.place([1, 2], at: "/queue/segment-00000002.larder-tmp-0123456789abcdef")
    let before = try bench.names.map { bench.disk.content(at: "/queue/\($0)") }
    let disk = StubbornFileSystem(bench.disk, refusing: StubbornFileSystem.changes, errorNumber: EROFS)
    let queue = try await QueueAccessTests.open(bench, disk, access)
    #expect(queue.information.access == access)
    #expect(try await queue.entries(in: .all, limit: 9).map(\.value) == [2, 3])
    #expect(try await queue.peek(max: 9).map(\.value) == [3])
    #expect(try await queue.deadLetters().map(\.key) == ["dead"])
    #expect(try await queue.storeStatistics().entryCount == 2)
    #expect(try await queue.verify().findings.isEmpty)
    try await queue.synchronize()
    await expectStoreError(.notPermitted) { try await queue.enqueue(4) }
    await expectStoreError(.notPermitted) { try await queue.enqueue([QueueInput(4)]) }
    await expectStoreError(.notPermitted) { try await queue.receive(lease: .seconds(5)) }
    await expectStoreError(.notPermitted) { try await queue.withNext(lease: .seconds(5)) { _ in } }
    let receipt = try #require(DeliveryReceipt("1-1-1"))
    await expectStoreError(.notPermitted) { try await queue.acknowledge(receipt) }
    await expectStoreError(.notPermitted) { try await queue.release(receipt) }
    await expectStoreError(.notPermitted) { try await queue.extend(receipt, lease: .seconds(5)) }
    await expectStoreError(.notPermitted) { try await queue.requeue(["dead"]) }
    await expectStoreError(.notPermitted) { try await queue.purgeDeadLetters() }
    await expectStoreError(.notPermitted) { try await queue.setValue(1, forKey: "a") }
    await expectStoreError(.notPermitted) { try await queue.update("a") { $0 = 1 } }
    await expectStoreError(.notPermitted) { try await queue.compact() }
    try await queue.close()
    #expect(try bench.names.map { bench.disk.content(at: "/queue/\($0)") } == before)
  }

  @Test func `readers exclude writers and not each other`() async throws {
    let bench = QueueBench()
    try await QueueAccessTests.fill(bench, isClosed: true)
    let first = try await QueueAccessTests.open(bench, bench.disk, .readOnly)
    let second = try await QueueAccessTests.open(bench, bench.disk, .readOnly)
    await expectStoreError(.locked) { try await bench.open() }
    try await first.close()
    try await second.close()
    let writer = try await bench.open()
    await expectStoreError(.locked) { try await QueueAccessTests.open(bench, bench.disk, .readOnly) }
    let immutable = try await QueueAccessTests.open(bench, bench.disk, .immutable)
    try await immutable.close()
    try await writer.close()
  }

  @Test func `a reader creates nothing`() async throws {
    let bench = QueueBench()
    await expectStoreError(.notFound) { try await QueueAccessTests.open(bench, bench.disk, .readOnly) }
    #expect(try bench.disk.attributes(at: "/queue") == nil)
    try await QueueAccessTests.fill(bench, isClosed: true)
    try bench.disk.removeFile(at: "/queue/lock")
    let queue = try await QueueAccessTests.open(bench, bench.disk, .readOnly)
    try await queue.close()
    #expect(try !bench.names.contains("lock"))
  }

  /// After a file is moved away or replaced, nothing is written through the old handles.
  @Test(arguments: ["lock", "segment-00000001"], [true, false])
  func `nothing is written through a stale handle`(_ name: String, isReplaced: Bool) async throws {
    let bench = QueueBench()
    let queue = try await bench.open()
    try await queue.enqueue(1, id: "a")
    let path = "/queue/\(name)"
    let content = try #require(bench.disk.content(at: path))
    try bench.disk.rename(path, to: "/queue/moved")
    if isReplaced { try bench.disk.place(content, at: path) }
    let code: StoreError.Code = name == "lock" ? .locked : .conflict
    let moved = bench.disk.content(at: "/queue/moved")
    await expectStoreError(code) { try await queue.enqueue(2) }
    await expectStoreError(code) { try await queue.receive(lease: .seconds(5)) }
    await expectStoreError(code) { try await queue.compact() }
    #expect(try await queue.value(forKey: "a") == 1)
    await expectStoreError(code) { try await queue.close() }
    #expect(bench.disk.content(at: "/queue/moved") == moved)
    #expect(!isReplaced || bench.disk.content(at: path) == content)
  }

  /// A folder that has been replaced by another queue gets no data of the first queue.
  @Test func `nothing is written into the folder of another queue`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open(QueueConfiguration(segmentSize: 4096))
    try await queue.enqueue(1)
    try bench.disk.rename("/queue", to: "/old")
    let other = try await bench.open()
    try await other.enqueue(2)
    let content = try bench.names.map { bench.disk.content(at: "/queue/\($0)") }
    await expectStoreError(.locked) { try await queue.enqueue((0..<300).map { QueueInput($0) }) }
    await expectStoreError(.locked) { try await queue.close() }
    #expect(try bench.names.map { bench.disk.content(at: "/queue/\($0)") } == content)
  }

  /// The recovered items are served even if nothing can be written.
  ///
  /// The first write makes the recovery durable.
  @Test(arguments: [EROFS, ENOSPC, EDQUOT, EFBIG]) func `opening needs no write`(_ errorNumber: Int32) async throws {
    let bench = QueueBench()
    try await QueueAccessTests.fill(bench, isClosed: false)
    let disk = StubbornFileSystem(bench.disk, refusing: StubbornFileSystem.changes, errorNumber: errorNumber)
    let queue = try await QueueAccessTests.open(bench, disk, .readWrite)
    #expect(try await queue.entries(in: .all, limit: 9).map(\.value) == [2, 3])
    #expect(try await queue.deadLetters().count == 1)
    await expectStoreError(errorNumber == EROFS ? .notPermitted : .full) { try await queue.enqueue(4) }
    disk.isStubborn = false
    try await queue.enqueue(4, id: "x")
    bench.disk.losePower()
    let again = try await bench.open()
    #expect(!again.recovery.hasDamage)
    #expect(try await again.entries(in: .all, limit: 9).map(\.value) == [2, 3, 4])
  }

  /// Leases that end at opening stay ended, though this is written only with the first change or at closing.
  @Test func `voided leases are written later`() async throws {
    let bench = QueueBench()
    try await QueueAccessTests.fill(bench, isClosed: true)
    let before = bench.disk.content(at: "/queue/segment-00000001")
    let queue = try await bench.open(QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 9)), leases: .void)
    #expect(bench.disk.content(at: "/queue/segment-00000001") == before)
    #expect(try await queue.receive(max: 9, lease: .seconds(5)).map(\.value) == [2, 3])
    bench.disk.losePower()
    bench.clock.advance(by: .seconds(5))
    let again = try await bench.open(QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 9)))
    #expect(try await again.counts() == QueueCounts(waiting: 2, dead: 1))
  }

  /// When root writes to another user's queue, every file keeps its owner.
  @Test func `new segments keep owner and permissions`() async throws {
    let bench = QueueBench()
    let owner = FileAttributes.Owner(user: 12, group: 34)
    try bench.disk.createDirectory(at: "/queue")
    let made = try await bench.open(QueueConfiguration(segmentSize: 4096))
    try await made.enqueue(1)
    try await made.close()
    let path = "/queue/segment-00000001"
    let file = try bench.disk.open(path, .readWrite)
    try file.setOwner(owner)
    try file.setPermissions(0o640)
    let queue = try await bench.open(QueueConfiguration(segmentSize: 4096))
    for number in 0..<200 { try await queue.enqueue(number) }
    try await queue.close()
    let names = try bench.names.filter { $0.hasPrefix("segment-") }
    #expect(names.count > 1)
    for name in names {
      let attributes = try bench.disk.attributes(at: "/queue/\(name)")
      #expect(attributes?.owner == owner && attributes?.permissions == 0o640, "\(name)")
    }
  }

  @Test func `a foreign folder gets no lock`() async throws {
    let foreign = try QueueRecoveryTests.bench([QueueRecoveryTests.first: Array("something else".utf8)])
    await expectStoreError(.unrecognizedFormat) { try await foreign.open() }
    #expect(try foreign.names == ["segment-00000001"])
  }

  /// Writes that the system completes in parts, and one that fails because the disk is full.
  @Test func `short writes`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open()
    try await queue.enqueue(1)
    for operation in 1...6 { bench.disk.schedule(.shortTransfer, atOperation: bench.disk.operationCount + operation) }
    try await queue.enqueue(2)
    bench.disk.clearFaults()
    for errorNumber in [ENOSPC, EDQUOT, EFBIG] {
      // Two checks of the files, and the write.
      bench.disk.schedule(.error(errorNumber), atOperation: bench.disk.operationCount + 3)
      let error = await expectStoreError(.full) { try await queue.enqueue(3) }
      #expect(error?.outcome == .nothingChanged)
    }
    bench.disk.losePower()
    let again = try await bench.open()
    #expect(try await again.entries(in: .all, limit: 9).map(\.value) == [1, 2])
  }
}
