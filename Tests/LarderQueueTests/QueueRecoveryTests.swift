import Larder
import LarderCBOR
import LarderFiles
import LarderTesting
import TestSupport
import Testing

@testable import LarderQueue

/// Damaged, truncated and foreign files.
///
/// Their valid items are served, and every problem is reported.
@Suite struct QueueRecoveryTests {
  static let first = "/queue/segment-00000001"

  /// Returns the file of a queue of six items, the third of which is leased, after closing or without it.
  private static func file(isClosed: Bool = true) async throws -> [UInt8] {
    let bench = QueueBench(seed: 1)
    let queue = try await bench.open()
    for number in 0..<6 { try await queue.enqueue(100 + number, id: StoreKey("id:\(number)")) }
    let deliveries = try await queue.receive(max: 3, lease: .seconds(60))
    _ = try await queue.acknowledge([deliveries[0].receipt])
    try await queue.release(deliveries[1].receipt, after: .zero)
    if isClosed { try await queue.close() }
    return try #require(bench.disk.content(at: first))
  }

  private static let values: [StoreKey: Int] = Dictionary(
    uniqueKeysWithValues: (0..<6).map { (StoreKey("id:\($0)"), 100 + $0) })

  static func bench(_ files: [String: [UInt8]]) throws -> QueueBench {
    let bench = QueueBench(seed: 1)
    try bench.disk.createDirectory(at: "/queue")
    try bench.disk.synchronizeDirectory(at: "/")
    for (path, content) in files { try bench.disk.place(content, at: path) }
    return bench
  }

  /// Opens a queue with a file that may be damaged, and checks its items.
  ///
  /// - Returns: Its keys and its report, or `nil` if opening failed.
  private static func open(_ content: [UInt8]) async throws -> (keys: [StoreKey], report: RecoveryReport)? {
    let bench = try bench([first: content])
    let queue: QueueStore<Int>
    do {
      queue = try await bench.open()
    } catch let error as StoreError {
      #expect([.corrupted, .unrecognizedFormat, .versionMismatch].contains(error.code), "\(error)")
      #expect(bench.disk.content(at: first) == content)
      return nil
    }
    let entries = try await queue.entries(in: .all, limit: .max)
    for entry in entries { #expect(values[entry.key] == entry.value) }
    // The queue stays usable.
    try await queue.enqueue(7)
    let received = try await queue.receive(max: 99, lease: .seconds(5))
    #expect(received.last?.value == 7)
    try await queue.close()
    let again = try await bench.open()
    #expect(try await again.count() == entries.count + 1)
    return (entries.map(\.key), queue.recovery)
  }

  @Test(arguments: [true, false]) func `every truncation`(isClosed: Bool) async throws {
    let content = try await QueueRecoveryTests.file(isClosed: isClosed)
    var refusals = 0
    for length in 0..<content.count {
      guard let opened = try await QueueRecoveryTests.open(Array(content[..<length])) else {
        refusals += 1
        continue
      }
      // The content is a prefix of the history.
      #expect(
        opened.keys == Array(QueueRecoveryTests.values.keys.sorted()[..<opened.keys.count]) || opened.keys.count == 5)
    }
    #expect(refusals == (try SegmentHeader.read(content)).length)
  }

