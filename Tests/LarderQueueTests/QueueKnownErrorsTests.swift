import Larder
import LarderFiles
import LarderTesting
import TestSupport
import Testing

@testable import LarderQueue

/// Known errors of other on-disk queues, case by case.
@Suite(.timeLimit(.minutes(60))) struct QueueKnownErrorsTests {
  /// Returns the file of a queue of six items with the values of their positions.
  ///
  /// The first `count` items are acknowledged.
  private static func file(acknowledging count: Int = 2, isClosed: Bool = true) async throws -> [UInt8] {
    let bench = QueueBench(seed: 1)
    let queue = try await bench.open()
    for number in 1...6 { try await queue.enqueue(number) }
    if count > 0 {
      for delivery in try await queue.receive(max: count, lease: .seconds(5)) {
        try await queue.acknowledge(delivery.receipt)
      }
    }
    if isClosed { try await queue.close() }
    return try #require(bench.disk.content(at: QueueRecoveryTests.first))
  }

  /// Opens a file, and returns its content.
  ///
  /// Also checks that the queue stays usable and loses nothing more.
  private static func open(_ content: [UInt8]) async throws -> (values: [Int], report: RecoveryReport, next: UInt128) {
    let bench = try QueueRecoveryTests.bench([QueueRecoveryTests.first: content])
    var queue = try await bench.open()
    let found = try await queue.entries(in: .all, limit: 99).map(\.value)
    let report = queue.recovery
    #expect(try await queue.counts() == QueueCounts(waiting: found.count))
    let next = try await queue.enqueue(99).sequence
    bench.disk.losePower()
    queue = try await bench.open()
    let received = try await queue.receive(max: 99, lease: .seconds(5))
    #expect(received.map(\.value) == found + [99])
    #expect(try await queue.acknowledge(received.map(\.receipt)).isEmpty)
    #expect(try await queue.counts() == QueueCounts())
    try await queue.close()
    return (found, report, next)
  }

  @Test func `a length of zero`() async throws {
    var content = try await QueueKnownErrorsTests.file()
    let frame = try QueueRecoveryTests.frames(of: content)[3]
    content.replaceSubrange(frame.lowerBound + 4..<frame.lowerBound + 8, with: [0, 0, 0, 0])
    let opened = try await QueueKnownErrorsTests.open(content)
    #expect(opened.values == [3, 5, 6])
    #expect(opened.report == RecoveryReport(damagedPlaces: 1, damagedBytes: frame.count))
  }

  /// The length is that of the greatest frame.
  ///
  /// No memory beyond the file's size may be allocated for it.
  @Test(arguments: [[0xFF, 0xFF, 0xFF, 0x3F], [0xFF, 0xFF, 0xFF, 0xFF], [0, 0x10, 0, 0]] as [[UInt8]])
  func `a length that is too large`(_ length: [UInt8]) async throws {
    var content = try await QueueKnownErrorsTests.file()
    let frame = try QueueRecoveryTests.frames(of: content)[3]
    content.replaceSubrange(frame.lowerBound + 4..<frame.lowerBound + 8, with: length)
    let opened = try await QueueKnownErrorsTests.open(content)
    #expect(opened.values == [3, 5, 6])
    #expect(opened.report == RecoveryReport(damagedPlaces: 1, damagedBytes: frame.count))
  }

  @Test func `the first record is damaged`() async throws {
    var content = try await QueueKnownErrorsTests.file(acknowledging: 0)
    let frame = try QueueRecoveryTests.frames(of: content)[0]
    content[frame.upperBound - 1] ^= 1
    let opened = try await QueueKnownErrorsTests.open(content)
    #expect(opened.values == [2, 3, 4, 5, 6])
    #expect(opened.report == RecoveryReport(damagedPlaces: 1, damagedBytes: frame.count))
  }

  /// No acknowledged item comes back, and no other item is lost.
  @Test func `the record of an acknowledged item is damaged`() async throws {
    var content = try await QueueKnownErrorsTests.file()
    let frame = try QueueRecoveryTests.frames(of: content)[0]
    content[frame.lowerBound + 40] ^= 1
    let opened = try await QueueKnownErrorsTests.open(content)
    #expect(opened.values == [3, 4, 5, 6])
    #expect(opened.report == RecoveryReport(damagedPlaces: 1, damagedBytes: frame.count))
  }

  /// Damage to an acknowledgement restores its item and is reported.
  @Test func `an acknowledgement is damaged`() async throws {
    var content = try await QueueKnownErrorsTests.file(acknowledging: 6)
    let frames = try QueueRecoveryTests.frames(of: content)
    // Six items, one delivery, six acknowledgements, and the mark of closing.
    #expect(frames.count == 14)
    content[frames[12].upperBound - 1] ^= 1
    let opened = try await QueueKnownErrorsTests.openLater(content)
    #expect(opened.values == [6] && opened.report.damagedPlaces == 1)
  }

  /// The record that freed a key is lost.
  ///
  /// The later of the key's two items is then served, once.
  @Test func `a removal is damaged`() async throws {
    let bench = QueueBench(seed: 1)
    let queue = try await bench.open()
    try await queue.enqueue(1, id: "key")
    try await queue.removeValue(forKey: "key")
    try await queue.enqueue(2, id: "key")
    try await queue.close()
    var content = try #require(bench.disk.content(at: QueueRecoveryTests.first))
    let frames = try QueueRecoveryTests.frames(of: content)
    content[frames[1].upperBound - 1] ^= 1
    let opened = try await QueueKnownErrorsTests.open(content)
    #expect(opened.values == [2])
    #expect(opened.report == RecoveryReport(damagedPlaces: 1, damagedBytes: frames[1].count))
  }

  /// Opens a file as ``open(_:)`` does, but after the leases have ended.
  private static func openLater(_ content: [UInt8]) async throws -> (values: [Int], report: RecoveryReport) {
    let bench = try QueueRecoveryTests.bench([QueueRecoveryTests.first: content])
    bench.clock.advance(by: .seconds(60))
    let queue = try await bench.open()
    return (try await queue.receive(max: 99, lease: .seconds(5)).map(\.value), queue.recovery)
  }

  /// Damage to the last record of a closed queue.
  ///
  /// Its sequence number is not reused.
  @Test func `the last record is damaged`() async throws {
    var content = try await QueueKnownErrorsTests.file(acknowledging: 0)
    let frames = try QueueRecoveryTests.frames(of: content)
    #expect(frames.count == 7)
    content[frames[5].upperBound - 1] ^= 1
    let opened = try await QueueKnownErrorsTests.open(content)
    #expect(opened.values == [1, 2, 3, 4, 5])
    #expect(opened.report == RecoveryReport(damagedPlaces: 1, damagedBytes: frames[5].count))
    #expect(opened.next > 6)
  }

  /// The last record of a queue that was not closed, which is the same as one whose call had not returned.
  @Test func `the last record is incomplete`() async throws {
    let content = try await QueueKnownErrorsTests.file(acknowledging: 0, isClosed: false)
    let frames = try QueueRecoveryTests.frames(of: content)
    #expect(frames.count == 6)
    for length in frames[5] {
      let opened = try await QueueKnownErrorsTests.open(Array(content[..<length]))
      #expect(opened.values == [1, 2, 3, 4, 5])
      #expect(opened.report == RecoveryReport(tornBytes: length - frames[5].lowerBound))
    }
    var flipped = content
    flipped[frames[5].lowerBound + 2] ^= 1
    let opened = try await QueueKnownErrorsTests.open(flipped)
    #expect(opened.values == [1, 2, 3, 4, 5])
    #expect(opened.report == RecoveryReport(tornBytes: frames[5].count))
  }

  /// A frame with a valid checksum but invalid records, at the end of a queue that was not closed.
  @Test func `the last record is scrambled`() async throws {
    var content = try await QueueKnownErrorsTests.file(acknowledging: 0, isClosed: false)
    let frames = try QueueRecoveryTests.frames(of: content)
    let (header, _) = try SegmentHeader.read(content)
    let start = content.count
    QueueFrame.begin(in: &content)
    content += [UInt8](repeating: 200, count: 50)
    QueueFrame.end(
      in: &content, at: start, number: 8, durable: Int64(frames[5].lowerBound), salt: header.salt)
    let opened = try await QueueKnownErrorsTests.open(content)
    #expect(opened.values == [1, 2, 3, 4, 5, 6])
    #expect(opened.report.damagedPlaces == 1)
  }

  /// A payload that is damaged while the queue is open becomes a dead letter, and the other items are delivered.
  @Test func `a payload damaged while the queue is open`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open()
    for number in 1...3 { try await queue.enqueue(number) }
    let content = try #require(bench.disk.content(at: QueueRecoveryTests.first))
    let frames = try QueueRecoveryTests.frames(of: content)
    let file = try bench.disk.open(QueueRecoveryTests.first, .readWrite)
    // The damaged payload is also a number, but not the one that was written.
    let place = frames[1].lowerBound + QueueFrame.headLength + QueueRecord.payloadOffset + 4
    var byte = content[place] ^ 1
    _ = try withUnsafeBytes(of: &byte) { bytes in try file.write(bytes, at: Int64(place)) }
    await expectStoreError(.corrupted) { try await queue.peek(max: 9) }
    // Rewriting does not make it valid.
    try await queue.compact()
    await expectStoreError(.corrupted) { try await queue.peek(max: 9) }
    var deliveries = queue.deliveries(lease: .seconds(5)).makeAsyncIterator()
    #expect(try await deliveries.next()?.get().value == 1)
    let second = try await deliveries.next()
    expectStoreError(.corrupted) { try second?.get() }
    #expect(try await deliveries.next()?.get().value == 3)
    try await queue.enqueue(4)
    #expect(try await deliveries.next()?.get().value == 4)
    #expect(try await queue.counts() == QueueCounts(leased: 3, dead: 1))
    #expect(try await queue.deadLetters().map(\.reason) == [.undecodable])
  }

  /// An item that the disk cannot read is retried later, and does not block others.
  @Test func `an unreadable item`() async throws {
    let bench = QueueBench()
    let queue = try await bench.open()
    try await queue.enqueue([QueueInput(1), QueueInput(2)])
    // After the four operations of the lease: one read of both items, and one of the first item alone.
    for operation in 5...6 { bench.disk.schedule(.error(5), atOperation: bench.disk.operationCount + operation) }
    #expect(try await queue.receive(max: 2, lease: .seconds(5)).map(\.value) == [2])
    #expect(try await queue.counts() == QueueCounts(delayed: 1, leased: 1))
    bench.clock.advance(by: .seconds(5))
    let again = try await queue.receive(max: 2, lease: .seconds(5))
    #expect(again.map(\.value) == [1, 2] && again.map(\.attempt) == [2, 2])
    // If there is no other item, the error is thrown.
    bench.clock.advance(by: .seconds(5))
    for operation in 5...7 { bench.disk.schedule(.error(5), atOperation: bench.disk.operationCount + operation) }
    await expectStoreError(.ioFailed) { try await queue.receive(max: 2, lease: .seconds(5)) }
  }

  @Test func `an empty file is refused`() async throws {
    let bench = try QueueRecoveryTests.bench([QueueRecoveryTests.first: []])
    await expectStoreError(.unrecognizedFormat) { try await bench.open() }
    let zeros = try QueueRecoveryTests.bench([QueueRecoveryTests.first: [UInt8](repeating: 0, count: 4096)])
    await expectStoreError(.unrecognizedFormat) { try await zeros.open() }
    #expect(zeros.disk.content(at: QueueRecoveryTests.first)?.count == 4096)
  }
}
