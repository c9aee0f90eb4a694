#if LMDB
import Dispatch
import Larder
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

/// The time limit of writes that wait for another writer.
@Suite struct BusyTimeoutTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  /// Runs a closure while another writer is in its transaction.
  private func whileWriting(_ body: () async throws -> Void) async throws {
    let environment = try await LMDBEnvironment(path: folder.path("environment"))
    let (begun, ended) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0))
    async let writing: Void = environment.write { _ in
      begun.continuation.yield()
      ended.wait()
    }
    for await _ in begun.stream { break }
    do {
      try await body()
      ended.signal()
    } catch {
      ended.signal()
      try await writing
      throw error
    }
    try await writing
    try await environment.close()
  }

  private func environment(_ timeout: Duration?) async throws -> LMDBEnvironment {
    try await LMDBEnvironment(path: folder.path("environment"), busyTimeout: timeout)
  }

  @Test func `every write ends at its deadline and changes nothing`() async throws {
    let limited = try await environment(.milliseconds(1))
    let store = try await untilInTime { try await LMDBStore<Int>(in: limited) }
    try await untilInTime { try await store.setValue(1, forKey: "a") }
    try await whileWriting {
      // All of them wait for the one that waits for LMDB.
      let start = ContinuousClock.now
      await withTaskGroup { group in
        for number in 0..<8 {
          group.addTask {
            let error = await #expect(throws: StoreError.self) { try await store.setValue(number, forKey: "b") }
            #expect(error?.code == .timedOut && error?.outcome == .nothingChanged && error?.isRetryable == true)
          }
        }
      }
      #expect(ContinuousClock.now - start < .seconds(60))
      for write in [
        { try await store.update("a") { $0 = 2 } },
        { try await limited.write { try $0.setValue(3, forKey: "a", in: store) } },
        { _ = try await LMDBStore<Int>(in: limited, name: "new") },
        { try await limited.removeStore("missing") },
      ] as [@Sendable () async throws -> Void] {
        let error = await #expect(throws: StoreError.self) { try await write() }
        #expect(error?.code == .timedOut)
      }
      let value = try store.value(forKey: "a")
      #expect(value == 1)
    }
    // The calls that were given up have their turn, and do nothing.
    try await untilInTime { try await store.setValue(4, forKey: "c") }
    #expect(try await store.entries(in: .all, limit: 9, order: .ascending).map(\.key) == ["a", "c"])
    #expect(try store.value(forKey: "a") == 1)
    #expect(try await limited.storeNames() == ["default"])
    try await store.close()
    try await limited.close()
  }

  @Test func `a cancelled write ends immediately`() async throws {
    let limited = try await environment(.seconds(3600))
    let store = try await LMDBStore<Int>(in: limited)
    try await whileWriting {
      let writing = Task { try await store.setValue(1, forKey: "a") }
      writing.cancel()
      await #expect(throws: CancellationError.self) { try await writing.value }
    }
    try await store.setValue(2, forKey: "b")
    #expect(try store.value(forKey: "a") == nil)
    try await limited.close()
  }

  @Test func `without timeout a write waits`() async throws {
    let unlimited = try await environment(nil)
    let store = try await LMDBStore<Int>(in: unlimited)
    let waiting = Locked<Task<Void, any Error>?>(nil)
    try await whileWriting {
      let task = Task { try await store.setValue(1, forKey: "a") }
      waiting.withLock { $0 = task }
    }
    try await waiting.withLock { $0 }?.value
    #expect(try store.value(forKey: "a") == 1)
    try await unlimited.close()
  }

  @Test func `results and errors pass through`() async throws {
    struct Refusal: Error {}
    let limited = try await environment(.seconds(3600))
    let store = try await LMDBStore<Int>(in: limited)
    #expect(
      try await store.update("a") {
        $0 = 5; return "done"
      } == "done")
    await #expect(throws: Refusal.self) { try await store.update("a") { _ in throw Refusal() } }
    #expect(try store.value(forKey: "a") == 5)
    try await limited.close()
    let error = await #expect(throws: StoreError.self) { try await store.setValue(6, forKey: "a") }
    #expect(error?.code == .closed)
  }

  @Test func `a store that is dropped is closed by its user`() async throws {
    let first = try await environment(nil)
    _ = try await LMDBStore<Int>(in: first, name: "numbers", codec: .json())
    try await first.close()
    // Opened with another access each time, which is refused while the previous store is open.
    for number in 0..<1_000 {
      let environment = try await LMDBEnvironment(
        path: folder.path("environment"), access: number % 2 == 0 ? .readOnly : .readWrite, busyTimeout: .seconds(60))
      _ = try await LMDBStore<Int>(in: environment, name: "numbers", codec: .json())
    }
  }
}
#endif
