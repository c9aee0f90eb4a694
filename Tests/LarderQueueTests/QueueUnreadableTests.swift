import Foundation
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

/// An unreadable page (EIO) costs only its own content, and nothing is deleted because of it.
@Suite struct QueueUnreadableTests {
  private let bench = QueueBench()
  private let fileSystem: StubbornFileSystem

  init() {
    fileSystem = StubbornFileSystem(bench.disk, refusing: [])
  }

  private func open(_ fileSystem: StubbornFileSystem? = nil) async throws -> QueueStore<Int> {
    let (clock, fileSystem) = (bench.clock, fileSystem ?? self.fileSystem)
    return try await QueueStore(
      path: "/queue", codec: .cbor(), configuration: QueueConfiguration(segmentSize: 16_384), fileSystem: fileSystem,
      environment: .manual(clock))
  }

  private func findings(_ queue: QueueStore<Int>) async throws -> Int {
    try await queue.verify().findings.count
  }

  /// Receives and acknowledges all due items, and returns them.
  private func drain(_ queue: QueueStore<Int>) async throws -> [Int] {
    var values: [Int] = []
    while true {
      let deliveries = try await queue.receive(max: 100, lease: .seconds(60))
      guard !deliveries.isEmpty else { return values }
      values += deliveries.map(\.value)
      #expect(try await queue.acknowledge(deliveries.map(\.receipt)).isEmpty)
    }
  }

  /// A process that has too many open files can read nothing, but loses nothing.
  @Test func `too many open files`() async throws {
    let limited = StubbornFileSystem(
      bench.disk, refusing: [.open], errorNumber: EMFILE, atPathsWith: "/segment-")
    limited.isStubborn = false
    var queue = try await open(limited)
    try await queue.enqueue((0..<600).map { QueueInput($0) })
    try await queue.close()
    queue = try await open(limited)
    limited.isStubborn = true
    let error = await expectStoreError(.ioFailed) { try await queue.receive(max: 1, lease: .seconds(60)) }
    #expect(error?.operation == .receive && error?.isRetryable == true)
    limited.isStubborn = false
    #expect(try await drain(queue) == Array(0..<600))
    try await queue.close()
  }

  @Test(arguments: [true, false]) func `while opening`(isReadableLater: Bool) async throws {
    var queue = try await open()
    try await queue.enqueue((0..<600).map { QueueInput($0) })
    for number in 600..<800 { try await queue.enqueue(number) }
    try await queue.close()
    let content = try #require(bench.disk.content(at: QueueRecoveryTests.first))
    fileSystem.badBytes = [QueueRecoveryTests.first: 8192..<12_288]
    queue = try await open()
    #expect(queue.recovery.damagedPlaces == 1)
    let left = try await queue.count()
    #expect((690..<800).contains(left))
    #expect(try await findings(queue) == 1)
    let values = try await drain(queue)
    #expect(values.count == left && values == values.sorted())
    // The unreadable bytes may become readable later.
    if isReadableLater { fileSystem.badBytes = [:] }
    for _ in 0..<2 {
      try await queue.enqueue(1)
      try await queue.compact()
      #expect(bench.disk.content(at: QueueRecoveryTests.first) == nil)
      #expect(try await findings(queue) > 0)
      try await queue.close()
      queue = try await open()
    }
    try await queue.close()
    let kept = try bench.names.filter { $0.hasPrefix("damaged") }.compactMap {
      bench.disk.content(at: "/queue/\($0)")
    }
    // The whole segment, or the bytes that were read before its removal.
    #expect(kept.contains { $0.count >= 4096 && Data(content).range(of: Data($0)) != nil })
  }

