#if HTTPCache && LMDB
import Foundation
import HTTPCachingRules
import Larder
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

/// The share of the bodies that are being stored, and what programs leave behind that are killed.
@Suite struct StorageShareTests {
  private let clock = ManualClock()
  private let store = ProbedStore()
  private let processes = TestProcesses()

  private func open(
    _ capacity: Int = 20_000_000, as table: ProcessTable
  ) async throws -> ResponseStorage<ProbedStore> {
    var options = smallOptions(clock, capacity: capacity, largestBody: 2_000_000)
    options.processes = table
    return try await ResponseStorage(store, options: options)
  }

  /// Begins to store bodies, of which most bytes arrive.
  ///
  /// - Returns: The writers of those for which there was room.
  private func begin(
    _ count: Int, _ storage: ResponseStorage<ProbedStore>, announces: Bool = true
  ) async throws -> [BodyWriter<ProbedStore>] {
    var writers: [BodyWriter<ProbedStore>] = []
    for number in 0..<count {
      let writer = try storage.makeWriter(expectedLength: announces ? 1_900_000 : nil)
      do {
        try await writer.append(TestBody.bytes(Int64(number), length: 1_500_000))
        writers.append(writer)
      } catch StorageRefusal.noRoom {
        try await writer.abandon()
      }
    }
    return writers
  }

  private func fill(_ count: Int, _ storage: ResponseStorage<ProbedStore>) async throws {
    for number in 0..<count { try await storage.fetch("https://a/\(number)", version: 1, length: 100_000) }
  }

  @Test func `unfinished bodies have a share of the capacity`() async throws {
    let storage = try await open(as: processes.start(1, at: 1))
    // A fifth of the capacity are two bodies of the announced length. The third one evicts nothing and is refused.
    try await fill(50, storage)
    let writers = try await begin(3, storage)
    #expect(writers.count == 2)
    #expect(try await storage.totals(for: .verify).unfinished == 3_800_000)
    #expect(storage.counters.evictions == 0)
    // Without an announced length, what is stored counts.
    try await writers[0].abandon()
    #expect(try await begin(2, storage, announces: false).count == 1)
    #expect(try await storage.totals(for: .verify).unfinished <= storage.options.unfinishedShare)
    try await storage.expectConsistent()
    for writer in writers { try await writer.abandon() }
  }

  @Test func `the share is freed with each body`() async throws {
    let storage = try await open(as: processes.start(1, at: 1))
    for number in 0..<10 {
      let writer = try storage.makeWriter(expectedLength: 1_900_000)
      try await writer.append(TestBody.bytes(1, length: 1_900_000))
      #expect(try await storage.totals(for: .verify).unfinished == 1_900_000)
      guard number < 5 else {
        try await writer.abandon()
        continue
      }
      try await finish(writer, length: 1_900_000, number, storage)
    }
    #expect(try await storage.totals(for: .verify).unfinished == 0)
    #expect(try await storage.usage().responses == 5)
    try await storage.expectConsistent()
  }

  @Test func `a body that is larger than a fifth is stored`() async throws {
    var options = smallOptions(clock, capacity: 4_000_000, largestBody: 1_990_000)
    options.processes = processes.start(1, at: 1)
    let storage = try await ResponseStorage(store, options: options)
    for number in 0..<3 { try await storage.fetch("https://a/\(number)", version: 1, length: 1_990_000) }
    #expect(try await storage.usage().responses == 1)
    #expect(storage.counters.evictions == 2)
    try await storage.expectConsistent()
  }

  @Test func `a body that is larger than half of the capacity is not stored`() async throws {
    let options = smallOptions(clock, capacity: 4_000_000, largestBody: 3_000_000)
    let storage = try await ResponseStorage(store, options: options)
    await #expect(throws: StorageRefusal.noRoom) { try await storage.fetch(version: 1, length: 2_100_000) }
    try await storage.expectConsistent()
  }

