import Foundation
import Larder
import LarderQueue
import Testing

@testable import LarderCommand
@testable import StoreAccess

/// Tests of the verbs of `larder queue`, each in its own process, and of the other verbs with a queue.
@Suite struct QueueTests {
  private let folder: TemporaryFolder
  private let queue: String

  init() throws {
    folder = try TemporaryFolder()
    queue = "queue:\(folder.file("queue"))"
  }

  private func larder(_ verb: String, _ arguments: String..., input: String = "") async throws -> ToolRun {
    try await ToolRun.run(Tool.path, Self.words(of: verb) + [queue] + arguments, input: input)
  }

  /// Returns the words of a verb of the group, which can be in a group itself, such as `dead list`.
  private static func words(of verb: String) -> [String] {
    ["queue"] + verb.split(separator: " ").map(String.init)
  }

  private func enqueue(_ ids: String...) async throws {
    for id in ids {
      #expect(
        try await larder("enqueue", "\"\(id)\"", "--id", id) == .done("{\"key\":\"\(id)\",\"isDuplicate\":false}\n"))
    }
  }

  /// The line that `receive` prints for a delivery.
  private struct Line: Decodable {
    let key: String
    let attempt: Int
    let receipt: String
  }

  private func lines(of run: ToolRun) throws -> [Line] {
    #expect(run.status == 0 && run.errors.isEmpty)
    return try run.output.split(separator: "\n").map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
  }

  private func receive(_ arguments: String...) async throws -> [Line] {
    // The lease is longer than any test takes on a busy machine.
    let lease = arguments.contains("--lease") ? [] : ["--lease", "1h"]
    return try lines(of: try await ToolRun.run(Tool.path, ["queue", "receive", queue] + arguments + lease))
  }

  // MARK: Receiving and acknowledging

  @Test func `an item is received unchanged`() async throws {
    let json = #"{"b":1.50,"a":[1e999,123456789012345678901234567890.10,"\u00e9",-0.0,{}],"b ":null}"#
    #expect(
      try await larder("enqueue", json) == .done("{\"key\":\"0000000000000001\",\"isDuplicate\":false}\n"))
    let run = try await larder("receive", "--lease", "1h")
    let receipt = try #require(try lines(of: run).first?.receipt)
    #expect(
      run.output
        == "{\"key\":\"0000000000000001\",\"value\":\(json),\"attempt\":1,\"receipt\":\"\(receipt)\"}\n")
    #expect(try await larder("receive") == .done())
    #expect(try await larder("acknowledge", receipt) == .done())
    #expect(try await larder("acknowledge", receipt).status == 3)
    let stat = #"{"waiting":0,"delayed":0,"leased":0,"dead":0,"oldestAge":null}"#
    #expect(try await larder("stat") == .done("\(stat)\n"))
  }

  @Test func `items are received in the order of arrival up to the maximum`() async throws {
    try await enqueue("c", "a", "b", "d")
    let first = try await receive("--max", "3")
    #expect(first.map(\.key) == ["c", "a", "b"] && first.map(\.attempt) == [1, 1, 1])
    #expect(try await larder("release", first[1].receipt, first[0].receipt) == .done())
    let second = try await receive("--max", "9", "--lease", "1h")
    #expect(second.map(\.key) == ["c", "a", "d"] && second.map(\.attempt) == [2, 2, 1])
    #expect(try await larder("stat").output.hasPrefix(#"{"waiting":0,"delayed":0,"leased":4,"dead":0,"oldestAge":"#))
  }

  @Test func `a value can come from standard input`() async throws {
    #expect(try await larder("enqueue", "-", "--id", "k", input: " [1,\n2]\n").status == 0)
    #expect(try await larder("receive").output.hasPrefix(#"{"key":"k","value":[1,2],"attempt":1,"#))
    #expect(try await larder("enqueue", "-", input: "[").failed(65, "standard input is not JSON"))
    #expect(try await larder("enqueue", "text").failed(64, "Text needs quotes"))
  }

  @Test func `an id is enqueued once even after the acknowledgement`() async throws {
    try await enqueue("a")
    let duplicate = ToolRun.done("{\"key\":\"a\",\"isDuplicate\":true}\n")
    #expect(try await larder("enqueue", "2", "--id", "a") == duplicate)
    let line = try #require(try await receive().first)
    #expect(try await larder("enqueue", "3", "--id", "a") == duplicate)
    #expect(try await larder("acknowledge", line.receipt) == .done())
    #expect(try await larder("enqueue", "4", "--id", "a") == duplicate)
    #expect(try await larder("receive") == .done())
    #expect(
      try await larder("enqueue", "5", "--id", "80c0", "--key-hex")
        == .done("{\"keyBytes\":\"80c0\",\"isDuplicate\":false}\n"))
  }

  @Test func `a delayed item is not received`() async throws {
    #expect(try await larder("enqueue", "1", "--delay", "1h").status == 0)
    #expect(try await larder("receive") == .done())
    #expect(try await larder("stat").output.hasPrefix(#"{"waiting":0,"delayed":1,"leased":0,"dead":0,"oldestAge":"#))
    try await enqueue("a")
    let line = try #require(try await receive().first)
    #expect(try await larder("release", line.receipt, "--delay", "1h") == .done())
    #expect(try await larder("receive") == .done())
    #expect(try await larder("stat").output.hasPrefix(#"{"waiting":0,"delayed":2,"leased":0,"dead":0,"oldestAge":"#))
  }

  // MARK: Receipts

  @Test func `a stale receipt is reported and the others are processed`() async throws {
    try await enqueue("a", "b")
    let first = try await receive("--max", "2")
    // A write makes the receipt of a leased item stale.
    #expect(try await Tool.larder("set", queue, "a", "\"new\"") == .done())
    let run = try await larder("extend", first[0].receipt, first[1].receipt, "--lease", "1h")
    #expect(run.status == 3 && run.output == "{\"staleReceipt\":\"\(first[0].receipt)\"}\n")
    #expect(run.errors.hasPrefix("larder: 1 of 2 receipts are stale"))
    let second = try await larder("acknowledge", first[0].receipt, first[1].receipt)
    #expect(second.status == 3 && second.output == "{\"staleReceipt\":\"\(first[0].receipt)\"}\n")
    let again = try await receive("--max", "2")
    #expect(again.map(\.key) == ["a"])
    let released = try await larder("release", first[0].receipt)
    #expect(released.status == 3 && released.errors.hasPrefix("larder: the receipt is stale"))
    #expect(try await larder("acknowledge", again[0].receipt) == .done())
    #expect(try await Tool.larder("count", queue) == .done("0\n"))
  }

  @Test func `the exit code reports stale receipts without a reader`() async throws {
    try await enqueue("a")
    // The reader closes its end before the tool starts.
    let line = """
      dir=$(mktemp -d) && mkfifo "$dir/gone" || exit 99
      { read go < "$dir/gone"; larder queue acknowledge "$1" 9-9-9; echo "status $?" >&2; } | {
        exec 0<&-; echo go > "$dir/gone"; cat /dev/null; }
      rm -r "$dir"
      """
    let run = try await Tool.shell(line, queue)
    #expect(
      run.output.isEmpty && run.errors.hasPrefix("larder: the receipt is stale") && run.errors.hasSuffix("status 3\n"))
  }

  @Test func `an invalid receipt is a usage error`() async throws {
    try await enqueue("a")
    for text in ["x", "1-1", "1-1-1-1", "+1-1-1", ""] {
      #expect(try await larder("acknowledge", text).failed(64, "invalid receipt"))
    }
    #expect(try await larder("acknowledge").failed(64, "See `larder queue acknowledge --help`."))
    #expect(try await larder("extend", "1-1-1").failed(64, "--lease"))
    #expect(try await larder("extend", "1-1-1", "--lease", "0s").failed(64, "greater than zero"))
    #expect(try await larder("receive", "--max", "0").failed(64, "at least 1"))
  }

  // MARK: Dead letters

  @Test func `dead letters are shown requeued and purged`() async throws {
    try await enqueue("a", "b", "c")
    for attempt in 1...5 {
      for line in try await receive("--max", "3") {
        let run = try await larder("release", line.receipt)
        #expect(run.status == 0 && run.output.isEmpty)
        // A dead letter is reported.
        let report = /larder: "[abc]": item \d became a dead letter after 5 deliveries \(tooManyDeliveries\)\n/
        #expect(attempt == 5 ? run.errors.wholeMatch(of: report) != nil : run.errors.isEmpty)
      }
    }
    let dead = try await larder("dead list")
    #expect(dead.status == 0)
    let dates = dead.output.replacing(/"date":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"/, with: "DATE")
    let expected = ["a", "b", "c"].enumerated().map { index, key in
      """
      {"key":"\(key)","value":"\(key)","attempts":5,"reason":"tooManyDeliveries",DATE,"sequence":\(index + 1)}

      """
    }
    #expect(dates == expected.joined())
    let lines = dead.output.split(separator: "\n").map { "\($0)\n" }
    #expect(
      try await larder("dead list", "--limit", "2")
        == ToolRun(status: 0, output: lines[0] + lines[1], errors: "next: 2\n"))
    #expect(try await larder("dead list", "--limit", "2", "--after", "2") == .done(lines[2]))
    #expect(try await larder("dead list", "--limit", "3") == .done(dead.output))
    #expect(try await larder("dead list", "--limit", "0").failed(64, "at least 1"))
    #expect(try await larder("receive") == .done())
    #expect(try await larder("dead requeue", "b", "nobody") == .done("{\"requeued\":1}\n"))
    #expect(try await receive("--max", "9").map(\.key) == ["b"])
    #expect(try await larder("dead purge", "c", "nobody") == .done("{\"purged\":1}\n"))
    // A dead letter cannot be requeued if a live item has its key.
    #expect(try await Tool.larder("set", queue, "a", "1") == .done())
    #expect(try await larder("dead requeue", "a").failed(65, "Nothing was changed"))
    #expect(try await larder("dead requeue", "--all") == .done("{\"requeued\":0}\n"))
    #expect(try await Tool.larder("remove", queue, "a") == .done())
    #expect(try await larder("dead requeue", "--all") == .done("{\"requeued\":1}\n"))
    #expect(try await larder("dead requeue", "--all", "a").failed(64, "either keys or --all"))
    #expect(try await larder("dead requeue").failed(64, "either keys or --all"))
    for _ in 0..<5 {
      for line in try await receive("--max", "3") { _ = try await larder("release", line.receipt) }
    }
    #expect(try await larder("dead purge") == .done("{\"purged\":1}\n"))
    #expect(try await larder("dead list") == .done())
  }

  @Test func `an undecodable item blocks no other`() async throws {
    let bytes = try await QueueStore<[UInt8]>(
      path: folder.file("queue"), codec: RawJSON(),
      configuration: QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1)))
    try await bytes.enqueue(Array("{dead".utf8), id: "a")
    let first = try #require(try await bytes.receive(lease: .seconds(3600)))
    try await bytes.release(first.receipt)
    try await bytes.enqueue(Array("{broken".utf8), id: "b")
    try await bytes.enqueue(Array("1".utf8), id: "c")
    try await bytes.close()
    // The undecodable item is delivered again later.
    #expect(try await receive("--max", "2").map(\.key) == ["c"])
    #expect(try await larder("stat").output.contains(#""leased":1,"dead":1,"#))
    let dead = try await larder("dead list").output
    #expect(dead.hasPrefix(#"{"key":"a","value":null,"attempts":1"#))
    #expect(dead.contains(#""message":"#))
  }

  @Test func `every verb reports damage and serves the other items`() async throws {
    try await enqueue("a", "b", "c")
    let segment = folder.file("queue/segment-00000001")
    var bytes = try Data(contentsOf: URL(fileURLWithPath: segment))
    let place = try #require(bytes.firstRange(of: Data("\"b\"".utf8)))
    bytes[place.lowerBound] ^= 1
    try bytes.write(to: URL(fileURLWithPath: segment))
    let list = try await Tool.larder("list", queue, "--keys")
    #expect(list.status == 0 && list.output == "{\"key\":\"a\"}\n{\"key\":\"c\"}\n")
    let receive = try await larder("receive", "--max", "9")
    #expect(receive.status == 0 && receive.output.split(separator: "\n").count == 2)
    for run in [list, receive, try await larder("stat"), try await Tool.larder("export", queue)] {
      #expect(run.errors.hasPrefix("larder: \(queue) is damaged: ") && run.errors.contains("bytes in 1 place cannot"))
    }
    #expect(try await Tool.larder("verify", queue).status == 2)
    // A missing file is reported, too.
    try FileManager.default.removeItem(atPath: segment)
    #expect(!(try await larder("stat").errors.isEmpty))
  }

  @Test func `expired items are received until they are purged`() async throws {
    #expect(try await Tool.larder("set", queue, "a", "1", "--ttl", "1ms") == .done())
    #expect(try await Tool.larder("list", queue) == .done())
    #expect(try await receive().map(\.key) == ["a"])
    #expect(try await Tool.larder("purge", queue).errors == "purged 1 entry\n")
    #expect(try await larder("stat").output.hasPrefix(#"{"waiting":0,"delayed":0,"leased":0,"dead":0,"#))
  }

  // MARK: The lock

  @Test func `each verb waits for the lock`() async throws {
    try await enqueue("a")
    let holder = try await QueueStore<[UInt8]>(path: folder.file("queue"), codec: RawJSON())
    #expect(try await larder("stat", "--wait", "0s").failed(75, "is open in another process"))
    #expect(try await larder("stat", "--wait", "20ms").failed(75, "is open in another process"))
    // The other verbs have the same option.
    #expect(try await Tool.larder("count", queue, "--wait", "0s").failed(75, "is open in another process"))
    async let stat = larder("stat", "--wait", "10m")
    try await holder.close()
    #expect(try await stat.status == 0)
  }

  @Test func `many processes share the items`() async throws {
    let line = """
      for i in 1 2 3 4 5; do
        larder queue enqueue "$1" "[$2,$i]" --id "$2-$i" --wait 5m > /dev/null || exit 1
        receipt=$(larder queue receive "$1" --wait 5m | sed 's/.*"receipt":"\\(.*\\)"}/\\1/')
        larder queue acknowledge "$1" "$receipt" --wait 5m || exit 1
      done
      """
    try await withThrowingTaskGroup(of: ToolRun.self) { [queue] group in
      for task in 0..<4 { group.addTask { try await Tool.shell(line, queue, "\(task)") } }
      for try await run in group { #expect(run == .done()) }
    }
    let stat = #"{"waiting":0,"delayed":0,"leased":0,"dead":0,"oldestAge":null}"#
    #expect(try await larder("stat") == .done("\(stat)\n"))
  }

  // MARK: Missing queues

  @Test func `only enqueue creates a queue`() async throws {
    for verb in ["receive", "dead list", "dead purge", "stat", "watch"] {
      #expect(try await larder(verb).failed(66, "queue enqueue and queue move create a store"))
    }
    for verb in ["acknowledge", "release"] { #expect(try await larder(verb, "1-1-1").status == 66) }
    #expect(try await larder("dead requeue", "a").status == 66)
    #expect(try folder.names() == [])
    #expect(try await Tool.larder("queue", "receive", "json:x.json").failed(64, "is not a queue"))
    #expect(try await Tool.larder("queue", "frob").failed(64, "frob"))
    #expect(try await Tool.larder("help", "queue", "frob").failed(64, "frob"))
    #expect(try await Tool.larder("help", "queue", "receive").output.contains("--lease"))
  }

  // MARK: The other verbs

  @Test func `other verbs use a queue as a store`() async throws {
    let lines = ["a", "b", "c"].map { "{\"key\":\"\($0)\",\"value\":[\"\($0)\",1.50]}\n" }.joined()
    #expect(try await Tool.larder("import", queue, input: lines).status == 0)
    #expect(try await receive().map(\.key) == ["a"])
    #expect(try await Tool.larder("export", queue) == .done(lines))
    #expect(try await Tool.larder("get", queue, "b") == .done("[\"b\",1.50]\n"))
    #expect(try await Tool.larder("list", queue, "--keys", "--reverse", "--limit", "1").output == "{\"key\":\"c\"}\n")
    #expect(try await Tool.larder("remove", queue, "a") == .done())
    #expect(try await Tool.larder("count", queue) == .done("2\n"))
    let stat = try await Tool.larder("stat", queue, "--json").output
    #expect(stat.contains("\"entryCount\":2") && stat.contains("\"waiting\":2"))
    #expect(try await Tool.larder("verify", queue).errors == "2 entries, no damage\n")
    #expect(try await Tool.larder("compact", queue) == .done())
    #expect(try await Tool.larder("backup", queue, folder.file("backup")) == .done())
    #expect(try await Tool.larder("count", "queue:\(folder.file("backup"))") == .done("2\n"))
    let copy = "json:\(folder.file("copy.json"))"
    let refused = try await Tool.larder("copy", queue, copy)
    #expect(refused.status == 64 && refused.errors.contains("larder queue move"), "\(refused)")
    #expect(!FileManager.default.fileExists(atPath: folder.file("copy.json")))
    #expect(try await Tool.larder("bench", queue, "--entries", "10", "--json").status == 0)
    #expect(try await Tool.larder("clear", queue) == .done())
    #expect(try await Tool.larder("count", queue) == .done("0\n"))
  }

  @Test func `a queue of a program is opened with its codec`() async throws {
    let program = try await QueueStore<[String: Int]>(path: folder.file("queue"))
    try await program.enqueue(["n": 7], id: "a")
    try await program.close()
    #expect(try await larder("enqueue", #"{"n":8}"#, "--id", "b").status == 0)
    let received = try await larder("receive", "--lease", "1h").output
    #expect(received.hasPrefix(#"{"key":"a","value":{"n":7},"attempt":1,"receipt":""#))
    let again = try await QueueStore<[String: Int]>(path: folder.file("queue"))
    #expect(try await again.receive(lease: .seconds(3600))?.value == ["n": 8])
    try await again.close()
  }

  @Test(arguments: ["pause", "resume"])
  func `a queue of one program cannot be paused`(_ verb: String) async throws {
    try await enqueue("a")
    #expect(try await larder(verb).failed(64, "cannot be paused"))
  }

  // MARK: Metrics

  /// The verbs of the group with arguments for a queue with one item, and the operation that they make.
  static let verbs: [(verb: String, arguments: [String], row: String)] = [
    ("enqueue", ["2"], "enqueue"), ("receive", [], "receive"), ("acknowledge", ["1-1-1"], "acknowledge"),
    ("release", ["1-1-1"], "release"), ("extend", ["1-1-1", "--lease", "1s"], "extend"),
    ("dead list", [], "deadLetters"),
    ("dead requeue", ["a"], "requeue"), ("dead expire", ["--older-than", "1d"], "deadLetters"),
    ("dead purge", [], "purgeDeadLetters"), ("stat", [], "statistics"), ("watch", ["--count", "1"], "statistics"),
    ("leased", [], "leasedItems"),
  ]

  @Test func `every verb of the group reports its operation`() async throws {
    // `move` has two queues, and a queue of its own cannot be paused. `QueueMoveTests` and `QueueInStoreTests` test these.
    let verbs = LarderCommand.leaves(of: ["queue"]).map { $0.dropFirst().joined(separator: " ") }
    #expect(Self.verbs.map(\.verb) == verbs.filter { !["move", "pause", "resume"].contains($0) })
    try await enqueue("a")
    for (verb, arguments, row) in Self.verbs {
      let run = try await ToolRun.run(Tool.path, Self.words(of: verb) + [queue] + arguments + ["--metrics"])
      #expect(run.status == (arguments.first == "1-1-1" ? 3 : 0), "\(verb)")
      let rows = run.errors.split(separator: "\n").map { $0.split(separator: " ").prefix(2).joined(separator: " ") }
      for row in ["\(queue) count", "open 1", "\(row) 1", "close 1"] { #expect(rows.contains(row), "\(verb)") }
    }
  }
}
