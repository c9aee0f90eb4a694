import Foundation
import Larder
import LarderCBOR
import LarderFiles
import LarderTesting
import TestSupport
import Testing

@testable import LarderQueue

/// Damage costs few items, and is reported permanently.
@Suite struct QueueDamageTests {
  private static let configuration = QueueConfiguration(segmentSize: 4096)

  private static func open(_ bench: QueueBench) async throws -> QueueStore<Int> {
    try await bench.open(configuration)
  }

  private static func findings(_ queue: QueueStore<Int>) async throws -> Int {
    try await queue.verify().findings.count
  }

  /// The items were enqueued in one batch, or rewritten by compaction.
  @Test(arguments: [false, true]) func `a flipped bit costs one item`(isCompacted: Bool) async throws {
    let original = QueueBench()
    var queue = try await original.open()
    try await queue.enqueue((0..<40).map { QueueInput($0) })
    if isCompacted { try await queue.compact() }
    try await queue.close()
    var files: [String: [UInt8]] = [:]
    for name in try original.names where name.hasPrefix("segment") {
      files["/queue/\(name)"] = original.disk.content(at: "/queue/\(name)")
    }
    let (path, content) = try #require(files.max { $0.value.count < $1.value.count })
    let (_, length) = try SegmentHeader.read(content)
    for index in stride(from: length, to: content.count, by: 7) {
      var damaged = content
      damaged[index] ^= 4
      files[path] = damaged
      let bench = try QueueRecoveryTests.bench(files)
      queue = try await bench.open()
      #expect(try await queue.count() >= 39, "byte \(index)")
      #expect(queue.recovery.hasDamage || queue.recovery.tornBytes > 0)
      try await queue.close()
    }
  }

  /// After the damaged segment is removed, every verification still reports its damage.
  @Test func `damage is reported after its segment is removed`() async throws {
    let bench = QueueBench()
    var queue = try await QueueDamageTests.open(bench)
    for number in 0..<300 { try await queue.enqueue(number) }
    try await queue.close()
    var content = try #require(bench.disk.content(at: QueueRecoveryTests.first))
    content[1000] ^= 1
    try bench.disk.place(content, at: QueueRecoveryTests.first)
    queue = try await QueueDamageTests.open(bench)
    #expect(try await queue.count() == 299)
    let received = try await queue.receive(max: 999, lease: .seconds(5))
    #expect(try await queue.acknowledge(received.map(\.receipt)).isEmpty)
    for _ in 0..<2 {
      try await queue.enqueue(1)
      try await queue.compact()
      #expect(try await QueueDamageTests.findings(queue) == 1)
      try await queue.close()
      #expect(bench.disk.content(at: QueueRecoveryTests.first) == nil)
      queue = try await QueueDamageTests.open(bench)
      #expect(!queue.recovery.hasDamage)
    }
  }

  /// Damage that a verification finds is recorded, too, because the segment may be removed before the next opening.
  @Test func `verified damage is reported after its segment is removed`() async throws {
    let bench = QueueBench()
    var queue = try await QueueDamageTests.open(bench)
    for number in 0..<300 { try await queue.enqueue(number) }
    var content = try #require(bench.disk.content(at: QueueRecoveryTests.first))
    content[1000] ^= 1
    try bench.disk.place(content, at: QueueRecoveryTests.first)
    #expect(try await QueueDamageTests.findings(queue) > 0)
    try await queue.removeAll(in: .all)
    for _ in 0..<2 {
      try await queue.enqueue(1)
      try await queue.compact()
      #expect(try await QueueDamageTests.findings(queue) == 1)
      try await queue.close()
      #expect(bench.disk.content(at: QueueRecoveryTests.first) == nil)
      let note = try #require(try bench.names.first { $0.hasPrefix("damaged") })
      let kept = try #require(bench.disk.content(at: "/queue/\(note)"))
      #expect(kept.count > 20 && Data(content).range(of: Data(kept)) != nil)
      queue = try await QueueDamageTests.open(bench)
    }
    try await queue.close()
  }

  @Test(arguments: [true, false]) func `the newest segment is missing`(isClosed: Bool) async throws {
    let bench = QueueBench()
    var queue = try await QueueDamageTests.open(bench)
    for number in 0..<300 { try await queue.enqueue(number) }
    if isClosed { try await queue.close() } else { bench.disk.killProcess() }
    let segments = try bench.names.filter { $0.hasPrefix("segment") }
    #expect(segments.count > 2)
    try bench.disk.removeFile(at: "/queue/\(try #require(segments.last))")
    queue = try await QueueDamageTests.open(bench)
    #expect(queue.recovery.missingSegments == 1)
    #expect(try await QueueDamageTests.findings(queue) == 1)
    let left = try await queue.count()
    #expect(left < 300 && left > 100)
    // No number is reused, and no other segment is mistaken for the missing one.
    #expect(try await queue.enqueue(1).sequence > 300)
    #expect(try await QueueDamageTests.findings(queue) == 1)
    try await queue.close()
    queue = try await QueueDamageTests.open(bench)
    #expect(!queue.recovery.hasDamage)
    #expect(try await queue.count() == left + 1)
    #expect(try await QueueDamageTests.findings(queue) == 1)
  }

