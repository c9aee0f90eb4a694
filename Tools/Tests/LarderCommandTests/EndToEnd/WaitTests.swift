import Foundation
import Larder
import LarderCompressedFile
import LarderJSON
import LarderLMDB
import LarderSQLite
import Testing

@testable import LarderCommand
@testable import StoreAccess

/// Tests that `--wait` is the longest wait for another program, whatever the kind of store.
@Suite struct WaitTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  /// Runs a closure while this process writes to a store.
  private func whileWriting(to kind: StoreKind, _ body: () async throws -> Void) async throws {
    let path = folder.file(kind.fileName())
    switch kind {
    case .json, .compressed:
      let store = try await Stores.registry.open(kind.url(in: folder), codec: .json(Int.self))
      try await body()
      try await store.close()
    case .lmdb:
      let environment = try await LMDBEnvironment(path: path)
      let (begun, ended) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0))
      async let writing: Void = environment.write { _ in
        begun.continuation.yield()
        ended.wait()
      }
      for await _ in begun.stream { break }
      let result = await result(of: body)
      ended.signal()
      try await writing
      try await environment.close()
      try result.get()
    case .sqlite:
      let database = try await SQLiteDatabase(path: path)
      let (begun, ended) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0))
      async let writing: Void = database.write { _ in
        begun.continuation.yield()
        ended.wait()
      }
      for await _ in begun.stream { break }
      let result = await result(of: body)
      ended.signal()
      try await writing
      try await database.close()
      try result.get()
    }
  }

  private func result(of body: () async throws -> Void) async -> Result<Void, any Error> {
    do {
      return .success(try await body())
    } catch {
      return .failure(error)
    }
  }

  /// Measures a closure until it takes less than a limit, at most five times, because a busy machine delays single calls.
  private func shortest(below limit: Duration, _ body: () async throws -> Void) async rethrows -> Duration {
    var shortest = Duration.seconds(Int64.max)
    for _ in 0..<5 where shortest >= limit {
      shortest = min(shortest, try await ContinuousClock().measure { try await body() })
    }
    return shortest
  }

  @Test(arguments: StoreKind.allCases) func `every verb that writes ends at its deadline`(kind: StoreKind) async throws
  {
    let store = kind.url(in: folder)
    let other = StoreKind.json.url("other", in: folder)
    let codec = try await Tool.shell(
      "larder set $1 a 1 && larder stat $1 | sed -n 's/^codec *//p'", store
    ).output.trimmingCharacters(in: .newlines)
    #expect(try await Tool.larder("set", other, "b", "2") == .done())
    try await whileWriting(to: kind) {
      let line = "{\"key\":\"c\",\"value\":3}\n"
      // SQLite's own default is 5 seconds.
      for wait in ["0s", "300ms"] {
        let duration = try await shortest(below: .seconds(5)) {
          let run = try await Tool.larder("set", store, "b", "2", "--wait", wait)
          #expect(run.status == 75 && run.errors.split(separator: "\n").count == 1, "\(run)")
        }
        #expect(duration < .seconds(5))
      }
      for arguments in [
        ["remove", store, "a"], ["clear", store, "--yes"], ["import", store], ["import", store, "--concurrency", "4"],
        ["copy", other, store, "--codec", codec],
      ] {
        let run = try await ToolRun.run(Tool.path, arguments + ["--wait", "100ms"], input: line)
        #expect(run.status == 75, "\(arguments) \(run)")
      }
    }
    #expect(try await Tool.larder("list", store) == .done("{\"key\":\"a\",\"value\":1}\n"))
  }

  @Test func `counting the values of a key waits as long`() async throws {
    let (store, ring) = (StoreKind.json.url(in: folder), "file:\(folder.file("keys.json"))")
    #expect(try await Tool.larder("set", store, "a", "1") == .done())
    let key = try await Tool.larder("keyring", "create", ring).output.trimmingCharacters(in: .newlines)
    try await whileWriting(to: .json) {
      for arguments in [["list", ring, store], ["remove", ring, key, store]] {
        let run = try await ToolRun.run(Tool.path, ["keyring"] + arguments + ["--wait", "0s"])
        #expect(run.status == 75, "\(arguments) \(run)")
      }
    }
  }

  @Test(arguments: [StoreKind.lmdb, .sqlite]) func `new stores and queues wait as long`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("set", store, "a", "1") == .done())
    let queue = ["queue", "enqueue", "\(store)#queues", "--prefix", "q/", "1"]
    #expect(try await ToolRun.run(Tool.path, queue).status == 0)
    try await whileWriting(to: kind) {
      for arguments in [queue, ["set", "\(store)#new", "a", "1"]] {
        let duration = try await shortest(below: .seconds(5)) {
          let run = try await ToolRun.run(Tool.path, arguments + ["--wait", "300ms"])
          #expect(run.status == 75, "\(arguments) \(run)")
        }
        #expect(duration < .seconds(5))
      }
      // Readers do not wait.
      #expect(try await Tool.larder("get", store, "a", "--wait", "0s") == .done("1\n"))
    }
    #expect(try await Tool.larder("stores", store).output.contains("#new") == false)
    #expect(try await ToolRun.run(Tool.path, queue + ["--wait", "1m"]).status == 0)
  }

  @Test(arguments: StoreKind.allCases) func `a lock that is released is waited for`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("set", store, "a", "1") == .done())
    let waiting = Locked<Task<ToolRun, any Error>?>(nil)
    try await whileWriting(to: kind) {
      let task = Task { try await Tool.larder("set", store, "b", "2", "--wait", "10m") }
      waiting.withLock { $0 = task }
    }
    #expect(try await waiting.withLock { $0 }?.value == .done())
    #expect(try await Tool.larder("get", store, "b") == .done("2\n"))
  }

  /// A writer that is stopped in its transaction (a debugger, a frozen container) holds LMDB's lock.
  @Test(arguments: [StoreKind.lmdb, .sqlite]) func `a stopped writer ends the wait too`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("set", store, "a", "1") == .done())
    // More than the writer can import before it is killed.
    let lines = (0..<200_000).map { "{\"key\":\"k\($0 % 500)\",\"value\":\($0)}\n" }
    let writer = Process()
    writer.executableURL = URL(filePath: Tool.path)
    writer.arguments = ["import", store, try folder.write(lines.joined(), to: "lines"), "--batch", "1"]
    writer.standardError = FileHandle.nullDevice
    try writer.run()
    var statuses: Set<Int32> = []
    // Most of the time it is in a transaction, which waits for the disk. It runs while its entries are counted.
    while try await Tool.larder("count", store) == .done("1\n") {}
    for _ in 0..<100 where !statuses.contains(75) {
      _ = try await Tool.larder("count", store)
      kill(writer.processIdentifier, SIGSTOP)
      statuses.insert(try await Tool.larder("set", store, "b", "2", "--wait", "300ms").status)
      kill(writer.processIdentifier, SIGCONT)
    }
    #expect(statuses.contains(75) && statuses.isSubset(of: [0, 75]), "\(statuses)")
    kill(writer.processIdentifier, SIGKILL)
    writer.waitUntilExit()
    #expect(try await Tool.larder("set", store, "b", "3", "--wait", "1m") == .done())
    #expect(try await Tool.larder("verify", store).status == 0)
  }
}