  @Test func `responses leave the share free`() async throws {
    let storage = try await open(as: processes.start(1, at: 1))
    try await fill(300, storage)
    let totals = try await storage.totals(for: .verify)
    #expect(storage.counters.evictions > 100)
    #expect(totals.lasting <= storage.lastingCapacity && totals.lasting > storage.lastingCapacity - 110_000)
    #expect(totals.bytes <= 20_000_000 && totals.bytes > 19_800_000, "retired bodies remain for readers")
    // Bodies that have all of the share.
    var writers: [BodyWriter<ProbedStore>] = []
    for _ in 0..<3 {
      let writer = try storage.makeWriter(expectedLength: 1_333_333)
      try await writer.append(TestBody.bytes(1, length: 1_333_333))
      writers.append(writer)
    }
    #expect(storage.counters.evictions == 300 - totals.responses)
    #expect(try await storage.usage().bytes <= 20_000_000)
    try await storage.expectConsistent()
    // Only a whole body evicts others.
    for (number, writer) in writers.enumerated() { try await finish(writer, length: 1_333_333, number, storage) }
    #expect(try await storage.totals(for: .verify).lasting <= storage.lastingCapacity)
    #expect(storage.counters.evictions > 300 - totals.responses)
    try await storage.expectConsistent()
  }

  private func finish(
    _ writer: BodyWriter<ProbedStore>, length: Int64, _ number: Int, _ storage: ResponseStorage<ProbedStore>
  ) async throws {
    var response = StoredResponse.sample("https://b/\(number)", version: 1)
    response.length = length
    let parts = [StoredPart(range: 0..<length, body: writer.body, bodyStart: 0)]
    try await storage.store(response, parts: parts, body: writer, token: try await storage.beginFetch())
  }

  // MARK: Crashes

  @Test func `a crash loop evicts nothing`() async throws {
    try await fill(100, try await open(as: processes.start(1, at: 1)))
    processes.end(1)
    for round in 2..<12 {
      clock.advance(by: .milliseconds(1_500))
      let storage = try await open(as: processes.start(UInt32(round), at: UInt64(round)))
      #expect(try await storage.usage().responses == 100, "round \(round)")
      #expect(try store.base.count(in: storage.layout.marks) == 0, "round \(round)")
      #expect(try store.base.count(in: storage.layout.retired) == 0, "round \(round)")
      #expect(try await begin(8, storage).count == 2, "round \(round)")
      try await storage.expectConsistent()
      #expect(storage.counters.evictions == 0, "round \(round)")
      processes.end(UInt32(round))
    }
  }

  @Test(arguments: [true, false]) func `a crash loop evicts nothing of a full cache`(isKnown: Bool) async throws {
    func open(_ round: Int) async throws -> ResponseStorage<ProbedStore> {
      let unknown = ProcessTable(own: nil) { _ in .unknown }
      return try await self.open(
        12_000_000, as: isKnown ? processes.start(UInt32(round), at: UInt64(round)) : unknown)
    }
    let first = try await open(1)
    try await fill(150, first)
    let before = try await first.usage().responses
    #expect(before > 80 && before < 150)
    // The share is 2.4 MB. An unknown process keeps it until its time ends.
    var begun = 0
    for round in 2..<14 {
      if isKnown { processes.end(UInt32(round - 1)) }
      clock.advance(by: .seconds(25))
      let storage = try await open(round)
      begun += try await begin(8, storage).count
      #expect(try await storage.usage().responses == before, "round \(round)")
      #expect(storage.counters.evictions == 0, "round \(round)")
      try await storage.expectConsistent()
    }
    #expect(begun == (isKnown ? 12 : 4))
  }

  /// A failed body of which a slow reader still needs what is stored.
  @Test func `bodies that are cut short evict nothing of a full cache`() async throws {
    let storage = try await open(12_000_000, as: processes.start(1, at: 1))
    try await fill(150, storage)
    let (before, evictions) = (try await storage.usage().responses, storage.counters.evictions)
    var kept: [BodyWriter<ProbedStore>] = []
    for _ in 0..<12 {
      let writers = try await begin(2, storage)
      for writer in writers { try await writer.abandon() }
      if kept.isEmpty { kept += writers }
    }
    #expect(kept.count == 1)
    #expect(try await storage.usage().responses == before)
    #expect(storage.counters.evictions == evictions)
    #expect(try await kept[0].bytes(from: 0, upTo: 1).count == 1)
    try await storage.expectConsistent()
    // As soon as it has read, there is room again.
    kept = []
    #expect(try await begin(1, storage).count == 1)
  }

