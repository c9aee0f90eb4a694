import Foundation
import Larder
import LarderCBOR
import LarderQueue
import LarderTesting
import LarderWorker
import TestSupport
import Testing

/// Workers whose closures crash the process.
///
/// `LARDER_KILL_ROUNDS` above its default makes the queue longer.
@Suite(.timeLimit(.minutes(10))) struct WorkerCrashTests {
  private struct Failure: Error {}

  private static let poison = 17

  private static func open(_ path: String) async throws -> QueueStore<Int> {
    let configuration = QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 3, retryPolicy: .immediate))
    return try await QueueStore(
      path: path, codec: .cbor(), configuration: configuration, durability: .buffered, leases: .void)
  }

  /// Processes all items, and appends a line to a file for each item that is processed or becomes a dead letter.
  private static func work(_ path: String, log: String) async throws {
    let queue = try await open(path)
    let file = try #require(FileHandle(forUpdatingAtPath: log))
    let lock = Locked(0)
    @Sendable func append(_ line: String) throws {
      try lock.withLock { _ in
        try file.seekToEnd()
        try file.write(contentsOf: Data("\(line)\n".utf8))
      }
    }
    let worker = QueueWorker(
      [
        QueueHandler(queue, lease: .seconds(3600)) { delivery in
          switch delivery.value {
          case poison: kill(getpid(), SIGKILL)
          case let value where value % 10 == 3 && value > poison: throw Failure()
          // Slow enough to be running when the process crashes, unless they run alone.
          case let value where value < poison || value % 100 == 5: for _ in 0..<5000 { await Task.yield() }
          default: break
          }
          try append("done \(delivery.value)")
        }
      ], concurrency: 50,
      onEvent: { event in
        guard case .dead(_, let deadLetter) = event else { return }
        #expect(throws: Never.self) { try append("dead \(deadLetter.sequence)") }
      })
    async let result: Void = worker.run()
    while try await queue.counts().live > 0 { await Task.yield() }
    worker.shutDown()
    try await result
    try await queue.close()
  }

  @Test func `an item that crashes its process takes no other item with it`() async throws {
    let folder = try TemporaryFolder()
    let (path, log) = (folder.path("queue"), folder.path("log"))
    let count = Int(ProcessInfo.processInfo.environment["LARDER_KILL_ROUNDS"] ?? "") ?? 0 >= 100 ? 10_000 : 1000
    #expect(FileManager.default.createFile(atPath: log, contents: nil))
    do {
      let queue = try await Self.open(path)
      try await queue.enqueue((0..<count).map { QueueInput($0) })
      try await queue.close()
    }
    for _ in 0..<3 {
      await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, log = log as String] in
        try await WorkerCrashTests.work(path, log: log)
      }
    }
    try await Self.work(path, log: log)

    let queue = try await Self.open(path)
    let dead = try await queue.deadLetters()
    let failing = (0..<count).filter { $0 % 10 == 3 && $0 > Self.poison }
    #expect(try dead.map { try $0.value.get() }.sorted() == ([Self.poison] + failing).sorted())
    let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
    // An item that was processed just before a crash can be processed again.
    let done = Set(lines.compactMap { $0.hasPrefix("done ") ? Int($0.dropFirst(5)) : nil })
    #expect(done == Set((0..<count).filter { $0 < Self.poison || $0 > Self.poison && $0 % 10 != 3 }))
    let reported = lines.compactMap { $0.hasPrefix("dead ") ? UInt128($0.dropFirst(5)) : nil }
    #expect(reported.sorted() == dead.map(\.sequence).sorted())
    try await queue.close()
  }
}
