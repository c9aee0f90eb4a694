import Foundation
import Larder
import LarderLMDB
import LarderStoreQueue
import Testing

@testable import LarderCommand
@testable import StoreAccess

/// Tests of `larder queue` with a queue in another store.
@Suite struct QueueInStoreTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func url(_ kind: StoreKind = .lmdb) -> String { kind.url("queues", in: folder) }

  private func larder(_ verb: String, _ arguments: String..., kind: StoreKind = .lmdb) async throws -> ToolRun {
    try await ToolRun.run(
      Tool.path, ["queue"] + verb.split(separator: " ").map(String.init) + [url(kind), "--prefix", "jobs/"] + arguments)
  }

  private func enqueue(_ id: String, _ options: String..., kind: StoreKind = .lmdb) async throws {
    let run = try await ToolRun.run(
      Tool.path, ["queue", "enqueue", url(kind), "\"\(id)\"", "--prefix", "jobs/", "--id", id] + options)
    #expect(run == .done("{\"key\":\"\(id)\",\"isDuplicate\":false}\n"))
  }

  /// The line that `receive` prints for a delivery.
  private struct Line: Decodable {
    let key: String
    let value: String
    let receipt: String
  }

  private func receive(_ max: Int = 9, kind: StoreKind = .lmdb) async throws -> [Line] {
    let run = try await larder("receive", "--max", "\(max)", "--lease", "1h", kind: kind)
    #expect(run.status == 0 && run.errors.isEmpty, "\(run)")
    return try run.output.split(separator: "\n").map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
  }

  @Test(arguments: [StoreKind.lmdb, .json])
  func `every verb works`(kind: StoreKind) async throws {
    for id in ["a", "b"] { try await enqueue(id, "--group", "g", kind: kind) }
    try await enqueue("c", "--priority", "5", kind: kind)
    try await enqueue("d", "--delay", "1h", kind: kind)
    // The priority comes first, and `b` waits for `a`, which is in its group.
    let lines = try await receive(kind: kind)
    #expect(lines.map(\.key) == ["c", "a"] && lines.map(\.value) == ["c", "a"])
    let stat = try await larder("stat", kind: kind).output
    #expect(stat.hasPrefix(#"{"waiting":1,"delayed":1,"leased":2,"dead":0,"oldestAge":"#))
    let leased = try await larder("leased", kind: kind).output
    #expect(leased.contains(/{"key":"c","attempt":1,"deadline":"20[^"]+Z","sequence":\d+}\n/), "\(leased)")
    #expect(leased.contains(/{"key":"a","attempt":1,"deadline":"20[^"]+Z","sequence":\d+,"group":"g"}\n/))
    #expect(leased.split(separator: "\n").count == 2)
    #expect(try await larder("extend", lines[0].receipt, "--lease", "1h", kind: kind) == .done())
    #expect(try await larder("acknowledge", lines[0].receipt, kind: kind) == .done())
    #expect(try await larder("acknowledge", lines[0].receipt, kind: kind).status == 3)
    #expect(try await larder("release", lines[1].receipt, kind: kind) == .done())
    for round in 2...5 {
      let line = try #require(try await receive(1, kind: kind).first)
      let run = try await larder("release", line.receipt, kind: kind)
      #expect(line.key == "a" && run.status == 0)
      #expect(
        round < 5
          ? run.errors.isEmpty : run.errors.contains("became a dead letter after 5 deliveries (tooManyDeliveries)"))
    }
    #expect(try await larder("dead list", kind: kind).output.hasPrefix(#"{"key":"a","value":"a","attempts":5,"#))
    #expect(try await larder("dead requeue", "a", kind: kind) == .done("{\"requeued\":1}\n"))
    #expect(try await receive(1, kind: kind).map(\.key) == ["b"])
    #expect(try await larder("dead expire", "--older-than", "0s", kind: kind) == .done("{\"expired\":0}\n"))
    #expect(try await larder("dead purge", kind: kind) == .done("{\"purged\":0}\n"))
    #expect(try await larder("watch", "--count", "1", kind: kind).output.hasSuffix("\"perSecond\":null}\n"))
  }

  @Test(arguments: [StoreKind.lmdb, .json])
  func `a paused queue`(kind: StoreKind) async throws {
    try await enqueue("a", kind: kind)
    #expect(try await larder("pause", "--metrics", kind: kind).errors.contains(/pause +1/))
    #expect(try await larder("pause", kind: kind) == .done("{\"paused\":true}\n"))
    #expect(try await receive(kind: kind).isEmpty)
    try await enqueue("b", kind: kind)
    #expect(try await larder("stat", kind: kind).output.hasSuffix(",\"paused\":true}\n"))
    #expect(try await larder("resume", kind: kind) == .done("{\"paused\":false}\n"))
    #expect(try await larder("stat", kind: kind).output.contains("paused") == false)
    #expect(try await receive(kind: kind).map(\.key) == ["a", "b"])
  }

  @Test func `a program shares the queue`() async throws {
    try await enqueue("a")
    let store = try await LMDBStore(path: folder.file(StoreKind.lmdb.fileName("queues")), codec: .raw)
    let queue = try await store.queue(of: String.self, prefix: "jobs/", codec: .json())
    #expect(try await queue.receive(max: 9, lease: .seconds(3600)).map(\.value) == ["a"])
    try await queue.enqueue("b", id: "b")
    // The program has the store open.
    #expect(try await receive().map(\.key) == ["b"])
    try await queue.close()
  }

  @Test func `the codec of the items is chosen`() async throws {
    let text = #"{"n":1,"b":{"$base64":"AQID"}}"#
    #expect(
      try await Tool.larder("queue", "enqueue", url(), text, "--prefix", "c/", "--codec", "cbor", "--id", "a").status
        == 0)
    // The queue records it.
    let received = try await Tool.larder("queue", "receive", url(), "--prefix", "c/")
    #expect(received.output.hasPrefix("{\"key\":\"a\",\"value\":\(text),"))
    #expect(try await Tool.larder("queue", "stat", url(), "--prefix", "c/", "--codec", "cbor").status == 0)
    #expect(
      try await Tool.larder("queue", "stat", url(), "--prefix", "c/", "--codec", "json").failed(
        65, "have the codec cbor"))
    #expect(try await larder("stat", "--codec", "yaml").failed(64, "yaml"))
  }

  @Test func `a queue of values with versions needs no option`() async throws {
    let store = try await LMDBStore(path: folder.file(StoreKind.lmdb.fileName("queues")), codec: .raw)
    let queue = try await store.queue(of: String.self, prefix: "v/", codec: .json().versioned(2))
    try await queue.enqueue("Ada", id: "a")
    try await queue.close()
    let received = try await Tool.larder("queue", "receive", url(), "--prefix", "v/")
    #expect(received.output.hasPrefix(#"{"key":"a","value":{"$version":2,"$value":"Ada"},"#), "\(received)")
  }

  @Test func `many processes share the items`() async throws {
    let line = """
      for i in 1 2 3; do
        larder queue enqueue "$1" --prefix q/ "[$2,$i]" --id "$2-$i" > /dev/null || exit 1
        receipt=$(larder queue receive "$1" --prefix q/ | sed 's/.*"receipt":"\\(.*\\)"}/\\1/')
        larder queue acknowledge "$1" --prefix q/ "$receipt" || exit 1
      done
      """
    let url = url()
    try await withThrowingTaskGroup(of: ToolRun.self) { group in
      for task in 0..<4 { group.addTask { try await Tool.shell(line, url, "\(task)") } }
      for try await run in group { #expect(run == .done()) }
    }
    let stat = try await Tool.larder("queue", "stat", url, "--prefix", "q/")
    #expect(stat == .done("{\"waiting\":0,\"delayed\":0,\"leased\":0,\"dead\":0,\"oldestAge\":null}\n"))
  }

  // MARK: Refusals

  @Test func `a queue must be named exactly`() async throws {
    #expect(try await larder("receive").failed(66, "queue enqueue and queue move create a store"))
    try await enqueue("a")
    #expect(try await Tool.larder("queue", "stat", url()).failed(64, "is not a queue"))
    #expect(try await Tool.larder("queue", "stat", url(), "--prefix", "").failed(64, "--prefix is empty"))
    let other = try await Tool.larder("queue", "receive", url(), "--prefix", "mail/")
    #expect(other.failed(66, "no queue with the prefix \"mail/\""))
    // The prefix of a prefix would be a queue among the entries of another one.
    for verb in [["receive"], ["enqueue", "1"]] {
      let run = try await ToolRun.run(
        Tool.path, ["queue", verb[0], url()] + verb.dropFirst() + ["--prefix", "job"])
      #expect(run.failed(64, "are not those of a queue"))
    }
    let queue = "queue:\(folder.file("queue"))"
    for option in [["--prefix", "a"], ["--codec", "cbor"]] {
      let run = try await ToolRun.run(Tool.path, ["queue", "enqueue", queue, "1"] + option)
      #expect(run.failed(64, "is a queue itself"))
    }
    #expect(try folder.names().allSatisfy { $0.hasPrefix("queues.lmdb") })
  }

  @Test(arguments: [StoreKind.lmdb, .json])
  func `a store of other values is refused`(kind: StoreKind) async throws {
    #expect(try await Tool.larder("set", url(kind), "k", "1") == .done())
    for verb in [["receive"], ["enqueue", "1"]] {
      let run = try await ToolRun.run(
        Tool.path, ["queue", verb[0], url(kind)] + verb.dropFirst() + ["--prefix", "jobs/"])
      #expect(run.failed(65, "needs the codec raw"))
    }
    #expect(try await Tool.larder("list", url(kind)) == .done("{\"key\":\"k\",\"value\":1}\n"))
  }

  // MARK: Dead letters

  @Test func `only old dead letters expire`() async throws {
    let start = Date(timeIntervalSince1970: 1_800_000_000)
    let now = Locked(start)
    let queue = try await StoreQueue(
      MemoryStore<[UInt8]>(), prefix: "q", codec: JSONTextCodec(),
      configuration: StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1)),
      environment: QueueEnvironment(now: { now.withLock { $0 } }))
    // One dead letter of each key, an hour apart, and a second one of `a`.
    for key: StoreKey in ["a", "b", "a"] {
      try await queue.enqueue(JSONText("1"), id: key)
      for delivery in try await queue.receive(max: 1, lease: .seconds(10)) {
        try await queue.release(delivery.receipt)
      }
      now.withLock { $0 += 3600 }
    }
    func expired(after hours: Double) async throws -> [StoreKey] {
      try await QueueDeadExpireCommand.keys(ofLettersIn: queue, until: start + hours * 3600)
    }
    #expect(try await queue.queueStatistics().counts.dead == 3)
    #expect(try await expired(after: -0.5) == [])
    #expect(try await expired(after: 0.5) == [])
    #expect(try await expired(after: 1) == ["b"])
    #expect(try await expired(after: 2) == ["a", "b"])
  }
}
