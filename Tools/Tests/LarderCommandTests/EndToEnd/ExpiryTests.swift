import Foundation
import Larder
import LarderExpiry
import Testing

@testable import LarderCommand
@testable import StoreAccess

/// Tests of the verbs with entries that expire.
///
/// The library writes the expired entries, so no test waits for a deadline.
@Suite struct ExpiryTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  /// Returns the codec name of a new store with values that expire.
  private func codecName(_ kind: StoreKind) -> String {
    [.lmdb, .sqlite].contains(kind) ? "cbor+expiring" : "json+expiring"
  }

  private func open(_ url: String) async throws -> AnyDataStore<Expiring<JSONText>> {
    let kind = try #require(StoreKind(rawValue: StoreURL(url).scheme))
    let untyped = try await Stores.registry.open(StoreURL(url), newCodecName: codecName(kind))
    let codec = try #require(ValueCodecs().expiringCodec(named: untyped.codecName))
    return try await untyped.typed(codec: codec)
  }

  /// Returns the deadlines of all stored entries, including expired ones.
  private func stored(_ url: String) async throws -> [StoreKey: ExpiryDeadline?] {
    let store = try await open(url)
    let entries = try await store.entries(in: .all, limit: .max)
    try await store.close()
    return Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value.deadline) })
  }

  /// Creates a store with two live entries, one of them without a deadline, and three expired ones.
  private func makeStore(_ kind: StoreKind) async throws -> String {
    let url = kind.url(in: folder)
    let store = try await open(url)
    let (past, future) = (ExpiryDeadline(.distantPast), ExpiryDeadline(.distantFuture))
    try await store.apply([
      .set("a", Expiring(JSONText("1"), deadline: past)), .set("b", Expiring(JSONText("2"), deadline: future)),
      .set("c", Expiring(JSONText("3"), deadline: past)), .set("d", Expiring(JSONText("4"))),
      .set("e", Expiring(JSONText("5"), deadline: past)),
    ])
    try await store.close()
    return url
  }

  @Test(arguments: StoreKind.allCases) func `a store remembers that its values expire`(kind: StoreKind) async throws {
    let url = kind.url(in: folder)
    let before = Date.now
    #expect(try await Tool.larder("set", url, "a", "[1]", "--ttl", "1h") == .done())
    #expect(try await Tool.larder("set", url, "b", "2") == .done())
    #expect(try await Stores.registry.open(StoreURL(url)).codecName == codecName(kind))
    let deadlines = try await stored(url)
    let deadline = try #require(deadlines["a"] ?? nil)
    #expect(deadline.date >= before + 3599.999 && deadline.date <= Date.now + 3600)
    #expect(deadline.window == nil)
    #expect(deadlines["b"] == .some(nil))
    #expect(try await Tool.larder("get", url, "a") == .done("[1]\n"))
  }

  @Test(arguments: StoreKind.allCases) func `every verb hides expired entries`(kind: StoreKind) async throws {
    let url = try await makeStore(kind)
    #expect(try await Tool.larder("get", url, "a") == ToolRun(status: 1, output: "", errors: ""))
    #expect(try await Tool.larder("get", url, "b") == .done("2\n"))
    #expect(try await Tool.larder("count", url) == .done("2\n"))
    #expect(try await Tool.larder("count", url, "--prefix", "a") == .done("0\n"))
    #expect(try await Tool.larder("list", url, "--keys") == .done("{\"key\":\"b\"}\n{\"key\":\"d\"}\n"))
    let lines = "{\"key\":\"b\",\"value\":2}\n{\"key\":\"d\",\"value\":4}\n"
    #expect(try await Tool.larder("export", url) == .done(lines))
    #expect(try await Tool.larder("list", url, "--limit", "1").output == "{\"key\":\"b\",\"value\":2}\n")
    #expect(try await Tool.larder("verify", url) == ToolRun(status: 0, output: "", errors: "5 entries, no damage\n"))
    let table = try await Tool.larder("stat", url).output
    #expect(table.contains(/\nentries +2\n/))
    #expect(table.contains(/\nexpired entries +3\n/))
    let json = try await Tool.larder("stat", url, "--json").output
    #expect(json.contains("\"entryCount\":2,"))
    #expect(json.contains("\"details\":{\"expiredEntries\":3,"))
    // Reading removes nothing.
    #expect(try await stored(url).count == 5)
    #expect(try await Tool.larder("remove", url, "a", "b") == .done())
    #expect(try await Tool.larder("clear", url, "--prefix", "c") == .done())
    #expect(try await stored(url).keys.sorted() == ["d", "e"])
  }

  @Test(arguments: StoreKind.allCases) func `purge reports the number of entries`(kind: StoreKind) async throws {
    let url = try await makeStore(kind)
    #expect(try await Tool.larder("purge", url) == ToolRun(status: 0, output: "", errors: "purged 3 entries\n"))
    #expect(try await stored(url).keys.sorted() == ["b", "d"])
    #expect(try await Tool.larder("purge", url) == ToolRun(status: 0, output: "", errors: "purged 0 entries\n"))
    #expect(try await Tool.larder("purge", "\(url)x").failed(66, "no"))
  }

  @Test(arguments: StoreKind.allCases) func `expired entries can be written again`(kind: StoreKind) async throws {
    let url = try await makeStore(kind)
    #expect(try await Tool.larder("set", url, "a", "9") == .done())
    #expect(try await Tool.larder("get", url, "a") == .done("9\n"))
    // An entry written without a time to live has none.
    #expect(try await Tool.larder("set", url, "b", "9") == .done())
    #expect(try await stored(url)["b"] == .some(nil))
  }

  @Test(arguments: StoreKind.allCases) func `plain stores refuse time to live`(kind: StoreKind) async throws {
    let url = kind.url(in: folder)
    #expect(try await Tool.larder("set", url, "a", "1") == .done())
    let reason = "holds values that do not expire, because it was created without --ttl"
    #expect(try await Tool.larder("set", url, "a", "2", "--ttl", "5m").failed(64, reason))
    let line = "{\"key\":\"a\",\"value\":2}\n"
    #expect(try await Tool.larder("import", url, "--ttl", "5m", input: line).failed(64, reason))
    #expect(try await Tool.larder("get", url, "a", "--slide").failed(64, reason))
    #expect(try await Tool.larder("purge", url).failed(64, reason))
    let expiring = kind.url("expiring", in: folder)
    #expect(try await Tool.larder("set", expiring, "a", "2", "--ttl", "5m") == .done())
    #expect(try await Tool.larder("copy", expiring, url).failed(64, reason))
    #expect(try await Tool.larder("export", url) == .done("{\"key\":\"a\",\"value\":1}\n"))
  }

  @Test(arguments: ["0s", "5", "1.5s", "soon", "-1s"]) func `an invalid time to live is refused`(text: String)
    async throws
  {
    let url = StoreKind.json.url(in: folder)
    let run = try await Tool.larder("set", url, "a", "1", "--ttl=\(text)")
    #expect(run.failed(64, "--ttl"))
    #expect(try folder.names() == [])
  }

  @Test(arguments: StoreKind.allCases) func `slide extends the deadline`(kind: StoreKind) async throws {
    let url = kind.url(in: folder)
    #expect(try await Tool.larder("set", url, "a", "1", "--ttl", "5m") == .done())
    let before = Date.now
    #expect(try await Tool.larder("get", url, "a", "--slide", "--ttl", "1h") == .done("1\n"))
    let deadline = try #require(try await stored(url)["a"] ?? nil)
    #expect(deadline.date >= before + 3599.999 && deadline.date <= Date.now + 3600)
    #expect(deadline.window == nil)
    // Without a time, the deadline is not extended.
    #expect(try await Tool.larder("get", url, "a", "--slide").failed(64, "--slide --ttl 30m"))
    #expect(try await stored(url)["a"] == deadline)
    #expect(try await Tool.larder("get", url, "a", "--ttl", "2h").failed(64, "--ttl requires --slide"))
  }

  @Test(arguments: [[], ["--ttl", "1h"]]) func `slide shortens no deadline`(options: [String]) async throws {
    let url = try await makeStore(.json)
    let before = try await stored(url)
    // No deadline; a distant one; expired; missing.
    #expect(try await ToolRun.run(Tool.path, ["get", url, "d", "--slide"] + options) == .done("4\n"))
    #expect(try await Tool.larder("get", url, "b", "--slide", "--ttl", "1h") == .done("2\n"))
    for key in ["a", "missing"] {
      #expect(try await ToolRun.run(Tool.path, ["get", url, key, "--slide"] + options).status == 1)
    }
    #expect(try await stored(url) == before)
  }

  @Test func `a sliding deadline is extended by its window`() async throws {
    let url = StoreKind.json.url(in: folder)
    let store = try await open(url)
    try await store.expiring(.sliding(.seconds(3600))) { Date.now - 1800 }.setValue(JSONText("1"), forKey: "a")
    try await store.close()
    let before = try await stored(url)
    // Looking at an entry is not using it.
    #expect(try await Tool.larder("get", url, "a") == .done("1\n"))
    #expect(try await stored(url) == before)
    let start = Date.now
    #expect(try await Tool.larder("get", url, "a", "--slide") == .done("1\n"))
    let deadline = try #require(try await stored(url)["a"] ?? nil)
    #expect(deadline.date >= start + 3599.999 && deadline.date <= Date.now + 3600)
    #expect(deadline.window == .seconds(3600))
    // The deadline still slides.
    #expect(try await Tool.larder("get", url, "a", "--slide", "--ttl", "2h") == .done("1\n"))
    #expect(try await stored(url)["a"]??.window == .seconds(7200))
  }

  @Test(arguments: StoreKind.allCases) func `lines are imported with a time to live`(kind: StoreKind) async throws {
    let url = kind.url(in: folder)
    let lines = (0..<50).map { "{\"key\":\"\($0)\",\"value\":\($0)}\n" }.joined()
    #expect(try await Tool.larder("import", url, "--ttl", "7d", "--batch", "7", input: lines).status == 0)
    let deadlines = try await stored(url)
    #expect(deadlines.count == 50)
    #expect(deadlines.values.allSatisfy { ($0?.date ?? .distantPast) > Date.now + 604_000 })
    // Without --ttl, imported entries have no deadline.
    #expect(try await Tool.larder("import", url, input: lines).status == 0)
    #expect(try await stored(url).values.allSatisfy { $0 == nil })
  }

  @Test(arguments: StoreKind.pairs(for: "deadlinesAreCopied"))
  func deadlinesAreCopied(kind: StoreKind, other: StoreKind) async throws {
    let url = try await makeStore(kind)
    let copy = other.url("copy", in: folder)
    #expect(try await Tool.larder("copy", url, copy).errors.hasPrefix("copied 2 entries in "))
    #expect(try await stored(copy) == stored(url).filter { ["b", "d"].contains($0.key) })
    #expect(try await Tool.larder("copy", url, copy).errors.contains("copied 0 entries"))
    // A different deadline is a difference, too.
    #expect(try await Tool.larder("set", copy, "b", "2") == .done())
    #expect(try await Tool.larder("copy", url, copy).errors.contains("copied 1 entry"))
    // Plain values can be copied to a store of values that expire, and get no deadline.
    let plain = kind.url("plain", in: folder)
    #expect(try await Tool.larder("set", plain, "b", "7") == .done())
    #expect(try await Tool.larder("copy", plain, copy).status == 0)
    #expect(try await stored(copy)["b"] == .some(nil))
  }

  @Test func `a store in memory accepts time to live`() async throws {
    #expect(try await Tool.larder("set", "memory:", "a", "1", "--ttl", "1s") == .done())
  }

  @Test func `damage is found in values that expire`() async throws {
    let url = try await makeStore(.json)
    let path = folder.file(StoreKind.json.fileName())
    let text = try String(contentsOfFile: path, encoding: .utf8)
    try text.replacing("\"d\":{\"value\":4}", with: "\"d\":{\"valeu\":4}").write(
      toFile: path, atomically: true, encoding: .utf8)
    let verify = try await Tool.larder("verify", url)
    #expect(verify.status == 2)
    #expect(verify.output.hasPrefix("{\"key\":\"d\","))
    #expect(try await Tool.larder("get", url, "d").failed(65, "expires, window and value"))
    #expect(try await Tool.larder("purge", url).errors == "purged 3 entries\n")
  }
}