  /// Truncation of a closed queue by any number of bytes, even one.
  @Test func `a truncated end is reported`() async throws {
    let bench = QueueBench()
    var queue = try await bench.open()
    for number in 0..<20 { try await queue.enqueue(number) }
    try await queue.close()
    let content = try #require(bench.disk.content(at: QueueRecoveryTests.first))
    let (_, length) = try SegmentHeader.read(content)
    let end = try #require(try bench.names.first { $0.hasPrefix("end") })
    for count in (length + 20)..<content.count {
      let copy = try QueueRecoveryTests.bench([
        QueueRecoveryTests.first: Array(content[..<count]), "/queue/\(end)": [],
      ])
      queue = try await copy.open()
      #expect(queue.recovery.hasDamage, "\(count) bytes")
      #expect(try await queue.enqueue(99).sequence > 20)
      #expect(try await QueueDamageTests.findings(queue) > 0)
      try await queue.close()
      queue = try await copy.open()
      let last = try await queue.entries(in: .all, limit: 99, order: .descending).first
      #expect(last?.value == 99, "\(count) bytes, \(String(describing: last)), \(queue.recovery)")
    }
  }

  /// In one of 256 cases, the first byte of the next write equals the missing byte.
  @Test func `a truncated end is not completed by the next write`() async throws {
    let bench = QueueBench()
    var queue = try await bench.open()
    try await queue.enqueue(1)
    let content = try #require(bench.disk.content(at: QueueRecoveryTests.first))
    try await queue.close()
    let end = try #require(try bench.names.first { $0.hasPrefix("end") })
    // The last byte of a frame is the highest byte of a time, which is zero.
    #expect(content.last == 0)
    for number in 2..<(TestDepth.isShort ? 500 : 1500) {
      let copy = try QueueRecoveryTests.bench([
        QueueRecoveryTests.first: content.dropLast(), "/queue/\(end)": [],
      ])
      queue = try await copy.open()
      try await queue.enqueue(number)
      try await queue.close()
      queue = try await copy.open()
      #expect(try await queue.peek(max: 9).map(\.value) == [number])
      try await queue.close()
    }
  }

  /// If the disk has no room for a segment after the damage, nothing is appended to the truncated end either.
  @Test func `a truncated end is not completed on a full disk`() async throws {
    let bench = QueueBench()
    var queue = try await bench.open()
    try await queue.enqueue(0)
    try await queue.enqueue(1)
    let content = try #require(bench.disk.content(at: QueueRecoveryTests.first))
    try await queue.close()
    let end = try #require(try bench.names.first { $0.hasPrefix("end") })
    let files = [QueueRecoveryTests.first: content.dropLast(), "/queue/\(end)": []]
    for number in 2..<4 {
      let copy = try QueueRecoveryTests.bench(files)
      // There is room for a frame, but not for a header and a frame.
      copy.disk.capacity = content.count + 100
      queue = try await copy.open()
      await expectStoreError(.full) { try await queue.enqueue(number) }
      await expectStoreError(.full) { try await queue.receive(lease: .seconds(5)) }
      try await queue.close()
      #expect(copy.disk.content(at: QueueRecoveryTests.first) == Array(content.dropLast()))
      copy.disk.capacity = nil
      queue = try await copy.open()
      try await queue.enqueue(number)
      try await queue.close()
      queue = try await copy.open()
      #expect(try await queue.peek(max: 9).map(\.value) == [0, number])
      try await queue.close()
    }
  }

  /// A failed backup leaves no files, and can be repeated.
  @Test func `a failed backup can be repeated`() async throws {
    for operation in 1... {
      let bench = QueueBench(seed: UInt64(operation))
      let queue = try await QueueDamageTests.open(bench)
      for part in 0..<4 { try await queue.enqueue((0..<70).map { QueueInput(part * 70 + $0) }) }
      let due = bench.disk.operationCount + operation
      bench.disk.schedule(.error(28), atOperation: due)
      do {
        try await queue.backup(to: "/copy", compacting: false)
        if bench.disk.operationCount < due { break }
      } catch let error as StoreError {
        #expect(error.code == .full)
        guard error.outcome == .nothingChanged else { continue }
        #expect(try bench.disk.contentsOfDirectory(at: "/") == ["queue"], "at operation \(operation)")
        try await queue.backup(to: "/copy", compacting: false)
      }
      let copy = try await QueueStore<Int>(path: "/copy", codec: .cbor(), fileSystem: bench.disk)
      #expect(!copy.recovery.hasDamage)
      #expect(try await copy.count() == 280)
      try await copy.close()
      try await queue.close()
    }
  }

  /// Impossible sequence numbers in a damaged file do not hide later items.
  @Test func `impossible sequence numbers`() async throws {
    for sequence in [QueueRecord.greatestSequence - 1, QueueRecord.greatestSequence, .max >> 1, .max] {
      let bench = QueueBench(seed: 1)
      var queue = try await bench.open()
      try await queue.enqueue(1, id: "a")
      try await queue.close()
      let content = try #require(bench.disk.content(at: QueueRecoveryTests.first))
      let (header, length) = try SegmentHeader.read(content)
      var frames = FrameBuffer()
      frames.reset(
        segment: 1, salt: header.salt, base: Int64(content.count), durable: Int64(content.count), firstNumber: 4)
      let item = QueueItem(sequence: sequence, key: "b", arrival: 0, hasCallersKey: true)
      _ = frames.append(ItemState(item: item), payload: [2])
      frames.finish()
      #expect(length < content.count)
      let crafted = try QueueRecoveryTests.bench([QueueRecoveryTests.first: content + frames.bytes])
      queue = try await crafted.open()
      var added: [StoreKey] = []
      for number in 0..<3 {
        do {
          added.append(try await queue.enqueue(number).key)
        } catch let error as StoreError {
          #expect(error.code == .full)
        }
      }
      let keys = try await queue.keys(in: .all, limit: 99)
      #expect(Set(keys).isSuperset(of: added + ["a"]))
      try await queue.close()
      queue = try await crafted.open()
      #expect(try await queue.keys(in: .all, limit: 99) == keys)
      try await queue.close()
    }
  }
}
