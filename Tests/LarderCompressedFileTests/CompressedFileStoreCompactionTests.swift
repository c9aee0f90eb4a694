#if Compression
import Foundation
import Larder
import LarderFiles
import LarderTesting
import TestSupport
import Testing

@testable import LarderCompressedFile

/// Operations during a compaction.
@Suite struct CompressedFileStoreCompactionTests {
  private typealias Store = CompressedFileStore<JSONText>

  /// Texts that hardly compress, so together they exceed a writer's buffer.
  private static let texts = (0..<30).map { number in
    var generator = SeededGenerator(seed: UInt64(number))
    return JSONText(string: Hexadecimal.text(of: (0..<2_500).map { _ in UInt8.random(in: 0...255, using: &generator) }))
  }

  private func open(_ path: String, in fileSystem: some StoreFileSystem) async throws -> Store {
    try await Store(path: path, codec: .jsonText, cacheSize: 0, fileSystem: fileSystem)
  }

  private func fill(_ store: Store) async throws {
    for (number, text) in Self.texts.enumerated() {
      try await store.setValue(text, forKey: StoreKey("key \(10 + number)"))
    }
  }

  /// Starts a compaction, runs a closure while it is held, and waits for its end.
  private func compact(
    _ store: Store, holding hold: Hold, at point: Hold.Point, meanwhile body: () async throws -> Void
  ) async throws {
    hold.begin(at: point)
    let compaction = Task {
      defer { hold.finish() }
      try await store.compact()
    }
    await hold.waitForArrival()
    do {
      try await body()
    } catch {
      hold.end()
      _ = await compaction.result
      throw error
    }
    hold.end()
    try await compaction.value
  }

  /// Changes a store during its compaction, and records the expected content.
  private func change(_ store: Store) async throws {
    try await store.setValue(JSONText("\"new\""), forKey: "key 10")
    try await store.removeValue(forKey: "key 11")
    try await store.apply([.removeAll("key 30"..<"key 35"), .set("key 32", JSONText("32"))])
    try await store.update("key 12") { $0 = try JSONText("12") }
    try await store.setValue(JSONText("50"), forKey: "key 50")
  }

  private func changed() throws -> [StoreKey: JSONText] {
    var state = Dictionary(uniqueKeysWithValues: Self.texts.enumerated().map { (StoreKey("key \(10 + $0)"), $1) })
    for number in [11, 30, 31, 33, 34] { state["key \(number)"] = nil }
    for (number, value) in [(10, "\"new\""), (12, "12"), (32, "32"), (50, "50")] {
      state["key \(number)"] = try JSONText(value)
    }
    return state
  }

