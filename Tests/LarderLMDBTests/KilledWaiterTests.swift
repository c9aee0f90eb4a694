#if LMDB && os(Linux)
import CLMDB
import Foundation
import Larder
import LarderLMDB
import TestSupport
import Testing

/// A process that is killed when LMDB's lock has just woken it; see `LockWaits`.
@Suite struct KilledWaiterTests {
  private static let variable = "LARDER_KILLED_WAITER"

  /// The work of this process and its folder, or `nil` if it runs tests.
  private static let work: (name: Substring, folder: String)? = {
    let words = ProcessInfo.processInfo.environment[variable]?.split(separator: ":", maxSplits: 1)
    return words.map { ($0[0], String($0[1])) }
  }()

  @Test(.enabled(if: work != nil, "it is the work of a process that the other test starts"))
  func workOfAProcess() async throws {
    let work = try #require(Self.work)
    switch work.name {
    case "holder": try Self.hold(work.folder)
    case "victim": try Self.waitToBeKilled(work.folder)
    default:
      let store = try await LMDBStore<[UInt8]>(
        path: "\(work.folder)/environment", codec: .raw, durability: .buffered)
      try Self.note("\(work.folder)/writer")
      try await store.setValue([2], forKey: "after")
      try await store.close()
    }
  }

  /// Three processes want the lock in this order: one holds it, one is killed with its wake-up, and one writes to a store.
  @Test(.enabled(if: work == nil)) func `a write does not wait for the wake up of a killed waiter`() async throws {
    let folder = try TemporaryFolder()
    let store = try await LMDBStore<[UInt8]>(path: folder.path("environment"), codec: .raw, durability: .buffered)
    var processes: [pid_t] = []
    do {
      processes.append(try Self.start("holder", folder))
      try await waitUntil { Self.process(in: folder.path("holder")) != nil }
      processes.append(try Self.start("victim", folder))
      try await Self.waitForWaiter(folder.path("victim"))
      processes.append(try Self.start("writer", folder))
      try await Self.waitForWaiter(folder.path("writer"))
      try Self.note(folder.path("go"))
      try await waitUntil { try store.value(forKey: "after") == [2] }
    } catch {
      for process in processes { kill(process, SIGKILL) }
      throw error
    }
    #expect(try processes.map(CommandRun.wait(for:)) == [0, SIGKILL, 0])
    try await store.close()
  }

  private static func start(_ name: String, _ folder: TemporaryFolder) throws -> pid_t {
    try TestProcess.start(
      "KilledWaiterTests.workOfAProcess", variables: ["\(variable)=\(name):\(folder.path)"],
      output: folder.path("output-\(name)"))
  }

  // MARK: Processes

  /// Holds the lock, passes it on to the victim, takes it again before the victim runs, and kills the victim.
  private static func hold(_ folder: String) throws {
    let environment = try open("\(folder)/environment")
    try shareProcessor()
    var transaction = begin(environment)
    try note("\(folder)/holder")
    while !FileManager.default.fileExists(atPath: "\(folder)/go") { usleep(1_000) }
    let victim = try #require(process(in: "\(folder)/victim"))
    mdb_txn_abort(transaction)
    transaction = begin(environment)
    kill(victim, SIGKILL)
    // Until only its entry in the table of processes is left.
    while let state = text("/proc/\(victim)/stat"), !state.contains(") Z ") { usleep(1_000) }
    mdb_txn_abort(transaction)
    mdb_env_close(environment)
  }

  /// Waits for the lock, on the processor of the holder and only while no other thread wants to run there.
  private static func waitToBeKilled(_ folder: String) throws {
    let environment = try open("\(folder)/environment")
    try shareProcessor()
    #expect(try CommandRun(["chrt", "-aip", "0", "\(getpid())"]).status == 0)
    try note("\(folder)/victim")
    // If it does get the lock, the others must be able to continue.
    while true { mdb_txn_abort(begin(environment)) }
  }

  private static func open(_ path: String) throws -> OpaquePointer {
    var environment: OpaquePointer?
    #expect(mdb_env_create(&environment) == MDB_SUCCESS)
    let pointer = try #require(environment)
    #expect(mdb_env_open(pointer, path, UInt32(MDB_NOSYNC), 0o600) == MDB_SUCCESS)
    return pointer
  }

  private static func begin(_ environment: OpaquePointer) -> OpaquePointer? {
    var transaction: OpaquePointer?
    #expect(mdb_txn_begin(environment, nil, 0, &transaction) == MDB_SUCCESS)
    return transaction
  }

  /// Keeps this process on the first processor that it may use.
  private static func shareProcessor() throws {
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("Cpus_allowed_list:") })
    let first = try #require(line.dropFirst(18).split { !$0.isNumber }.first)
    #expect(try CommandRun(["taskset", "-acp", String(first), "\(getpid())"]).status == 0)
  }

  // MARK: Waiting

  /// Writes the number of this process into a file.
  private static func note(_ path: String) throws {
    try "\(getpid())".write(toFile: path, atomically: true, encoding: .utf8)
  }

  private static func text(_ path: String) -> String? {
    try? String(contentsOfFile: path, encoding: .utf8)
  }

  private static func process(in path: String) -> pid_t? {
    text(path).flatMap { pid_t($0) }
  }

  /// Waits until a process that has noted its number waits for memory that it shares with others.
  private static func waitForWaiter(_ path: String) async throws {
    try await waitUntil { process(in: path) != nil }
    let number = try #require(process(in: path))
    let threads = "/proc/\(number)/task"
    try await waitUntil {
      try FileManager.default.contentsOfDirectory(atPath: threads).contains { thread in
        // The number of the system call and its arguments, of which the second one is the operation of a futex.
        let call = text("\(threads)/\(thread)/syscall")?.split(separator: " ") ?? []
        guard call.count > 2, ["202", "98"].contains(call[0]), let operation = Int(call[2].dropFirst(2), radix: 16)
        else { return false }
        return operation & Int(FUTEX_PRIVATE_FLAG) == 0
      }
    }
  }
}
#endif
