import Foundation
import Larder
import LarderQueue
import LarderTesting
import Testing

/// Tests of `larder queue move`.
@Suite struct QueueMoveTests {
  private static let rounds = ProcessInfo.processInfo.environment["LARDER_KILL_ROUNDS"].flatMap { Int($0) } ?? 8

  private let folder: TemporaryFolder
  private let queue: String
  /// The arguments of a queue in a store.
  private let other: [String]

  init() throws {
    folder = try TemporaryFolder()
    queue = "queue:\(folder.file("queue"))"
    other = ["lmdb:\(folder.file("shop"))", "--prefix", "q/"]
  }

  private func larder(_ arguments: [String]) async throws -> ToolRun {
    try await ToolRun.run(Tool.path, ["queue"] + arguments)
  }

  private func enqueue(_ values: [String], _ place: [String], _ options: String...) async throws {
    for value in values {
      #expect(try await larder(["enqueue"] + place + [value] + options).status == 0)
    }
  }

  private func move(_ source: String, _ destination: String, _ options: String...) async throws -> ToolRun {
    try await larder(["move", source, destination] + options)
  }

  private func moved(_ count: Int, duplicates: Int = 0, delayed: Int = 0) -> ToolRun {
    .done(
      """
      {"moved":\(count),"duplicates":\(duplicates),"left":{"waiting":0,"delayed":\(delayed),"leased":0,"dead":0}}

      """)
  }

  /// The line that `receive` prints for a delivery.
  private struct Line: Decodable {
    let key: String
    let value: Int
    let attempt: Int
  }

  private func receive(_ place: [String]) async throws -> [Line] {
    let run = try await larder(["receive"] + place + ["--max", "1000", "--lease", "1h"])
    #expect(run.status == 0 && run.errors.isEmpty, "\(run)")
    return try run.output.split(separator: "\n").map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
  }

  @Test func `items move in order between kinds of queues`() async throws {
    try await enqueue(["1", "2", "3"], [queue])
    try await enqueue(["4"], [queue], "--delay", "1h")
    #expect(try await move(queue, other[0], "--to-prefix", "q/", "--batch", "2") == moved(3, delayed: 1))
    #expect(try await move(queue, other[0], "--to-prefix", "q/") == moved(0, delayed: 1))
    let back = "queue:\(folder.file("back"))"
    #expect(try await move(other[0], back, "--from-prefix", "q/") == moved(3))
    let lines = try await receive([back])
    #expect(lines.map(\.value) == [1, 2, 3] && lines.map(\.attempt) == [1, 1, 1])
  }

  @Test func `priorities and groups move`() async throws {
    try await enqueue(["1", "2"], other, "--group", "g")
    try await enqueue(["3"], other, "--priority", "5")
    #expect(try await move(other[0], other[0], "--from-prefix", "q/", "--to-prefix", "r/") == moved(3))
    // The items of a group are delivered one at a time.
    #expect(try await receive([other[0], "--prefix", "r/"]).map(\.value) == [3, 1])
  }

  @Test func `a refused item stays with its attempts`() async throws {
    try await enqueue(["1"], other, "--priority", "5")
    #expect(try await move(other[0], queue, "--from-prefix", "q/").status == 64)
    let memory = try await move(other[0], "memory:", "--from-prefix", "q/", "--to-prefix", "q/")
    #expect(memory.failed(64, "keeps nothing"))
    #expect(try await receive(other).map(\.attempt) == [1])
  }

  @Test func `generated keys of two queues are different items`() async throws {
    let second = "queue:\(folder.file("second"))"
    try await enqueue(["1"], [queue])
    try await enqueue(["2"], [second])
    try await enqueue(["3"], ["queue:\(folder.file("destination"))"])
    for source in [queue, second] {
      #expect(try await move(source, "queue:\(folder.file("destination"))") == moved(1))
    }
    #expect(try await receive(["queue:\(folder.file("destination"))"]).map(\.value) == [3, 1, 2])
  }