  @Test func `every byte changed`() async throws {
    let content = try await QueueRecoveryTests.file()
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "bits")
    let header = try SegmentHeader.read(content).length
    for index in content.indices {
      var damaged = content
      damaged[index] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      guard let opened = try await QueueRecoveryTests.open(damaged) else {
        #expect(index < header, "LARDER_SEED=\(seed)")
        continue
      }
      #expect(opened.report.hasDamage || opened.report.tornBytes > 0, "LARDER_SEED=\(seed), byte \(index)")
    }
  }

  /// Returns the frames of a file as ranges of its bytes, without the first one, which lists older segments.
  static func frames(of content: [UInt8]) throws -> [Range<Int>] {
    let (header, length) = try SegmentHeader.read(content)
    var scanner = SegmentScanner(
      Int64(length)..<Int64(content.count), salt: header.salt
    ) { range in Array(content[Int(range.lowerBound)..<Int(range.upperBound)]) }
    var frames: [Range<Int>] = []
    while case .frame(let frame, let offset, _)? = try scanner.next() {
      frames.append(Int(offset)..<Int(offset) + QueueFrame.headLength + frame.bodyLength)
    }
    return Array(frames.dropFirst())
  }

  /// A record with a wrong checksum before valid ones.
  ///
  /// They are served, and it is saved aside.
  @Test func `a damaged frame is saved aside`() async throws {
    var content = try await QueueRecoveryTests.file()
    let frames = try QueueRecoveryTests.frames(of: content)
    #expect(frames.count == 10)
    let lost = Array(content[frames[3]])
    content[frames[3].lowerBound + 30] ^= 0xFF
    let bench = try QueueRecoveryTests.bench([QueueRecoveryTests.first: content])
    let queue = try await bench.open()
    #expect(queue.recovery == RecoveryReport(damagedPlaces: 1, damagedBytes: lost.count))
    #expect(try await queue.keys(in: .all, limit: 9) == ["id:1", "id:2", "id:4", "id:5"])
    let report = try await queue.verify()
    #expect(report.findings.count == 1)
    // It is saved when its segment is removed.
    try await queue.compact()
    let aside = try #require(bench.disk.content(at: "/queue/damaged-1-\(String(frames[3].lowerBound, radix: 16))"))
    #expect(aside == Array(content[frames[3]]))
    try await queue.close()
    let again = try await bench.open()
    #expect(!again.recovery.hasDamage)
    #expect(try await again.count() == 4)
    // From then on, the damage is reported.
    #expect(try await again.verify().findings.count == 1)
  }

  /// A frame with a valid checksum but invalid records.
  @Test func `a scrambled frame is saved aside`() async throws {
    let content = try await QueueRecoveryTests.file()
    let (header, _) = try SegmentHeader.read(content)
    let frames = try QueueRecoveryTests.frames(of: content)
    var scrambled = Array(content[..<frames[3].lowerBound])
    QueueFrame.begin(in: &scrambled)
    scrambled += [UInt8](repeating: 200, count: frames[3].count - QueueFrame.headLength)
    QueueFrame.end(in: &scrambled, at: frames[3].lowerBound, number: 5, durable: 0, salt: header.salt)
    let opened = try await QueueRecoveryTests.open(scrambled + content[frames[3].upperBound...])
    #expect(opened?.keys == ["id:1", "id:2", "id:4", "id:5"])
    #expect(opened?.report.damagedPlaces == 1)
  }

  /// The remains of records whose call had not returned before power loss: zeros, holes, and valid records after a
  /// hole.
  @Test func `a torn end is skipped`() async throws {
    let content = try await QueueRecoveryTests.file(isClosed: false)
    let frames = try QueueRecoveryTests.frames(of: content)
    #expect(frames.count == 9)
    let zeros = [UInt8](repeating: 0, count: 700)
    #expect(try await QueueRecoveryTests.open(content + zeros)?.report == RecoveryReport(tornBytes: 700))
    #expect(
      try await QueueRecoveryTests.open(content + content[frames[8]])?.report
        == RecoveryReport(tornBytes: frames[8].count))
    // Only the last frame may not be durable. Anything after a hole in it never happened.
    let (header, _) = try SegmentHeader.read(content)
    var behind: [UInt8] = []
    QueueFrame.begin(in: &behind)
    QueueRecord.remove(5...5).append(to: &behind)
    QueueFrame.end(
      in: &behind, at: 0, number: 11, durable: Int64(frames[8].lowerBound), salt: header.salt)
    var holed = content
    holed[frames[8].lowerBound + 18] ^= 1
    let opened = try await QueueRecoveryTests.open(holed + behind)
    #expect(opened?.keys == ["id:1", "id:2", "id:3", "id:4", "id:5"])
    #expect(opened?.report == RecoveryReport(tornBytes: frames[8].count + behind.count))
    // The same hole is damage if it precedes a frame that states that everything before it was durable.
    QueueFrame.end(in: &behind, at: 0, number: 11, durable: Int64(frames[8].upperBound), salt: header.salt)
    #expect(
      try await QueueRecoveryTests.open(holed + behind)?.report
        == RecoveryReport(damagedPlaces: 1, damagedBytes: frames[8].count))
  }

  @Test func `folders of other programs`() async throws {
    let other = try QueueRecoveryTests.bench(["/queue/data.mdb": [1, 2, 3]])
    await expectStoreError(.unrecognizedFormat) { try await other.open() }
    #expect(try other.names == ["data.mdb"])
    let file = QueueBench(seed: 1)
    try file.disk.place([1, 2, 3], at: "/queue")
    await expectStoreError(.unrecognizedFormat) { try await file.open() }
    let foreign = try QueueRecoveryTests.bench([QueueRecoveryTests.first: Array("something else".utf8)])
    await expectStoreError(.unrecognizedFormat) { try await foreign.open() }
    var newer = try await QueueRecoveryTests.file()
    newer[8] = 3
    let newest = try QueueRecoveryTests.bench([QueueRecoveryTests.first: newer])
    await expectStoreError(.versionMismatch) { try await newest.open() }
    #expect(newest.disk.content(at: QueueRecoveryTests.first) == newer)
    let renamed = try QueueRecoveryTests.bench(["/queue/segment-00000002": try await QueueRecoveryTests.file()])
    await expectStoreError(.corrupted) { try await renamed.open() }
    let json = try QueueRecoveryTests.bench([QueueRecoveryTests.first: try await QueueRecoveryTests.file()])
    await expectStoreError(.versionMismatch) { try await json.open(codec: .json()) }
  }

  /// Returns the files of a closed queue with several segments.
  private static func segments() async throws -> (QueueBench, [UInt32]) {
    let bench = QueueBench(seed: 1)
    let queue = try await bench.open(QueueConfiguration(segmentSize: 4096))
    for number in 0..<200 { try await queue.enqueue(number, id: StoreKey("id:\(number)")) }
    try await queue.close()
    let numbers = try bench.names.compactMap { $0.hasPrefix("segment-") ? UInt32($0.dropFirst(8), radix: 16) : nil }
    #expect(numbers.count > 2)
    return (bench, numbers)
  }

  @Test func `a missing segment is reported`() async throws {
    let (bench, _) = try await QueueRecoveryTests.segments()
    try bench.disk.removeFile(at: "/queue/segment-00000002")
    let queue = try await bench.open()
    #expect(queue.recovery == RecoveryReport(missingSegments: 1))
    let values = try await queue.entries(in: .all, limit: .max).map(\.value)
    #expect(values.count < 200 && values.contains(0) && values.contains(199))
    #expect(try await queue.receive(max: 999, lease: .seconds(5)).map(\.value) == values.sorted())
  }

  /// Another program has removed a segment that is still needed.
  ///
  /// Looking for it again would not help.
  @Test func `removing a segment in use is an error`() async throws {
    let (bench, _) = try await QueueRecoveryTests.segments()
    let queue = try await bench.open()
    try bench.disk.removeFile(at: "/queue/segment-00000002")
    await expectStoreError(.ioFailed) { try await queue.entries(in: .all, limit: .max) }
    #expect(try await queue.value(forKey: "id:199") == 199)
    let received = try await queue.receive(max: 999, lease: .seconds(5)).map(\.value)
    #expect(received.first == 0 && received.last == 199 && received.count < 200)
    #expect(try await queue.counts() == QueueCounts(delayed: 200 - received.count, leased: received.count))
    try await queue.close()
  }

  @Test func `a truncated segment is reported`() async throws {
    let (bench, _) = try await QueueRecoveryTests.segments()
    let content = try #require(bench.disk.content(at: "/queue/segment-00000002"))
    try bench.disk.place(Array(content.dropLast(500)), at: "/queue/segment-00000002")
    let queue = try await bench.open()
    #expect(queue.recovery.damagedBytes >= 500 && queue.recovery.hasDamage)
    #expect(try await queue.count() > 180)
  }

  @Test func `a segment of another queue is refused`() async throws {
    let (bench, _) = try await QueueRecoveryTests.segments()
    let (other, _) = try await QueueRecoveryTests.segments()
    let foreign = try #require(other.disk.content(at: "/queue/segment-00000002"))
    try bench.disk.place(foreign, at: "/queue/segment-00000002")
    await expectStoreError(.corrupted) { try await bench.open() }
  }

  /// A segment whose removal was not durable.
  ///
  /// Its items must not come back.
  @Test func `a segment that comes back is removed again`() async throws {
    let (bench, numbers) = try await QueueRecoveryTests.segments()
    let old = try #require(bench.disk.content(at: QueueRecoveryTests.first))
    var queue = try await bench.open(QueueConfiguration(segmentSize: 4096))
    let deliveries = try await queue.receive(max: 999, lease: .seconds(5))
    #expect(deliveries.map(\.value) == Array(0..<200))
    #expect(try await queue.acknowledge(deliveries.map(\.receipt)).isEmpty)
    try await queue.close()
    #expect(bench.disk.content(at: QueueRecoveryTests.first) == nil)
    try bench.disk.place(old, at: QueueRecoveryTests.first)
    queue = try await bench.open()
    #expect(try await queue.count() == 0)
    #expect(!queue.recovery.hasDamage)
    #expect(try await queue.enqueue(1).sequence == 201)
    #expect(bench.disk.content(at: QueueRecoveryTests.first) == nil)
    #expect(numbers.first == 1)
  }

  /// Frames that are missing without a trace.
  ///
  /// The records after them must not be taken for the next ones.
  @Test func `a gap in the numbers is damage`() throws {
    var content: [UInt8] = []
    for number: UInt64 in [1, 2, 5] {
      let start = content.count
      QueueFrame.begin(in: &content)
      QueueRecord.remove(number...number).append(to: &content)
      QueueFrame.end(in: &content, at: start, number: number, durable: 0, salt: 7)
    }
    var scanner = SegmentScanner(0..<Int64(content.count), salt: 7) { range in
      Array(content[Int(range.lowerBound)..<Int(range.upperBound)])
    }
    var found: [String] = []
    while let next = try scanner.next() {
      switch next {
      case .frame(let frame, _, _): found.append("frame \(frame.number)")
      case .damage(let range): found.append("damage \(range.count)")
      }
    }
    #expect(found == ["frame 1", "frame 2", "damage \(content.count / 3)"])
  }

  /// Bytes that look like the starts of long frames at every offset must not take forever.
  @Test func `fake frames do not slow the search`() throws {
    var head: [UInt8] = []
    head.append(littleEndian: UInt32(1))
    head.append(littleEndian: UInt32(2 << 20))
    head.append(littleEndian: UInt32(2))
    head.append(littleEndian: UInt32(0))
    let content = Array(repeatElement(head, count: 196_608).joined())
    var reads = 0
    var scanner = SegmentScanner(0..<Int64(content.count), salt: 7) { range throws(FileError) in
      reads += range.count
      if reads > 100 * content.count { throw FileError(.read, path: "", errorNumber: 5) }
      return Array(content[Int(range.lowerBound)..<Int(range.upperBound)])
    }
    guard case .damage(let range)? = try scanner.next() else {
      Issue.record("a valid frame was found")
      return
    }
    #expect(range == 0..<Int64(content.count))
    let end = try scanner.next()
    #expect(end == nil)
  }
}
