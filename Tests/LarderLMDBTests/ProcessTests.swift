import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderLMDB

/// Several processes that have one environment open.
@Suite struct ProcessTests {
  /// A store as the processes here open it.
  private static func open(_ folder: String, initialMapSize: Int = 1 << 24) async throws -> LMDBStore<[UInt8]> {
    let environment = try await LMDBEnvironment(
      path: "\(folder)/environment", durability: .buffered, initialMapSize: initialMapSize)
    return try await LMDBStore(in: environment, codec: .raw)
  }

  /// Waits until a file is there; see ``wait(until:)``.
  private static func wait(for path: String) async throws {
    let isThere = try await wait { FileManager.default.fileExists(atPath: path) }
    #expect(isThere, "\(path) has not come")
  }

  /// Waits for another process to do something: five minutes at most, since a busy machine may let it wait for its turn.
  private static func wait(until condition: () throws -> Bool) async throws -> Bool {
    for _ in 0..<30_000 {
      if try condition() { return true }
      try await Task.sleep(for: .milliseconds(10))
    }
    return false
  }

  private static func tell(_ path: String) throws {
    try Data().write(to: URL(filePath: path))
  }

  /// Ends this process as `kill -9` does, without a word.
  private static func die() {
    kill(getpid(), SIGKILL)
  }

  private static func count(_ bytes: [UInt8]?) -> Int {
    bytes.map { $0.withUnsafeBytes { $0.loadUnaligned(as: Int.self) } } ?? 0
  }

  private static func bytes(_ count: Int) -> [UInt8] {
    withUnsafeBytes(of: count) { Array($0) }
  }