  @Test func `a process of another place is alive until its time ends`() async throws {
    let foreign = try await open(as: processes.start(7, at: 1, place: 2))
    let unknown = try await open(as: ProcessTable(own: nil) { _ in .unknown })
    let writers = [try await begin(1, foreign), try await begin(1, unknown)]
    let storage = try await open(as: processes.start(1, at: 1))
    #expect(try await begin(1, storage).isEmpty, "the share is in use")
    let inspector = try await HTTPCacheInspector(store, configuration: .shared).usage()
    #expect(inspector.markCount == 2 && inspector.reservedBytes == 3_800_000)
    for writer in writers { try await writer[0].append(TestBody.bytes(2, length: 100_000)) }
    clock.advance(by: .seconds(61))
    #expect(try await begin(1, storage).count == 1)
    await #expect(throws: StorageRefusal.superseded) {
      try await writers[0][0].append(TestBody.bytes(2, length: 100_000))
    }
    try await storage.expectConsistent()
  }

  @Test func `a number that was given again is another process`() async throws {
    let dead = try await open(as: processes.start(7, at: 1))
    #expect(try await begin(2, dead).count == 2)
    let alive = try await open(as: processes.start(8, at: 1))
    _ = processes.start(7, at: 2)
    // The share is full, which makes it look for bodies of processes that have ended.
    let writers = try await begin(3, alive)
    #expect(writers.count == 2)
    // A living process keeps its bodies, however many others open the store.
    _ = try await open(as: processes.start(9, at: 3))
    for writer in writers { try await writer.append(TestBody.bytes(2, length: 100_000)) }
    try await alive.expectConsistent()
  }

  @Test(arguments: [1, 2] as [UInt8]) func `an earlier format is refused and left alone`(version: UInt8) async throws {
    let totals = [version] + [UInt8](repeating: 0, count: version == 1 ? 32 : 40)
    try await store.apply([.set("http/t", totals)])
    let error = await #expect(throws: StoreError.self) { try await open(as: processes.start(1, at: 1)) }
    #expect(error?.code == .versionMismatch)
    #expect(
      error?.message.contains("format version \(version)") == true && error?.message.contains("remove all") == true)
    #expect(try await store.value(forKey: "http/t") == totals)
  }

  // MARK: Killed processes

  #if os(Linux)
  fileprivate static func options() -> StorageOptions { StorageOptions(capacity: 20_000_000, largestBody: 2_000_000) }

  /// Stores a part of a body, and ends this process by `SIGKILL`.
  fileprivate static func die(_ path: String) async throws {
    let base = try await LMDBStore(path: path, codec: .raw, durability: .buffered)
    let writer = try await ResponseStorage(base, options: options()).makeWriter(expectedLength: 1_900_000)
    try await writer.append(TestBody.bytes(1, length: 1_500_000))
    kill(getpid(), SIGKILL)
  }

  @Test func `the bodies of a killed process are removed by its successor`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("cache")
    for _ in 0..<3 {
      await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
        try await StorageShareTests.die(path)
      }
    }
    // The store has the mark of the last one only, which no time has made old.
    let base = try await LMDBStore(path: path, codec: .raw, durability: .buffered)
    let inspector = try HTTPCacheInspector(base, configuration: .shared)
    let usage = try await inspector.usage()
    #expect(usage.markCount == 1 && usage.abandonedCount == 1 && usage.reservedBytes == 1_900_000)
    #expect(try await inspector.verify().report.findings == [])
    let storage = try await ResponseStorage(base, options: Self.options())
    #expect(try await storage.usage().bytes == 0)
    try await storage.expectConsistent(isSwept: true)
    try await base.close()
  }
  #endif
}
#endif