  @Test func `an item with the same key is compared with the other`() async throws {
    try await enqueue(["1"], [queue], "--id", "same")
    try await enqueue(["1"], other, "--id", "same")
    #expect(try await move(queue, other[0], "--to-prefix", "q/") == moved(0, duplicates: 1))
    try await enqueue(["2"], other, "--id", "other")
    let second = "queue:\(folder.file("second"))"
    try await enqueue(["3"], [second], "--id", "other")
    try await enqueue(["4"], [second])
    let conflict = try await move(second, other[0], "--to-prefix", "q/")
    #expect(conflict.failed(65, "another item with the key \"other\""))
    #expect(try await receive([second]).map(\.value) == [3])
    #expect(try await receive(other).map(\.value) == [1, 2, 4])
  }

  @Test func `an item that is moved back is not lost`() async throws {
    try await enqueue(["1"], [queue], "--id", "a")
    try await enqueue(["2"], [queue])
    #expect(try await move(queue, other[0], "--to-prefix", "q/") == moved(2))
    // The queue remembers the id of the item that left it, and has never had the key of the other item.
    let back = try await move(other[0], queue, "--from-prefix", "q/")
    #expect(back.failed(65, "with the key \"a\", or had one in the last 5 minutes"))
    #expect(try await receive([queue]).map(\.value) == [2])
    #expect(try await receive(other).map(\.value) == [1])
  }

  @Test func `a queue is not moved to itself`() async throws {
    try await enqueue(["1"], [queue])
    try await enqueue(["1"], other)
    #expect(try await move(queue, queue).failed(64, "to itself"))
    for url in [other[0], "\(other[0])#default", "lmdb:\(folder.path)/./shop"] {
      for prefix in ["q/", "q/x", "q"] {
        #expect(try await move(other[0], url, "--from-prefix", "q/", "--to-prefix", prefix).failed(64, "to itself"))
      }
    }
    #expect(try await move(queue, "queue:\(folder.path)/./queue", "--wait", "0s").status == 75)
    #expect(try await move(queue, other[0]).failed(64, "is not a queue"))
    #expect(try await move(queue, other[0], "--to-prefix", "").failed(64, "--to-prefix is empty"))
  }

  @Test func `no item is lost if the move is killed`() async throws {
    let seed = SeededGenerator.seedOfProcess
    print("LARDER_SEED=\(seed)")
    var generator = SeededGenerator(seed: seed)
    var count = 0
    for _ in 0..<Self.rounds {
      // Enough items that the move is not done before it is killed.
      let items = try await QueueStore(path: folder.file("queue"), codec: JSONTextCodec())
      try await items.enqueue(try (count..<count + 40).map { QueueInput(try JSONText("\($0)")) })
      try await items.close()
      count += 40
      let process = Process()
      process.executableURL = URL(fileURLWithPath: Tool.path)
      process.arguments = ["queue", "move", queue, other[0], "--to-prefix", "q/", "--batch", "2", "--lease", "300ms"]
      process.environment = ["SWIFT_BACKTRACE": "enable=no"]
      process.standardOutput = FileHandle.nullDevice
      process.standardError = FileHandle.nullDevice
      let (end, continuation) = AsyncStream<Never>.makeStream()
      process.terminationHandler = { _ in continuation.finish() }
      try process.run()
      try await Task.sleep(for: .milliseconds(Int.random(in: 0...120, using: &generator)))
      if process.isRunning { kill(process.processIdentifier, SIGKILL) }
      for await _ in end {}
    }
    // The items of the last step are due when their leases end.
    var run = try await move(queue, other[0], "--to-prefix", "q/")
    while run.status == 0, !run.output.contains(#""waiting":0,"delayed":0,"leased":0"#) {
      run = try await move(queue, other[0], "--to-prefix", "q/")
    }
    #expect(run.status == 0, "seed \(seed): \(run)")
    let dead = try await larder(["dead", "list", queue]).output.matches(of: /"value":(\d+)/).compactMap { Int($0.1) }
    let values = try await receive(other).map(\.value)
    #expect(Set(values).count == values.count, "seed \(seed): an item was moved twice")
    #expect(Set(values + dead) == Set(0..<count), "seed \(seed)")
  }
}