  private func state(of store: Store) async throws -> [StoreKey: JSONText] {
    let entries = try await store.entries(in: .all, limit: .max, order: .ascending)
    return Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) })
  }

  @Test(arguments: Hold.Point.allCases) func `a compaction blocks no operation`(_ point: Hold.Point) async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("s.gz")
    let hold = Hold()
    var store = try await open(path, in: HeldFileSystem(base: POSIXFileSystem(), hold: hold))
    try await fill(store)
    try await compact(store, holding: hold, at: point) {
      #expect(try store.value(forKey: "key 20") == Self.texts[10])
      #expect(try await store.values(forKeys: ["key 39", "none"]) == [Self.texts[29], nil])
      #expect(try store.count(in: .all) == 30)
      try await change(store)
      #expect(try await state(of: store) == changed())
      try await store.synchronize()
      #expect(try await store.storeStatistics().entryCount == 26)
      #expect(try await store.verify().findings.isEmpty)
      let command = "zcat \"$1\" | jq -nr '[inputs | .set // .remove // empty] | last'"
      #expect(try CommandRun(["sh", "-c", command, "sh", path]).output == "key 50\n")
      await expectStoreError(.locked) { _ = try await open(path, in: POSIXFileSystem()) }
    }
    #expect(!hold.hasTimedOut, "an operation waited for the compaction")
    for step in 0..<2 {
      #expect(try await state(of: store) == changed())
      #expect(try await store.verify().findings.isEmpty)
      try await store.close()
      if step == 0 { store = try await open(path, in: POSIXFileSystem()) }
    }
    #expect(try CommandRun(["gzip", "-t", path]).status == 0)
    #expect(try folder.names == ["s.gz", "s.gz.lock"])
  }

  /// Power loss and failures at every remaining operation of a compaction during which the store was changed, or at
  /// every third one in a short run.
  @Test(arguments: [SimulatedFault.powerLoss, .error(EIO), .error(ENOSPC), .errorAfterwards(EIO), .shortTransfer])
  func `a failed compaction loses no durable write`(_ fault: SimulatedFault) async throws {
    var hasPassed = false
    let distance = TestDepth.isShort ? 6 : 1
    for number in stride(from: 1 + TestDepth.start(distance: distance, of: "\(fault)"), to: 60, by: distance)
    where !hasPassed {
      let disk = SimulatedFileSystem(seed: SeededGenerator.seedOfProcess &+ UInt64(number))
      let context: Comment = "\(SeededGenerator.seedVariable)=\(SeededGenerator.seedOfProcess), operation \(number)"
      let hold = Hold()
      let store = try await open("/s.gz", in: HeldFileSystem(base: disk, hold: hold))
      try await fill(store)
      var last = 0
      do {
        try await compact(store, holding: hold, at: .writing) {
          try await change(store)
          last = disk.operationCount + number
          disk.schedule(fault, atOperation: last)
        }
        hasPassed = disk.operationCount < last
      } catch is StoreError {}
      if disk.hasPower {
        disk.clearFaults()
        #expect(try await state(of: store) == changed(), context)
        // The store continues with the old file or the new one.
        try await store.setValue(JSONText("51"), forKey: "key 51")
        try await store.removeValue(forKey: "key 51")
        disk.losePower()
      }
      disk.restart()
      let again = try await open("/s.gz", in: disk)
      #expect(try await state(of: again) == changed(), context)
      #expect(try await again.verify().findings.isEmpty, context)
      try await again.compact()
      try await again.close()
      #expect(try disk.contentsOfDirectory(at: "/").sorted() == ["s.gz", "s.gz.lock"], context)
    }
    #expect(hasPassed, "there are more operations than faults")
  }

  @Test func `closing waits for a compaction`() async throws {
    let disk = SimulatedFileSystem(seed: 1)
    let hold = Hold()
    let store = try await open("/s.gz", in: HeldFileSystem(base: disk, hold: hold))
    try await fill(store)
    var closing: Task<Void, any Error>?
    try await compact(store, holding: hold, at: .writing) {
      try await change(store)
      closing = Task { try await store.close() }
      var isClosing = false
      while !isClosing {
        do { _ = try store.count(in: .all) } catch is StoreError { isClosing = true }
        await Task.yield()
      }
      // It cannot be closed yet, because closing would have written to the file.
      #expect(disk.content(at: "/s.gz")?.suffix(28) != BlockFrame.endOfFileMarker[...])
    }
    try await closing?.value
    let again = try await open("/s.gz", in: disk)
    #expect(try await state(of: again) == changed())
    let details = try await again.storeStatistics().details
    #expect(details.first { $0.name == "uncompactedBytes" }?.value ?? .max < 2_000)
  }

  @Test func `releasing the store cancels a compaction`() async throws {
    let disk = SimulatedFileSystem(seed: 1)
    let hold = Hold()
    var store: Store? = try await open("/s.gz", in: HeldFileSystem(base: disk, hold: hold))
    try await fill(#require(store))
    let before = disk.content(at: "/s.gz")
    let writer = try #require(store).writer
    hold.begin(at: .writing)
    let compaction = Task {
      defer { hold.finish() }
      try await writer.compact()
    }
    await hold.waitForArrival()
    store = nil
    hold.end()
    await #expect(throws: CancellationError.self) { try await compaction.value }
    #expect(disk.content(at: "/s.gz") == before)
    #expect(try disk.contentsOfDirectory(at: "/").sorted() == ["s.gz", "s.gz.lock"])
  }

  /// The stores of one open file are a failed one, one that is released and one that compacts.
  @Test func `another store of the file does not stop its compaction`() async throws {
    let configuration = StoreFileConfiguration(
      name: "s.gz", path: "/s.gz", durability: .synced, createsIfMissing: true,
      fileSystem: SimulatedFileSystem(seed: 1))
    let file = try await UntypedCompressedFile(configuration, cacheSize: 0, newCodecName: "json")
    #expect { _ = try file.typed(codec: .raw) } throws: { ($0 as? StoreError)?.code == .versionMismatch }
    var other: Store? = try Store(file, codec: .jsonText)
    try await fill(#require(other))
    let store = try Store(file, codec: .jsonText)
    other = nil
    try await store.compact()
    let details = try await store.storeStatistics().details
    #expect(details.first { $0.name == "uncompactedBytes" }?.value == 0)
    try await store.close()
  }

  // MARK: Scheduling

  /// Opens the file alone, without the store's compaction.
  private func file(on disk: SimulatedFileSystem) throws -> CompressedFile {
    let configuration = StoreFileConfiguration(
      name: "s.gz", path: "/s.gz", durability: .buffered, createsIfMissing: true, fileSystem: disk)
    let contents = SharedContent(CompressedFileContent())
    return try CompressedFile.open(configuration, contents: contents, cacheSize: 0, newCodecName: "json")
  }

  /// Appends to a file until a compaction is due, and returns the number of bytes that this took.
  private func appendUntilCompactionIsDue(to file: inout CompressedFile) throws -> Int64 {
    let start = file.layout.end
    var number = Int(start)
    while !file.isCompactionDue {
      try file.append(
        [.set(StoreKey("key \(number)"), Self.texts[number % 30].bytes[...])], codec: ("json", .json), during: .apply)
      number += 1
    }
    return file.layout.end - start
  }

  @Test func `a compaction is due once the file has doubled`() throws {
    var file = try file(on: SimulatedFileSystem(seed: 1))
    #expect(try 1 << 20..<1 << 20 + 6_000 ~= appendUntilCompactionIsDue(to: &file))
    for _ in 0..<4 {
      var compaction = try #require(try file.beginCompaction())
      #expect(!file.isCompactionDue, "a compaction is running")
      try compaction.writeBase(during: .compact)
      try file.finishCompaction(&compaction)
      let size = file.layout.end
      let appended = try appendUntilCompactionIsDue(to: &file)
      #expect(max(1 << 20, size) - 500..<max(1 << 20, size) + 6_000 ~= appended, "\(size), \(appended)")
    }
    #expect(file.layout.end > 6 << 20)
  }

  @Test(.timeLimit(.minutes(5))) func `an update without changes starts no compaction`() async throws {
    let disk = SimulatedFileSystem(seed: 1)
    var file = try file(on: disk)
    _ = try appendUntilCompactionIsDue(to: &file)
    try file.close()
    let store = try await open("/s.gz", in: disk)
    let before = disk.content(at: "/s.gz")
    try await store.update("none") { #expect($0 == nil) }
    #expect(await store.writer.file.isCompactionDue)
    #expect(await store.writer.file.compaction == nil)
    #expect(disk.content(at: "/s.gz") == before)
    try await store.setValue(JSONText("1"), forKey: "a")
    await yieldUntil { await !store.writer.file.isCompactionDue }
    try await store.close()
  }

  @Test func `a failed compaction is due again after twice as many bytes`() throws {
    var file = try file(on: SimulatedFileSystem(seed: 1))
    var size = try appendUntilCompactionIsDue(to: &file)
    for _ in 0..<2 {
      file.postponeCompaction()
      #expect(!file.isCompactionDue)
      size += try appendUntilCompactionIsDue(to: &file)
    }
    #expect(4 << 20..<4 << 20 + 40_000 ~= size, "\(size)")
    file.layout.changeSize += 1 << 40
    #expect(file.isCompactionDue)
    file.postponeCompaction()
    #expect(!file.isCompactionDue)
    file.layout.changeSize += 2 << 40
    #expect(file.isCompactionDue)
  }
}
#endif
