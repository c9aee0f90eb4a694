#if LMDB
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderLMDB

/// Several processes that have the same environment open.
@Suite struct ProcessTests {
  /// Opens a store with the options of these tests.
  private static func open(_ folder: String, initialMapSize: Int = 1 << 24) async throws -> LMDBStore<[UInt8]> {
    let environment = try await LMDBEnvironment(
      EnvironmentConfiguration(path: "\(folder)/environment", durability: .buffered, initialMapSize: initialMapSize))
    return try await LMDBStore(in: environment, codec: .raw)
  }

  /// Waits until a file exists; see ``wait(until:)``.
  private static func wait(for path: String) async throws {
    let isThere = try await wait { FileManager.default.fileExists(atPath: path) }
    #expect(isThere, "\(path) did not appear")
  }

  /// Waits for another process for at most five minutes, because a busy machine may delay it.
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

  /// Kills this process as `kill -9` does.
  private static func die() {
    kill(getpid(), SIGKILL)
  }

  private static func count(_ bytes: [UInt8]?) -> Int {
    bytes.map { $0.withUnsafeBytes { $0.loadUnaligned(as: Int.self) } } ?? 0
  }

  private static func bytes(_ count: Int) -> [UInt8] {
    withUnsafeBytes(of: count) { Array($0) }
  }