  @Test func countersThatTwoProcessesIncrementLoseNothing() async throws {
    let folder = try TemporaryFolder()
    let store = try await ProcessTests.open(folder.path)
    async let child: Void = {
      await #expect(processExitsWith: .success) { [path = folder.path as String] in
        let store = try await ProcessTests.open(path)
        for _ in 0..<150 {
          try await store.update(["own", "shared"]) { slots in
            slots = slots.map { ProcessTests.bytes(ProcessTests.count($0) + 1) }
          }
        }
        try await store.close()
      }
    }()
    // Together with the child, once it has begun.
    #expect(try await ProcessTests.wait { try store.count(in: .all) > 0 })
    for _ in 0..<150 {
      try await store.update("shared") { $0 = ProcessTests.bytes(ProcessTests.count($0) + 1) }
    }
    await child
    #expect(ProcessTests.count(try store.value(forKey: "own")) == 150)
    #expect(ProcessTests.count(try store.value(forKey: "shared")) == 300)
    try await store.close()
  }

  @Test func aProcessKilledWhileItWritesHarmsNobody() async throws {
    let folder = try TemporaryFolder()
    let store = try await ProcessTests.open(folder.path)
    try await store.setValue([1], forKey: "before")
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = folder.path as String] in
      let store = try await ProcessTests.open(path)
      #expect(try store.value(forKey: "before") == [1])
      try await store.setValue([2], forKey: "committed")
      let environment = try await LMDBEnvironment(path: "\(path)/environment", durability: .buffered)
      try await environment.write { transaction in
        // Large enough for pages to be written before the commit.
        for number in 0..<2000 {
          try transaction.setValue([UInt8](repeating: 3, count: 3000), forKey: "lost \(number)", in: store)
        }
        ProcessTests.die()
      }
    }
    // The lock was held when the process died.
    try await store.setValue([4], forKey: "after")
    #expect(try store.keys(in: .all, limit: 9, order: .ascending) == ["after", "before", "committed"])
    let report = try await #require(store.information.maintenance).verify()
    #expect(report.entryCount == 3 && report.findings.isEmpty)
    try await store.close()
  }

  @Test func afterManyReadsAtOnceOthersFindSlots() async throws {
    let folder = try TemporaryFolder()
    let store = try await ProcessTests.open(folder.path)
    try await store.setValue([1], forKey: "k")
    func nest(_ depth: Int) throws {
      guard depth > 0 else { return }
      try store.lease.read(for: .read) { _ in try nest(depth - 1) }
    }
    try nest(1000)
    let statistics = try await #require(store.information.maintenance).statistics()
    #expect(try #require(statistics.details.first { $0.name == "readers" }).value > 990)
    await #expect(processExitsWith: .success) { [path = folder.path as String] in
      let store = try await ProcessTests.open(path)
      func nest(_ depth: Int) throws {
        guard depth > 0 else { return #expect(try store.value(forKey: "k") == [1]) }
        try store.lease.read(for: .read) { _ in try nest(depth - 1) }
      }
      try nest(900)
      try await store.close()
    }
    try await store.close()
  }

  @Test func whatAnEarlierSessionLeftIsMadeDurable() async throws {
    let folder = try TemporaryFolder()
    for makesDurable in [0, 1] {
      await #expect(processExitsWith: .signal(SIGKILL)) { [path = folder.path as String] in
        try await ProcessTests.open(path).setValue([1], forKey: "k")
        ProcessTests.die()
      }
      let store = try await LMDBStore<[UInt8]>(path: folder.path("environment"), codec: .raw)
      let environment = store.lease.environment
      let latest = environment.lastTransaction
      #expect(await environment.writer.durableTransaction < latest)
      // An update that changes nothing acknowledges what it has seen.
      if makesDurable == 0 { try await store.synchronize() } else { try await store.update("k") { $0 = [1] } }
      #expect(environment.lastTransaction == latest)
      #expect(await environment.writer.durableTransaction == latest)
      try await store.setValue([2], forKey: "k")
      #expect(await environment.writer.durableTransaction == latest + 1)
      try await store.close()
    }
  }

  @Test func environmentsThatProcessesCreateAtOnceAreOne() async throws {
    for _ in 0..<3 {
      let folder = try TemporaryFolder()
      await withTaskGroup(of: Void.self) { group in
        for number in 0..<4 {
          group.addTask {
            await #expect(processExitsWith: .success) { [path = folder.path as String, number = number as Int] in
              let store = try await ProcessTests.open(path)
              try await store.setValue([1], forKey: "\(number)")
              try await store.close()
            }
          }
        }
      }
      let store = try await ProcessTests.open(folder.path)
      #expect(try store.count(in: .all) == 4)
      try await store.close()
    }
  }

  /// In another container a process may have the same number; LMDB tells processes apart by locks that have it.
  @Test(.enabled(if: ForeignTool.pythonObstacle == nil, "\(ForeignTool.pythonObstacle ?? "")"))
  func aProcessOfTheSameNumberIsNamed() async throws {
    let folder = try TemporaryFolder()
    try await ProcessTests.open(folder.path).close()
    let program = """
      import fcntl, os, sys, time
      lock = open(sys.argv[1] + "/environment/lock.mdb", "r+b")
      fcntl.lockf(lock, fcntl.LOCK_EX, 1, int(sys.argv[2]))
      open(sys.argv[1] + "/ready", "w").close()
      while not os.path.exists(sys.argv[1] + "/done"): time.sleep(0.01)
      """
    // On a thread of its own, which waits.
    let run = DispatchQueue(label: "another process")
    run.async { [path = folder.path as String] in
      #expect(throws: Never.self) { try CommandRun(["python3", "-c", program, path, "\(getpid())"]) }
    }
    try await ProcessTests.wait(for: folder.path("ready"))
    let error = await expectStoreError(.locked) { try await ProcessTests.open(folder.path) }
    #expect(error?.description.contains("PID namespace") == true)
    #expect(error?.isRetryable == true)
    try Data().write(to: URL(filePath: folder.path("done")))
    run.sync {}
    try await ProcessTests.open(folder.path).close()
  }

  @Test func theSlotOfAProcessKilledWhileItReadsIsCleared() async throws {
    let folder = try TemporaryFolder()
    let store = try await ProcessTests.open(folder.path)
    let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    let value = [UInt8](repeating: 1, count: 100_000)
    try await store.setValue(value, forKey: "k")
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = folder.path as String] in
      let store = try await ProcessTests.open(path)
      try store.lease.read(for: .read) { _ in ProcessTests.die() }
    }
    // Its snapshot keeps old pages in use, until its slot is cleared.
    for _ in 0..<20 { try await store.setValue(value, forKey: "k") }
    let pinned = try await environment.statistics().pageCount
    #expect(pinned > 15 * value.count / 4096)
    #expect(try await environment.clearStaleReaders() == 1)
    #expect(try await environment.clearStaleReaders() == 0)
    for _ in 0..<10 { try await store.setValue(value, forKey: "k") }
    #expect(try await environment.statistics().pageCount == pinned)
    try await environment.close()
    try await store.close()
  }

  @Test func staleSlotsAreClearedByOpeningAndByWriting() async throws {
    let folder = try TemporaryFolder()
    try await ProcessTests.open(folder.path).close()
    for isOpen in [false, true] {
      let store = isOpen ? try await ProcessTests.open(folder.path) : nil
      await #expect(processExitsWith: .signal(SIGKILL)) { [path = folder.path as String] in
        let store = try await ProcessTests.open(path)
        try store.lease.read(for: .read) { _ in ProcessTests.die() }
      }
      let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
      if let store {
        for _ in 0..<1024 { try await environment.write { try $0.setValue([1], forKey: "k", in: store) } }
      }
      #expect(try await environment.clearStaleReaders() == 0)
      try await environment.close()
      try await store?.close()
    }
  }

  @Test func aReaderFollowsAMapThatAnotherProcessHasOutgrown() async throws {
    let folder = try TemporaryFolder()
    let store = try await ProcessTests.open(folder.path, initialMapSize: 1 << 18)
    let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    try await store.setValue([1], forKey: "small")
    #expect(try store.value(forKey: "small") == [1])
    #expect(try await environment.statistics().mapSize == 1 << 18)
    await #expect(processExitsWith: .success) { [path = folder.path as String] in
      let store = try await ProcessTests.open(path)
      try await store.apply(ChangeBatch((0..<50).map { .set("\($0)", [UInt8](repeating: 9, count: 100_000)) }))
    }
    // Several threads find out at once, with transactions that they renew and with new ones.
    try await Threads.run(4) { _ in
      let (value, count) = (try store.value(forKey: "49"), try store.count(in: .all))
      #expect(value?.count == 100_000)
      #expect(count == 51)
    }
    #expect(try await environment.statistics().mapSize > 5_000_000)
    try await environment.close()
    try await store.close()
  }

  @Test func aWriterFollowsAMapThatAnotherProcessHasOutgrown() async throws {
    let folder = try TemporaryFolder()
    let store = try await ProcessTests.open(folder.path, initialMapSize: 1 << 18)
    for round in 1...3 {
      await #expect(processExitsWith: .success) { [path = folder.path as String, round = round as Int] in
        let store = try await ProcessTests.open(path, initialMapSize: 1 << 26)
        try await store.apply(
          ChangeBatch((0..<20 * round).map { .set("\(round) \($0)", [UInt8](repeating: 9, count: 100_000)) }))
      }
      try await store.update("own") { $0 = ProcessTests.bytes(ProcessTests.count($0) + 1) }
      #expect(ProcessTests.count(try store.value(forKey: "own")) == round)
    }
    #expect(try store.count(in: .all) == 121)
    try await store.close()
  }

  @Test func aMapSmallerThanTheFileIsNoHindrance() async throws {
    let folder = try TemporaryFolder()
    let store = try await ProcessTests.open(folder.path)
    try await store.setValue([UInt8](repeating: 1, count: 3_000_000), forKey: "k")
    try await store.close()
    let again = try await ProcessTests.open(folder.path, initialMapSize: 1 << 17)
    #expect(try again.value(forKey: "k")?.count == 3_000_000)
    try await again.setValue([2], forKey: "l")
    try await again.close()
  }

  @Test func whatTwoProcessesWithDifferentCodecsOpenAtOnceIsOneOfThem() async throws {
    let folder = try TemporaryFolder()
    await #expect(processExitsWith: .success) { [path = folder.path as String] in
      let environment = try await LMDBEnvironment(path: "\(path)/environment", durability: .buffered)
      _ = try await LMDBStore<Int>(in: environment, codec: .json())
      try await environment.close()
    }
    let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    // As where the record comes between the look for it and the transaction that would make it.
    let lease = environment.lease
    await expectStoreError(.versionMismatch) {
      try await lease.environment.writer.write(for: lease, during: .open) { transaction in
        _ = try StoreCatalog(store: "store").create("default", codecName: "raw", in: transaction)
      }
    }
    #expect(try await environment.codecName(ofStore: "default") == "json")
    try await environment.close()
  }

  @Test func aProcessWithLittleAddressSpaceOpensASmallerMap() async throws {
    let folder = try TemporaryFolder()
    let store = try await LMDBStore<[UInt8]>(path: folder.path("environment"), codec: .raw, durability: .buffered)
    try await store.setValue([UInt8](repeating: 1, count: 5_000_000), forKey: "k")
    await #expect(processExitsWith: .success) { [path = folder.path as String] in
      try AddressSpaceLimit.set(toFurther: 256 << 20)
      let environment = try await LMDBEnvironment(path: "\(path)/environment", durability: .buffered)
      let store = try await LMDBStore<[UInt8]>(in: environment, codec: .raw)
      #expect(try store.value(forKey: "k")?.count == 5_000_000)
      let size = try await environment.statistics().mapSize
      #expect(size < 256 << 20)
      // What was opened with a small map still grows, as far as there is room; then the store says so and goes on.
      var count = 0
      var failure: StoreError?
      while failure == nil && count < 100 {
        do {
          try await store.setValue([UInt8](repeating: 2, count: 4_000_000), forKey: "\(count)")
          count += 1
        } catch let error as StoreError {
          failure = error
        }
      }
      #expect(failure?.code == .full)
      #expect(failure?.outcome == .nothingChanged)
      #expect(count > 0)
      #expect(try await environment.statistics().mapSize > size)
      #expect(try store.count(in: .all) == count + 1)
      #expect(try store.value(forKey: "k")?.count == 5_000_000)
      try await store.removeValue(forKey: "0")
      try await store.setValue([3], forKey: "small")
      #expect(try store.value(forKey: "small") == [3])
      try await environment.close()
    }
    #expect(try store.value(forKey: "small") == [3])
    try await store.close()
  }
}