  /// The owner is killed when the segment is not needed any more, but before it is renamed.
  @Test func `the next owner keeps the segment`() async throws {
    var queue = try await open()
    try await queue.enqueue((0..<600).map { QueueInput($0) })
    try await queue.close()
    let content = try #require(bench.disk.content(at: QueueRecoveryTests.first))
    fileSystem.badBytes = [QueueRecoveryTests.first: 8192..<12_288]
    queue = try await open()
    #expect(try await drain(queue).count < 600)
    try await queue.compact()
    try await queue.close()
    let other = try #require(try bench.names.first { bench.disk.content(at: "/queue/\($0)") == content })
    try bench.disk.rename("/queue/\(other)", to: QueueRecoveryTests.first)
    queue = try await open()
    try await queue.enqueue(1)
    try await queue.close()
    #expect(bench.disk.content(at: QueueRecoveryTests.first) == nil)
    #expect(bench.disk.content(at: "/queue/\(other)") == content)
  }

  /// An earlier owner has written the note and nothing more, or could not write it.
  @Test(arguments: [true, false]) func `the note was made by an earlier owner`(isMade: Bool) async throws {
    var queue = try await open()
    try await queue.enqueue((0..<600).map { QueueInput($0) })
    try await queue.close()
    let content = try #require(bench.disk.content(at: QueueRecoveryTests.first))
    let bad = [QueueRecoveryTests.first: 8192..<Int64(12_288)]
    let writesNoNotes = StubbornFileSystem(bench.disk, refusing: [.write], errorNumber: ENOSPC, atPathsWith: "damaged")
    writesNoNotes.badBytes = bad
    queue = try await open(writesNoNotes)
    #expect(try await drain(queue).count < 600)
    try await queue.compact()
    #expect(bench.disk.content(at: QueueRecoveryTests.first) == content)
    bench.disk.killProcess()
    if isMade {
      let offset = try #require(try offsetOfDamage(bad))
      try bench.disk.place([0], at: "/queue/damaged-1-\(String(offset, radix: 16))")
    }
    fileSystem.badBytes = bad
    queue = try await open()
    #expect(queue.recovery.damagedPlaces == 1)
    try await queue.enqueue(1)
    try await queue.compact()
    try await queue.close()
    #expect(bench.disk.content(at: QueueRecoveryTests.first) == nil)
    #expect(bench.disk.content(at: "/queue/damaged-1-0") == content)
  }

  /// Returns the offset of the damage that opening reports.
  private func offsetOfDamage(_ bad: [String: Range<Int64>]) throws -> Int64? {
    let folder = QueueFolder(
      name: "q", path: "/queue", durability: .synced, access: .readOnly, createsIfMissing: false, segmentSize: 16_384,
      fileSystem: StubbornFileSystem(bench.disk, refusing: []))
    (folder.fileSystem as? StubbornFileSystem)?.badBytes = bad
    let segment = try SegmentFile(1, in: folder, .read, during: .open)
    var scanner = segment.scanner(upTo: segment.size)
    while let found = try scanner.next() { if case .damage(let range) = found { return range.lowerBound } }
    return nil
  }

  @Test func `while reading`() async throws {
    let queue = try await open()
    try await queue.enqueue((0..<600).map { QueueInput($0, id: StoreKey("item \(1000 + $0)")) })
    try await queue.synchronize()
    fileSystem.badBytes = [QueueRecoveryTests.first: 8192..<12_288]
    let all = try await queue.keys(in: .all, limit: .max)
    var bad: Set<StoreKey> = []
    for key in all {
      do {
        _ = try await queue.value(forKey: key)
      } catch let error as StoreError {
        #expect(error.code == .ioFailed && error.key == key)
        bad.insert(key)
      }
    }
    #expect((1..<120).contains(bad.count))
    #expect(try await findings(queue) > 0)
    var values = try await drain(queue)
    #expect(values.count == 600 - bad.count)
    try await queue.compact()
    #expect(try await queue.keys(in: .all, limit: .max) == bad.sorted())
    #expect(try await queue.deadLetters().isEmpty)
    // The disk can read them later.
    fileSystem.badBytes = [:]
    bench.clock.advance(by: .seconds(61))
    values += try await drain(queue)
    #expect(Set(values) == Set(0..<600))
    try await queue.close()
  }
}