  @Test func `counters incremented by two processes lose no update`() async throws {
    let folder = try TemporaryFolder()
    let store = try await ProcessTests.open(folder.path)
    async let child: Void = {
      await #expect(processExitsWith: .success) { [path = folder.path as String] in
        let store = try await ProcessTests.open(path)
        for _ in 0..<150 {
          try await store.update(["own", "shared"]) { slots in
            slots.assign(slots.map { ProcessTests.bytes(ProcessTests.count($0) + 1) })
          }
        }
        try await store.close()
      }
    }()
    // Starts once the child is writing, so that both run together.
    #expect(try await ProcessTests.wait { try store.count(in: .all) > 0 })
    for _ in 0..<150 {
      try await store.update("shared") { $0 = ProcessTests.bytes(ProcessTests.count($0) + 1) }
    }
    await child
    #expect(ProcessTests.count(try store.value(forKey: "own")) == 150)
    #expect(ProcessTests.count(try store.value(forKey: "shared")) == 300)
    try await store.close()
  }

  @Test func `a process killed during a write affects no other process`() async throws {
    let folder = try TemporaryFolder()
    let store = try await ProcessTests.open(folder.path)
    try await store.setValue([1], forKey: "before")
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = folder.path as String] in
      let store = try await ProcessTests.open(path)
      #expect(try store.value(forKey: "before") == [1])
      try await store.setValue([2], forKey: "committed")
      let environment = try await LMDBEnvironment(path: "\(path)/environment", durability: .buffered)
      try await environment.write { transaction in
        // The values are so large that LMDB writes pages before the commit.
        for number in 0..<2000 {
          try transaction.setValue([UInt8](repeating: 3, count: 3000), forKey: "lost \(number)", in: store)
        }
        ProcessTests.die()
      }
    }
    // The process held the lock when it was killed.
    try await store.setValue([4], forKey: "after")
    #expect(try store.keys(in: .all, limit: 9, order: .ascending) == ["after", "before", "committed"])
    let report = try await store.verify()
    #expect(report.entryCount == 3 && report.findings.isEmpty)
    try await store.close()
  }

  @Test func `slots are available after many concurrent reads`() async throws {
    let folder = try TemporaryFolder()
    let store = try await ProcessTests.open(folder.path)
    try await store.setValue([1], forKey: "k")
    func nest(_ depth: Int) throws {
      guard depth > 0 else { return }
      try store.handle.read(for: .read) { _ in try nest(depth - 1) }
    }
    try nest(1000)
    let statistics = try await store.storeStatistics()
    #expect(try #require(statistics.details.first { $0.name == "readers" }).value > 990)
    await #expect(processExitsWith: .success) { [path = folder.path as String] in
      let store = try await ProcessTests.open(path)
      func nest(_ depth: Int) throws {
        guard depth > 0 else { return #expect(try store.value(forKey: "k") == [1]) }
        try store.handle.read(for: .read) { _ in try nest(depth - 1) }
      }
      try nest(900)
      try await store.close()
    }
    try await store.close()
  }

  @Test func `data of an earlier session is made durable`() async throws {
    let folder = try TemporaryFolder()
    for makesDurable in [0, 1] {
      await #expect(processExitsWith: .signal(SIGKILL)) { [path = folder.path as String] in
        try await ProcessTests.open(path).setValue([1], forKey: "k")
        ProcessTests.die()
      }
      let store = try await LMDBStore<[UInt8]>(path: folder.path("environment"), codec: .raw)
      let environment = store.handle.environment
      let latest = environment.lastTransaction
      #expect(await environment.writer.durableTransaction < latest)
      // An update without changes makes the state that it saw durable.
      if makesDurable == 0 { try await store.synchronize() } else { try await store.update("k") { $0 = [1] } }
      #expect(environment.lastTransaction == latest)
      #expect(await environment.writer.durableTransaction == latest)
      try await store.setValue([2], forKey: "k")
      #expect(await environment.writer.durableTransaction == latest + 1)
      try await store.close()
    }
  }

  @Test func `processes that create an environment together share it`() async throws {
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

  /// In another container, a process may have the same number.
  ///
  /// LMDB tells processes apart by locks on that number.
  @Test(.enabled(if: ForeignTool.pythonObstacle == nil, "\(ForeignTool.pythonObstacle ?? "")"))
  func `a process with the same number is reported`() async throws {
    let folder = try TemporaryFolder()
    try await ProcessTests.open(folder.path).close()
    let program = """
      import fcntl, os, sys, time
      lock = open(sys.argv[1] + "/environment/lock.mdb", "r+b")
      fcntl.lockf(lock, fcntl.LOCK_EX, 1, int(sys.argv[2]))
      open(sys.argv[1] + "/ready", "w").close()
      while not os.path.exists(sys.argv[1] + "/done"): time.sleep(0.01)
      """
    // It waits, so it runs on its own thread.
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

  @Test func `the slot of a process killed during a read is cleared`() async throws {
    let folder = try TemporaryFolder()
    let store = try await ProcessTests.open(folder.path)
    let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    let value = [UInt8](repeating: 1, count: 100_000)
    try await store.setValue(value, forKey: "k")
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = folder.path as String] in
      let store = try await ProcessTests.open(path)
      try store.handle.read(for: .read) { _ in ProcessTests.die() }
    }
    // Its snapshot keeps old pages in use until its slot is cleared.
    for _ in 0..<20 { try await store.setValue(value, forKey: "k") }
    let pinned = try await environment.statistics().pageCount
    #expect(pinned > 15 * value.count / 4096)
    #expect(try environment.handle.environment.readers.clearStaleSlots() == 1)
    #expect(try environment.handle.environment.readers.clearStaleSlots() == 0)
    for _ in 0..<10 { try await store.setValue(value, forKey: "k") }
    #expect(try await environment.statistics().pageCount == pinned)
    try await environment.close()
    try await store.close()
  }

  @Test func `stale slots are cleared by opening and by writing`() async throws {
    let folder = try TemporaryFolder()
    try await ProcessTests.open(folder.path).close()
    for isOpen in [false, true] {
      let store = isOpen ? try await ProcessTests.open(folder.path) : nil
      await #expect(processExitsWith: .signal(SIGKILL)) { [path = folder.path as String] in
        let store = try await ProcessTests.open(path)
        try store.handle.read(for: .read) { _ in ProcessTests.die() }
      }
      let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
      if let store {
        for _ in 0..<1024 { try await environment.write { try $0.setValue([1], forKey: "k", in: store) } }
      }
      #expect(try environment.handle.environment.readers.clearStaleSlots() == 0)
      try await environment.close()
      try await store?.close()
    }
  }

  @Test func `a reader follows the map growth of another process`() async throws {
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
    // Several threads notice the growth at the same time, with renewed and with new transactions.
    try await Threads.run(4) { _ in
      let (value, count) = (try store.value(forKey: "49"), try store.count(in: .all))
      #expect(value?.count == 100_000)
      #expect(count == 51)
    }
    #expect(try await environment.statistics().mapSize > 5_000_000)
    try await environment.close()
    try await store.close()
  }

  @Test func `a writer follows the map growth of another process`() async throws {
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

  @Test func `a map smaller than the file is enlarged`() async throws {
    let folder = try TemporaryFolder()
    let store = try await ProcessTests.open(folder.path)
    try await store.setValue([UInt8](repeating: 1, count: 3_000_000), forKey: "k")
    try await store.close()
    let again = try await ProcessTests.open(folder.path, initialMapSize: 1 << 17)
    #expect(try again.value(forKey: "k")?.count == 3_000_000)
    try await again.setValue([2], forKey: "l")
    try await again.close()
  }

  @Test func `a store opened by two processes with different codecs gets one of them`() async throws {
    let folder = try TemporaryFolder()
    await #expect(processExitsWith: .success) { [path = folder.path as String] in
      let environment = try await LMDBEnvironment(path: "\(path)/environment", durability: .buffered)
      _ = try await LMDBStore<Int>(in: environment, codec: .json())
      try await environment.close()
    }
    let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    // The record appears between the lookup and the transaction that would create it.
    let handle = environment.handle
    let codecName = try await handle.environment.writer.write(for: handle, during: .open) { transaction, _ in
      .commit(try StoreCatalog(store: "store").create("default", codecName: "raw", in: transaction).codecName)
    }
    #expect(codecName == "json")
    await expectStoreError(.versionMismatch) { try await LMDBStore<[UInt8]>(in: environment, codec: .raw) }
    _ = try await LMDBStore<Int>(in: environment, codec: .json(), createsIfMissing: false)
    try await environment.close()
  }

  @Test func `many environments leave address space to the program`() async throws {
    let folder = try TemporaryFolder()
    await #expect(processExitsWith: .success) { [path = folder.path as String] in
      var environments: [LMDBEnvironment] = []
      for number in 0..<150 {
        environments.append(try await LMDBEnvironment(path: "\(path)/\(number)", durability: .buffered))
      }
      // The system may grant less than 1 TiB even to the first environment.
      #expect(try await environments[149].statistics().mapSize < 1 << 40)
      #expect(MapSize.isFree(1 << 33))
      for environment in environments { try await environment.close() }
    }
  }

  @Test func `a process with little address space opens a smaller map`() async throws {
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
      // A store that was opened with a small map still grows as far as possible. Then it throws, and stays usable.
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
#endif
