import Foundation
import Larder
import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct VerbTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func set(_ keys: String..., in store: String) async throws {
    for key in keys {
      #expect(try await Tool.larder("set", store, key, "\"\(key)\"") == .done())
    }
  }

  // MARK: Single keys

  @Test(arguments: StoreKind.allCases) func `get prints the value that was set`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("set", store, "ada", #"{"name": "Ada"}"#) == .done())
    #expect(try await Tool.larder("get", store, "ada") == .done("{\"name\":\"Ada\"}\n"))
    #expect(try await Tool.larder("set", store, "ada", "-", input: " [1,\n2] \n") == .done())
    #expect(try await Tool.larder("get", store, "ada") == .done("[1,2]\n"))
  }

  @Test(arguments: StoreKind.allCases) func `a missing key exits with 1 and prints nothing`(kind: StoreKind)
    async throws
  {
    let store = kind.url(in: folder)
    try await set("a", in: store)
    #expect(try await Tool.larder("get", store, "b") == ToolRun(status: 1, output: "", errors: ""))
  }

  @Test(
    arguments: StoreKind.allCases,
    [
      "9007199254740993", "-0.0", "-5", "1.5", "null", "123456789012345678901234567890", "true", "\"\"",
      #""\u0000🦦""#, #"{"b":1,"a":{"a":[[],{}]},"b ":2}"#, "\"\(String(repeating: "x", count: 100_000))\"",
      "\(String(repeating: "[", count: 500))\(String(repeating: "]", count: 500))",
    ])
  func `values pass through unchanged`(kind: StoreKind, json: String) async throws {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("set", store, "k", "--", json) == .done())
    #expect(try await Tool.larder("get", store, "k") == .done("\(json)\n"))
    let line = "{\"key\":\"k\",\"value\":\(json)}\n"
    #expect(try await Tool.larder("export", store) == .done(line))
    let copy = kind.url("copy", in: folder)
    #expect(try await Tool.larder("import", copy, input: line).status == 0)
    #expect(try await Tool.larder("get", copy, "k") == .done("\(json)\n"))
  }

  /// JSON keeps the notation of numbers and escapes, CBOR their meaning.
  @Test(arguments: [
    ("1e308", "1e+308"), ("1.0", "1.0"), ("1E5", "100000.0"), ("0.1e1", "1.0"),
    ("123456789012345678901234567890.10", "1.2345678901234568e+29"), (#""\ud83e\udda6""#, #""🦦""#),
  ])
  func `notation is kept in JSON only`(json: String, meaning: String) async throws {
    for (kind, shown) in [(StoreKind.json, json), (.lmdb, meaning)] {
      let store = kind.url(in: folder)
      #expect(try await Tool.larder("set", store, "k", json) == .done())
      #expect(try await Tool.larder("get", store, "k") == .done("\(shown)\n"))
    }
  }

  @Test func `values that CBOR cannot hold are refused`() async throws {
    let store = StoreKind.lmdb.url(in: folder)
    for json in ["1e999", "1\(String(repeating: "0", count: 40))", #"{"a":1,"a":2}"#] {
      #expect(try await Tool.larder("set", store, "k", json).failed(65, "could not be encoded"))
    }
    #expect(try await Tool.larder("get", store, "k").status != 0)
  }

  @Test(arguments: StoreKind.allCases) func `a string of two megabytes passes through`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    let json = "\"\(String(repeating: "é", count: 1_000_000))\""
    #expect(try await Tool.larder("set", store, "k", "-", input: json) == .done())
    #expect(try await Tool.larder("get", store, "k").output == "\(json)\n")
    let line = try await Tool.larder("export", store).output
    #expect(try await Tool.larder("import", store, input: line).status == 0)
    #expect(try await Tool.larder("get", store, "k").output == "\(json)\n")
  }

  @Test(
    arguments: StoreKind.allCases,
    [
      "a b", "../../x", "/", "é", "e\u{301}", "🦦", "\n", "\u{1}", "key", String(repeating: "k", count: 511),
    ])
  func `any text is a key`(kind: StoreKind, key: String) async throws {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("set", store, key, "1") == .done())
    #expect(try await Tool.larder("get", store, key) == .done("1\n"))
    #expect(try await Tool.larder("remove", store, key) == .done())
    #expect(try await Tool.larder("get", store, key).status == 1)
  }

  @Test(arguments: StoreKind.allCases) func `composed and decomposed keys differ`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("set", store, "\u{E9}", "1") == .done())
    #expect(try await Tool.larder("set", store, "e\u{301}", "2") == .done())
    #expect(try await Tool.larder("count", store) == .done("2\n"))
    #expect(try await Tool.larder("get", store, "\u{E9}") == .done("1\n"))
  }

  @Test(arguments: StoreKind.allCases) func `a key that starts with a dash needs two dashes`(kind: StoreKind)
    async throws
  {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("set", store, "--", "-k", "-5") == .done())
    #expect(try await Tool.larder("get", store, "--", "-k") == .done("-5\n"))
    #expect(try await Tool.larder("get", store, "-k").failed(64, "Put -- before a key"))
    #expect(try await Tool.larder("list", store, "--keys", "--prefix=-") == .done("{\"key\":\"-k\"}\n"))
    #expect(try await Tool.larder("remove", store, "--", "-k", "--keys") == .done())
    #expect(try await Tool.larder("count", store) == .done("0\n"))
  }

  @Test(arguments: StoreKind.allCases) func `hexadecimal keys`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    for key in ["80c0", "00", "80C1", "ff", "61"] {
      #expect(try await Tool.larder("set", store, key, "1", "--key-hex") == .done())
    }
    #expect(try await Tool.larder("get", store, "80c0", "--key-hex") == .done("1\n"))
    #expect(try await Tool.larder("get", store, "a") == .done("1\n"))
    #expect(
      try await Tool.larder("list", store)
        == .done(
          """
          {"key":"\\u0000","value":1}
          {"key":"a","value":1}
          {"keyBytes":"80c0","value":1}
          {"keyBytes":"80c1","value":1}
          {"keyBytes":"ff","value":1}

          """))
    #expect(
      try await Tool.larder("list", store, "--keys", "--key-hex", "--prefix", "80", "--from", "80c1")
        == .done("{\"keyBytes\":\"80c1\"}\n"))
    #expect(try await Tool.larder("count", store, "--key-hex", "--prefix", "80") == .done("2\n"))
    #expect(try await Tool.larder("clear", store, "--key-hex", "--prefix", "80") == .done())
    #expect(try await Tool.larder("remove", store, "--key-hex", "ff", "00") == .done())
    #expect(try await Tool.larder("count", store) == .done("1\n"))
    #expect(try await Tool.larder("get", store, "8", "--key-hex").failed(64, "pairs of hexadecimal digits"))
  }

  // MARK: Many keys

  @Test(arguments: StoreKind.allCases) func `remove accepts several keys`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    try await set("a", "b", "c", in: store)
    #expect(try await Tool.larder("remove", store, "a", "missing", "c") == .done())
    #expect(try await Tool.larder("list", store, "--keys") == .done("{\"key\":\"b\"}\n"))
  }

  @Test(arguments: StoreKind.allCases) func `clear removes a prefix or all`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    try await set("a1", "a2", "b1", in: store)
    #expect(try await Tool.larder("clear", store, "--prefix", "a") == .done())
    #expect(try await Tool.larder("list", store, "--keys") == .done("{\"key\":\"b1\"}\n"))
    #expect(try await Tool.larder("clear", store) == .done())
    #expect(try await Tool.larder("count", store) == .done("0\n"))
  }

  @Test func `list prints only the values that contain a text`() async throws {
    let store = StoreKind.json.url(in: folder)
    var lines = ""
    for number in 1000..<1600 { lines += "{\"key\":\"k\(number)\",\"value\":{\"n\":\(number % 100)}}\n" }
    #expect(try await ToolRun.run(Tool.path, ["import", store, "-"], input: lines).status == 0)
    func keys(_ arguments: String...) async throws -> ToolRun {
      try await ToolRun.run(Tool.path, ["list", store, "--keys", "--contains", "\"n\":77"] + arguments)
    }
    let found = [1077, 1177, 1277, 1377, 1477, 1577].map { "{\"key\":\"k\($0)\"}\n" }
    #expect(try await keys() == .done(found.joined()))
    #expect(try await keys("--reverse", "--prefix", "k10") == .done(found[0]))
    let part = try await keys("--limit", "4")
    #expect(part.output == found[..<4].joined())
    let cursor = try #require(part.errors.split(separator: " ").last).trimmingCharacters(in: .newlines)
    #expect(try await keys("--limit", "4", "--after", cursor).output == found[4...].joined())
    let values = try await ToolRun.run(Tool.path, ["list", store, "--contains", "77", "--limit", "1"])
    #expect(values.output == "{\"key\":\"k1077\",\"value\":{\"n\":77}}\n")
    #expect(try await Tool.larder("list", store, "--contains", "").status == 64)
  }

  @Test(arguments: StoreKind.allCases) func `list is bounded on every side`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    try await set("a", "b1", "b2", "b3", "c", in: store)
    func keys(_ arguments: String...) async throws -> [String] {
      let run = try await ToolRun.run(Tool.path, ["list", store, "--keys"] + arguments)
      #expect(run.status == 0)
      #expect(run.errors == "")
      return run.output.split(separator: "\n").map { String($0.dropFirst(8).dropLast(2)) }
    }
    #expect(try await keys() == ["a", "b1", "b2", "b3", "c"])
    #expect(try await keys("--prefix", "b") == ["b1", "b2", "b3"])
    #expect(try await keys("--from", "b2") == ["b2", "b3", "c"])
    #expect(try await keys("--to", "b2") == ["a", "b1"])
    #expect(try await keys("--prefix", "b", "--from", "a", "--to", "b3", "--reverse") == ["b2", "b1"])
    #expect(try await keys("--from", "c", "--to", "a") == [])
    #expect(try await keys("--limit", "0") == [])
    #expect(try await keys("--limit", "5") == ["a", "b1", "b2", "b3", "c"])
    #expect(try await Tool.larder("list", store, "--from", "c") == .done("{\"key\":\"c\",\"value\":\"c\"}\n"))
    #expect(try await Tool.larder("count", store, "--prefix", "b") == .done("3\n"))
  }

  @Test(arguments: StoreKind.allCases, [false, true])
  func `a limited list continues at its cursor`(kind: StoreKind, isReversed: Bool) async throws {
    let store = kind.url(in: folder)
    try await set("a", "b", "c", "d", "e", in: store)
    let order = isReversed ? ["--reverse"] : []
    var output = ""
    var cursor: [String] = []
    for round in 1...3 {
      let run = try await ToolRun.run(Tool.path, ["list", store, "--keys", "--limit", "2"] + order + cursor)
      #expect(run.status == 0)
      output += run.output
      guard round < 3 else {
        #expect(run.errors == "")
        break
      }
      #expect(run.errors.hasPrefix("next: "))
      cursor = ["--after", String(run.errors.dropFirst(6).dropLast())]
      // The entry at the cursor can be removed in the meantime.
      if round == 1 { #expect(try await Tool.larder("remove", store, isReversed ? "d" : "b") == .done()) }
    }
    let keys = isReversed ? ["e", "d", "c", "b", "a"] : ["a", "b", "c", "d", "e"]
    #expect(output == keys.map { "{\"key\":\"\($0)\"}\n" }.joined())
    #expect(
      try await ToolRun.run(Tool.path, ["list", store] + (isReversed ? [] : ["--reverse"]) + cursor).status == 64)
    #expect(try await Tool.larder("list", store, "--after", "nonsense").failed(64, "cursor"))
  }

  @Test(arguments: [[], ["--keys"], ["--reverse"], ["--keys", "--reverse"]], [200, 256, 257, 600])
  func `a long list is complete across its cursors`(options: [String], limit: Int) async throws {
    let store = StoreKind.lmdb.url(in: folder)
    let lines = (100..<700).map { "{\"key\":\"\($0)\",\"value\":\($0)}\n" }
    #expect(try await Tool.larder("import", store, input: lines.joined()).status == 0)
    let expected = try await ToolRun.run(Tool.path, ["list", store] + options)
    #expect(expected.errors == "")
    #expect(expected.output.split(separator: "\n").count == 600)
    var output = ""
    var cursor: [String] = []
    // A list that ends exactly at the limit has no cursor.
    for round in stride(from: 600, to: 0, by: -limit) {
      let run = try await ToolRun.run(Tool.path, ["list", store, "--limit", "\(limit)"] + options + cursor)
      output += run.output
      #expect(run.errors.hasPrefix("next: ") == (round > limit))
      cursor = ["--after", String(run.errors.dropFirst(6).dropLast())]
    }
    #expect(output == expected.output)
  }

  // MARK: Several keys and bounds

  @Test(arguments: StoreKind.allCases) func `several keys are printed as entries`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    try await set("a", "b", in: store)
    let lines = "{\"key\":\"b\",\"value\":\"b\"}\n{\"key\":\"a\",\"value\":\"a\"}\n"
    #expect(try await Tool.larder("get", store, "b", "a") == .done(lines))
    #expect(try await Tool.larder("get", store, "b", "x", "a") == ToolRun(status: 1, output: lines, errors: ""))
    #expect(try await Tool.larder("get", store, "b", "a", "--raw").failed(64, "--raw prints one value"))
  }

  @Test(arguments: StoreKind.allCases) func `bounds apply to count export and clear`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    try await set("a", "b1", "b2", "c", in: store)
    #expect(try await Tool.larder("count", store, "--from", "b", "--to", "c") == .done("2\n"))
    let exported = try await Tool.larder("export", store, "--prefix", "b", "--reverse")
    #expect(exported == .done("{\"key\":\"b2\",\"value\":\"b2\"}\n{\"key\":\"b1\",\"value\":\"b1\"}\n"))
    for verb in ["clear", "count", "export", "list"] {
      #expect(try await Tool.larder(verb, store, "--prefix", "").failed(64, "--prefix is empty"))
    }
    #expect(try await Tool.larder("clear", store, "--from", "b2", "--dry-run") == .done("2\n"))
    #expect(try await Tool.larder("count", store) == .done("4\n"))
    #expect(try await Tool.larder("clear", store, "--from", "b2") == .done())
    #expect(try await Tool.larder("list", store, "--keys").output == "{\"key\":\"a\"}\n{\"key\":\"b1\"}\n")
  }

  /// `script` gives the tool a terminal.
  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/script") && !isDarwin))
  func `clear asks on a terminal`() async throws {
    let store = StoreKind.json.url(in: folder)
    try await set("a", in: store)
    let line = #"printf "$2" | script -qec "$3 clear $1" /dev/null"#
    // An empty line and the end of the input (Ctrl-D) mean no as well.
    for answer in ["n\\n", "\\n", "\\004"] {
      let no = try await Tool.shell(line, store, answer, Tool.path)
      #expect(no.status == 4, "\(answer)")
      #expect(no.output.contains("Remove 1 entry from \(store)? [y/N]"), "\(answer)")
      // The message is on its own line, even without a line end in the answer. The terminal may echo the others late.
      let end = answer == "\\004" ? "[y/N] \r\n" : ""
      #expect(no.output.contains("\(end)larder: nothing was removed. Answer y, or give --yes.\r\n"), "\(answer)")
      #expect(try await Tool.larder("count", store) == .done("1\n"))
    }
    #expect(try await Tool.shell(line, store, "y\\n", Tool.path).status == 0)
    #expect(try await Tool.larder("count", store) == .done("0\n"))
  }

  private static let isDarwin: Bool = {
    #if canImport(Darwin)
    true
    #else
    false
    #endif
  }()

  /// Without waiting, some verbs would find the store in use.
  @Test func `concurrent verbs wait for each other`() async throws {
    let store = StoreKind.json.url(in: folder)
    try await withThrowingTaskGroup(of: Int32.self) { group in
      for number in 0..<6 {
        group.addTask { try await Tool.larder("set", store, "\(number)", "1", "--wait", "60s").status }
      }
      for try await status in group { #expect(status == 0) }
    }
    #expect(try await Tool.larder("count", store) == .done("6\n"))
  }

  // MARK: The store

  @Test(
    arguments: StoreKind.allCases,
    [
      ["get", "k"], ["list"], ["list", "--keys"], ["count"], ["export"], ["verify"], ["remove", "k"], ["clear"],
      ["stat"], ["compact"], ["copy", "memory:"], ["backup", "copy"],
    ])
  func `other verbs create no store`(kind: StoreKind, verb: [String]) async throws {
    let store = kind.url(in: folder)
    let run = try await ToolRun.run(Tool.path, [verb[0], store] + verb.dropFirst())
    #expect(run.failed(66, kind.fileName()))
    #expect(try folder.names() == [])
  }

  @Test func `every verb closes the store`() async throws {
    let store = StoreKind.json.url(in: folder)
    func expectAtRest(_ entries: String) throws {
      // There is no journal, because all entries are in the document.
      #expect(try folder.names().filter { $0.hasPrefix("store.json") } == ["store.json", "store.json.lock"])
      #expect(try String(contentsOfFile: folder.file("store.json"), encoding: .utf8).contains(entries))
    }
    #expect(try await Tool.larder("set", store, "k", "1") == .done())
    try expectAtRest("\"k\":1")
    #expect(try await Tool.larder("get", store, "missing").status == 1)
    // After a failure, too.
    let lines = "{\"key\":\"x\",\"value\":2}\nnonsense\n"
    #expect(try await Tool.larder("import", store, "--batch", "1", input: lines).status == 65)
    try expectAtRest("\"x\":2")
  }

  @Test(arguments: StoreKind.allCases) func `an invalid argument creates no store`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("set", store, "k", "{").failed(64, "the value is not JSON: line 1, column 2"))
    #expect(try await Tool.larder("set", store, "k", "-", input: "{").failed(65, "standard input is not JSON"))
    #expect(try await Tool.larder("set", store, "", "1").failed(64, "at least 1 byte"))
    #expect(try await Tool.larder("set", store, String(repeating: "k", count: 512), "1").failed(64, "at most 511"))
    #expect(try await Tool.larder("import", store, folder.file("missing")).failed(66, "No such file"))
    #expect(try await Tool.larder("import", store, folder.path).failed(66, "Is a directory") || folder.names() == [])
    #expect(try await Tool.shell("larder get \"$1\" \"$(printf '\\351')\"", store).failed(64, "is not valid UTF-8"))
  }

  @Test(arguments: ["json", "compressed", "queue"])
  func `no character of the path is special`(scheme: String) async throws {
    for name in ["a#b", "a?b", "a%20b", "a b", "a b%20:é?#.json", "#", "%", "~"] {
      let url = "\(scheme):\(folder.file(name))"
      #expect(try await Tool.larder("set", url, "k", "1") == .done())
      #expect(try await Tool.larder("get", url, "k") == .done("1\n"))
      #expect(FileManager.default.fileExists(atPath: folder.file(name)))
      // There are only the files of this store, which begin with its name.
      #expect(try folder.names().allSatisfy { $0.hasPrefix(name) })
      for file in try folder.names() { try FileManager.default.removeItem(atPath: folder.file(file)) }
    }
  }

  @Test func `an invalid URL is refused`() async throws {
    #expect(try await Tool.larder("get", "nope:x", "k").failed(64, "unknown scheme nope:"))
    #expect(try await Tool.larder("get", "x", "k").failed(64, "json:users.json"))
    #expect(try await Tool.larder("get", "json:", "k").failed(64, "path"))
    #expect(try await Tool.larder("get", "json:\(folder.path)", "k").failed(65, folder.path))
  }

  @Test func `a store in memory lasts for one run`() async throws {
    #expect(try await Tool.larder("set", "memory:", "k", "1") == .done())
    #expect(try await Tool.larder("get", "memory:", "k").failed(66, "memory"))
    #expect(try await Tool.larder("import", "memory:", "--acknowledge").failed(64, "nothing in this store is durable"))
  }

  // MARK: Statistics and upkeep

  @Test func `stat is a table or one object`() async throws {
    let store = StoreKind.json.url(in: folder)
    try await set("a", "b", in: store)
    let size = try Data(contentsOf: URL(fileURLWithPath: folder.file("store.json"))).count
    #expect(
      try await Tool.larder("stat", store)
        == .done(
          """
          name            store.json
          codec           json
          durability      synced
          sharing         exclusive
          entries         2
          bytes on disk   \(size)
          document bytes  \(size)
          journal bytes   0
          failed folds    0
          damaged places  0

          """))
    #expect(
      try await Tool.larder("stat", store, "--json")
        == .done(
          #"{"name":"store.json","codec":"json","durability":"synced","sharing":"exclusive","entryCount":2,"#
            + "\"bytesOnDisk\":\(size),\"details\":{\"documentBytes\":\(size),\"journalBytes\":0,"
            + "\"failedFolds\":0,\"damagedPlaces\":0}}\n"))
  }

  @Test func `compact keeps every entry`() async throws {
    let store = StoreKind.json.url(in: folder)
    try await set("a", "b", in: store)
    #expect(try await Tool.larder("compact", store) == .done())
    #expect(try await Tool.larder("count", store) == .done("2\n"))
    #expect(try folder.names() == ["store.json", "store.json.lock"])
  }

  // MARK: Damage

  @Test(arguments: StoreKind.allCases) func `verify finds nothing in an undamaged store`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    try await set("a", "b", in: store)
    #expect(try await Tool.larder("verify", store) == ToolRun(status: 0, output: "", errors: "2 entries, no damage\n"))
  }

  @Test func `verify finds a document that cannot be opened`() async throws {
    let store = StoreKind.json.url(in: folder)
    let text = #"{"larder":2,"entries":{"a":1,"b":}}"#
    let path = try folder.write(text, to: "store.json")
    let run = try await Tool.larder("verify", store)
    #expect(run.status == 2)
    let finding = try JSONDecoder().decode([String: String?].self, from: Data(run.output.utf8))
    #expect(Set(finding.keys) == ["key", "place", "message"])
    #expect(finding["message"]??.contains("line 1, column 34") == true)
    #expect(run.errors == "the store cannot be opened, so nothing else was checked\n")
    #expect(try await Tool.larder("get", store, "a").failed(65, "larder verify"))
    #expect(try await Tool.larder("set", store, "a", "1").failed(65, "line 1, column 34"))
    #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
  }

  @Test func `a document with hard links is refused`() async throws {
    let store = StoreKind.json.url(in: folder)
    try await set("a", in: store)
    try FileManager.default.linkItem(atPath: folder.file("store.json"), toPath: folder.file("other.json"))
    #expect(try await Tool.larder("set", store, "a", "1").failed(65, "2 hard links"))
    #expect(try await Tool.larder("get", store, "a", "--read-write").failed(65, "The file was left unchanged."))
    // Reading the store cannot separate the links.
    #expect(try await Tool.larder("get", store, "a").status == 0)
  }

  @Test(arguments: StoreKind.allCases) func `a file that is not a store is refused by every verb`(kind: StoreKind)
    async throws
  {
    let store = kind.url(in: folder)
    let path = try folder.write("[1]", to: kind.fileName())
    for arguments in [["verify"], ["get", "a"], ["set", "a", "1"], ["stat"], ["backup", folder.file("copy")]] {
      let run = try await ToolRun.run(Tool.path, [arguments[0], store] + arguments.dropFirst())
      #expect(run.failed(65, kind.fileName()))
    }
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "[1]")
    #expect(try folder.names().filter { !$0.hasPrefix("store.") } == [])
  }

  // MARK: The streams

  @Test(arguments: StoreKind.allCases) func `output that cannot be written is a failure`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    try await set("k", in: store)
    // Closed streams must stay closed. Otherwise a file of the tool or its runtime would get their numbers.
    for streams in [">&-", "<&- >&-"] {
      #expect(try await Tool.shell("larder get \"$1\" k \(streams)", store).failed(74, "Bad file descriptor"))
    }
    if FileManager.default.fileExists(atPath: "/dev/full") {
      #expect(try await Tool.shell("larder list \"$1\" >/dev/full", store).failed(74, "No space left"))
      #expect(try await Tool.shell("larder --help >/dev/full", store).failed(74, "No space left"))
    }
    #expect(try await Tool.shell("larder set \"$1\" x 1 <&- >&- 2>&-", store).status == 0)
    #expect(
      try await Tool.shell("larder get \"$1\" k <&- >&- 2>&-", "json:/dev/null/x").status > 2)
    #expect(try await Tool.larder("count", store) == .done("2\n"))
  }

  @Test(arguments: StoreKind.allCases) func `a reader that stops early ends the tool quietly`(kind: StoreKind)
    async throws
  {
    let store = kind.url(in: folder)
    let lines = (0..<50_000).map { "{\"key\":\"k\($0)\",\"value\":\($0)}\n" }.joined()
    #expect(try await Tool.larder("import", store, "--batch", "50000", input: lines).status == 0)
    let run = try await Tool.shell("{ larder export \"$1\"; echo $? >&2; } | head -1", store)
    #expect(run == ToolRun(status: 0, output: "{\"key\":\"k0\",\"value\":0}\n", errors: "0\n"))
  }

  @Test func `help version and completions`() async throws {
    #expect(try await Tool.larder("--version").output.wholeMatch(of: /\d+\.\d+\.\d+\n/) != nil)
    let help = try await Tool.larder("--help")
    #expect(help.status == 0)
    for text in ["memory:", "json:", "compressed:", "lmdb:", " 64  ", "--generate-completion-script"] {
      #expect(help.output.contains(text))
    }
    for verb in LarderCommand.verbs {
      let help = try await Tool.larder(verb, "--help")
      #expect(help.status == 0)
      let scheme =
        switch verb {
        case "stores", "watch", "migrate", "reencrypt", "http": "lmdb"
        case "queue": "queue"
        case "keyring": "file"
        default: "json"
        }
      for words in LarderCommand.leaves(of: [verb]) {
        let help = try await ToolRun.run(Tool.path, words + ["--help"])
        // A queue of its own cannot be paused.
        let scheme = ["pause", "resume"].contains(words.last) ? "lmdb" : scheme
        // Its argument is a name and no URL.
        let store = words == ["stack"] ? "sessions" : "\(scheme):"
        #expect(help.status == 0 && help.output.contains("  larder \(words.joined(separator: " ")) \(store)"))
      }
    }
    #expect(try await Tool.larder("help", "get").output == Tool.larder("get", "--help").output)
    let misspelt = [
      "gett": "get", "gte": "get", "lsit": "list", "tsat": "stat", "exprot": "export", "ls": "list", "rm": "remove",
      "del": "remove",
    ]
    for (word, verb) in misspelt {
      let message = "Unexpected argument '\(word)'. Did you mean '\(verb)'? See `larder --help`."
      #expect(try await Tool.larder(word).failed(64, message))
    }
    #expect(try await Tool.larder("queue", "recieve").failed(64, "Did you mean 'receive'?"))
    for arguments in [["help", "nosuch"], ["nosuch", "--help"], ["help", "get", "nosuch"]] {
      let run = try await ToolRun.run(Tool.path, arguments)
      #expect(run.failed(64, "Unexpected argument 'nosuch'"))
    }
    for shell in ["bash", "zsh", "fish"] {
      #expect(try await Tool.larder("--generate-completion-script", shell).output.contains("larder"))
    }
  }
}
