import Foundation
import Larder
import Testing

@testable import LarderCommand
@testable import StoreAccess

/// `larder watch` beside other processes that write.
///
/// The tests run one after the other: a process that Foundation starts can inherit the descriptor with which it notices
/// the end of another one that starts at the same time, and a watch would keep that descriptor open.
@Suite(.serialized, .timeLimit(.minutes(5))) struct WatchTests {
  private let folder: TemporaryFolder
  private let store: String

  init() throws {
    folder = try TemporaryFolder()
    store = StoreKind.lmdb.url(in: folder)
  }

  /// A running `larder watch`.
  private final class Watch: Sendable {
    private let process = Process()
    private let lines: Locked<AsyncStream<String>.Iterator>
    private let ended: AsyncStream<Never>
    private let errors: String

    /// Starts the verb.
    ///
    /// - Parameters:
    ///   - arguments: The arguments after the verb.
    ///   - folder: A folder for the errors.
    ///   - setup: A shell command that runs before. Defaults to an empty text.
    init(_ arguments: [String], _ folder: TemporaryFolder, after setup: String = "") throws {
      errors = try folder.write("", to: "errors")
      process.executableURL = URL(fileURLWithPath: "/bin/sh")
      process.arguments = ["-c", #"\#(setup) exec "$0" watch "$@""#, Tool.path] + arguments
      let pipe = Pipe()
      process.standardOutput = pipe
      process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: errors))
      let (ended, end) = AsyncStream<Never>.makeStream()
      self.ended = ended
      process.terminationHandler = { _ in end.finish() }
      let (lines, line) = AsyncStream.makeStream(of: String.self)
      self.lines = Locked(lines.makeAsyncIterator())
      try process.run()
      let input = pipe.fileHandleForReading
      Thread.detachNewThread {
        var rest = Data()
        while case let data = input.availableData, !data.isEmpty {
          rest += data
          while let newline = rest.firstIndex(of: UInt8(ascii: "\n")) {
            line.yield(String(decoding: rest[..<newline], as: UTF8.self))
            rest = Data(rest[(newline + 1)...])
          }
        }
        if !rest.isEmpty { line.yield("incomplete: \(String(decoding: rest, as: UTF8.self))") }
        line.finish()
      }
    }

    deinit {
      if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }

    /// Waits for the next line, or `nil` at the end of the output.
    func next() async -> String? {
      var iterator = lines.withLock { $0 }
      return await iterator.next()
    }

    /// Sends a signal.
    func send(_ signal: Int32) {
      kill(process.processIdentifier, signal)
    }

    /// Sends a signal, and waits for the end.
    ///
    /// - Returns: The end, with the lines that were not read.
    func end(_ signal: Int32) async throws -> ToolRun {
      send(signal)
      return try await ending()
    }

    /// Waits for the end.
    ///
    /// - Returns: The end, with the lines that were not read.
    func ending() async throws -> ToolRun {
      for await _ in ended {}
      try #require(!process.isRunning, "the watch does not end")
      var rest = ""
      while let line = await next() { rest += line + "\n" }
      return ToolRun(
        status: process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus,
        output: rest, errors: try String(contentsOfFile: errors, encoding: .utf8))
    }
  }

  private func set(_ key: String, _ value: String, _ options: String...) async throws {
    #expect(try await ToolRun.run(Tool.path, ["set", store, key, value] + options) == .done())
  }

  // MARK: Changes

  @Test func `each change of another process is a line`() async throws {
    try await set("ada", #"{"name": "Ada"}"#)
    let watch = try Watch([store, "--initial"], folder)
    #expect(await watch.next() == #"{"key":"ada","change":"set","value":{"name":"Ada"}}"#)
    try await set("bob", "2")
    #expect(await watch.next() == #"{"key":"bob","change":"set","value":2}"#)
    try await set("ada", #"["x"]"#)
    #expect(await watch.next() == #"{"key":"ada","change":"set","value":["x"]}"#)
    // The same value again is no change.
    try await set("ada", #"["x"]"#)
    #expect(try await Tool.larder("remove", store, "ada", "nobody") == .done())
    #expect(await watch.next() == #"{"key":"ada","change":"removed"}"#)
    #expect(try await Tool.larder("set", store, "80c0", "null", "--key-hex") == .done())
    #expect(await watch.next() == #"{"keyBytes":"80c0","change":"set","value":null}"#)
    #expect(try await Tool.larder("clear", store) == .done())
    #expect(await watch.next() == #"{"key":"bob","change":"removed"}"#)
    #expect(await watch.next() == #"{"keyBytes":"80c0","change":"removed"}"#)
    #expect(try await watch.end(SIGTERM) == ToolRun(status: 143, output: "", errors: ""))
  }

  @Test(arguments: [StoreKind.lmdb, .sqlite]) func `a store that is made again ends the watch`(kind: StoreKind)
    async throws
  {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("set", store, "a", "1") == .done())
    let watch = try Watch([store, "--initial"], folder)
    #expect(await watch.next() == #"{"key":"a","change":"set","value":1}"#)
    for suffix in ["", "-wal", "-shm"]
    where FileManager.default.fileExists(atPath: folder.file(kind.fileName()) + suffix) {
      try FileManager.default.removeItem(atPath: folder.file(kind.fileName()) + suffix)
    }
    #expect(try await Tool.larder("set", store, "b", "2") == .done())
    let run = try await watch.ending()
    #expect(run.failed(75, "replaced"), "\(run)")
  }

  @Test func `a batch has a line for each entry in their order`() async throws {
    try await set("0", "0")
    let watch = try Watch([store, "--initial"], folder)
    #expect(await watch.next() == #"{"key":"0","change":"set","value":0}"#)
    let entries = (1000..<1600).map { "{\"key\":\"\($0)\",\"value\":[\($0)]}\n" }
    #expect(try await Tool.larder("import", store, input: entries.reversed().joined()).status == 0)
    for number in 1000..<1600 {
      #expect(await watch.next() == "{\"key\":\"\(number)\",\"change\":\"set\",\"value\":[\(number)]}")
    }
    #expect(try await watch.end(SIGTERM) == ToolRun(status: 143, output: "", errors: ""))
  }

  @Test func `only the range of the store is watched`() async throws {
    try await set("user:1", "1")
    try await set("admin:1", "1")
    let watch = try Watch([store, "--prefix", "user:", "--to", "user:5", "--initial"], folder)
    #expect(await watch.next() == #"{"key":"user:1","change":"set","value":1}"#)
    try await set("admin:1", "2")
    try await set("user:7", "2")
    #expect(try await Tool.larder("set", "\(store)#other", "user:3", "2") == .done())
    #expect(try await Tool.larder("remove", store, "admin:1") == .done())
    try await set("user:2", "2")
    #expect(await watch.next() == #"{"key":"user:2","change":"set","value":2}"#)
    #expect(try await watch.end(SIGTERM) == ToolRun(status: 143, output: "", errors: ""))
  }

  @Test func `the first entries are not printed by default`() async throws {
    try await set("a", "0")
    let watch = try Watch([store], folder)
    // The watch may not have begun, so the value is set anew until a line arrives.
    async let first = watch.next()
    let isFound = Locked(false)
    let writer = Task {
      var number = 1
      while !isFound.withLock({ $0 }) {
        try await set("b", "\(number)")
        number += 1
      }
    }
    #expect(await first?.hasPrefix(#"{"key":"b","change":"set","value":"#) == true)
    isFound.withLock { $0 = true }
    try await writer.value
    let end = try await watch.end(SIGTERM)
    #expect(end.status == 143 && end.errors.isEmpty && !end.output.contains(#""a""#))
  }

  @Test func `a value that cannot be decoded is reported and the watch continues`() async throws {
    try await set("a", "1")
    let watch = try Watch([store, "--initial"], folder)
    #expect(await watch.next() == #"{"key":"a","change":"set","value":1}"#)
    let writer = try await EncodedStore(
      StoreTarget(url: store, timeout: .zero, meter: nil), access: .readWrite)
    try await writer.store.setValue([0xff], forKey: "a")
    let line = try #require(await watch.next())
    #expect(line.hasPrefix(#"{"key":"a","change":"set","message":"the value could not be decoded ("#), "\(line)")
    try await writer.store.setValue([2], forKey: "b")
    #expect(await watch.next() == #"{"key":"b","change":"set","value":2}"#)
    try await writer.store.setValue([3], forKey: "a")
    #expect(await watch.next() == #"{"key":"a","change":"set","value":3}"#)
    try await writer.store.close()
    #expect(try await watch.end(SIGTERM) == ToolRun(status: 143, output: "", errors: ""))
  }

  @Test func `an entry that Expires is removed`() async throws {
    try await set("stays", "1", "--ttl", "1h")
    let watch = try Watch([store, "--initial"], folder)
    #expect(await watch.next() == #"{"key":"stays","change":"set","value":1}"#)
    try await set("goes", "2", "--ttl", "5s")
    #expect(await watch.next() == #"{"key":"goes","change":"set","value":2}"#)
    #expect(await watch.next() == #"{"key":"goes","change":"removed"}"#)
    #expect(try await Tool.larder("purge", store).status == 0)
    #expect(try await Tool.larder("get", store, "stays", "--slide", "--ttl", "2h") == .done("1\n"))
    try await set("last", "3")
    #expect(await watch.next() == #"{"key":"last","change":"set","value":3}"#)
    #expect(try await watch.end(SIGTERM) == ToolRun(status: 143, output: "", errors: ""))
  }

  // MARK: The end

  @Test(arguments: [SIGINT, SIGTERM]) func `a signal ends the watch with its exit code`(signal: Int32) async throws {
    try await set("a", "1")
    let watch = try Watch([store, "--initial", "--metrics"], folder)
    #expect(await watch.next() != nil)
    let end = try await watch.end(signal)
    #expect(end.status == 128 + signal && end.output.isEmpty)
    // The store was closed, and the report is complete.
    #expect(end.errors.contains("close") && !end.errors.contains("larder: "))
  }

  @Test func `an ignored signal stays ignored`() async throws {
    try await set("a", "1")
    let watch = try Watch([store, "--initial"], folder, after: "trap '' INT;")
    #expect(await watch.next() != nil)
    watch.send(SIGINT)
    try await set("b", "2")
    #expect(await watch.next() == #"{"key":"b","change":"set","value":2}"#)
    #expect(try await watch.end(SIGTERM).status == 143)
  }

  @Test func `the watch ends with the reader of its output`() async throws {
    try await set("a", "1")
    try await set("b", "2")
    // No further change follows.
    let run = try await Tool.shell(
      #"{ larder watch "$1" --initial; echo "exit $?" >&2; } | { read -r line; echo "$line"; }"#, store)
    #expect(
      run == ToolRun(status: 0, output: "{\"key\":\"a\",\"change\":\"set\",\"value\":1}\n", errors: "exit 0\n"))
  }

  // MARK: Refused stores

  @Test(arguments: ["json:s.json", "compressed:s.gz", "queue:s"])
  func `an exclusive store is refused`(url: String) async throws {
    let arguments = url.hasPrefix("queue") ? "queue enqueue \(url) 1 > /dev/null" : "set \(url) k 1"
    let run = try await Tool.shell("cd \"$1\" && larder \(arguments) && larder watch \(url)", folder.path)
    #expect(run.failed(64, "is exclusive: no other program can change it"), "\(run)")
    #expect(run.errors.contains("such as lmdb:"))
  }

  @Test func `stores that cannot be watched are refused`() async throws {
    #expect(try await Tool.larder("watch", "memory:").failed(66, "does not outlive its process"))
    #expect(try await Tool.larder("watch", store).failed(66, "Check the URL"))
    #expect(try folder.names() == [])
    try await set("a", "1")
    #expect(try await Tool.larder("watch", "\(store)#third").failed(66, "no store of this name"))
    #expect(try await Tool.larder("watch", store, "--immutable").failed(64, "--immutable is for stores"))
    #expect(try await Tool.larder("watch", store, "--prefix", "").failed(64, "--prefix is empty"))
    let exclusive = StoreKind.json.url(in: folder)
    #expect(try await Tool.larder("set", exclusive, "a", "1") == .done())
    let holder = try await EncodedStore(
      StoreTarget(url: exclusive, timeout: .zero, meter: nil), access: .readWrite)
    let run = try await Tool.larder("watch", exclusive, "--wait", "0s")
    #expect(run.failed(75, "A store that one program at a time can have open cannot be watched"), "\(run)")
    try await holder.store.close()
  }
}
