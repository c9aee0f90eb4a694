import Testing

@testable import LarderCommand
@testable import StoreAccess

/// Tests that `--metrics` writes a report to standard error for each verb, and changes nothing else.
@Suite struct MetricsTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  /// Returns the rows of a report, each with the operation and its count.
  private func rows(of errors: String) -> [String] {
    errors.split(separator: "\n").map { line in
      line.split(separator: " ").prefix(2).joined(separator: " ")
    }
  }

  /// The verbs with their arguments after the store of `theReportGoesToStandardError`, and the operations that they make.
  static let verbs: [(verb: String, arguments: [String], rows: [String])] = [
    ("create", [], []), ("get", ["a"], ["value 1"]), ("set", ["a", "1"], ["apply 1"]), ("remove", ["a"], ["apply 1"]),
    ("clear", [], ["apply 1"]), ("list", [], ["entries 1"]), ("count", [], ["count 1"]), ("export", [], ["entries 1"]),
    ("import", ["-"], ["apply 1"]), ("stat", ["--json"], ["statistics 1"]), ("verify", [], ["verify 1"]),
    ("compact", [], ["compact 1"]), ("backup", ["copy.json"], ["backup 1"]),
    ("bench", ["--entries", "1", "--json"], []), ("purge", [], []), ("copy", ["json:copy.json"], ["entries 2"]),
    ("salvage", ["json:rescued.json"], ["entries 1"]), ("sample", [], ["keys 1"]),
    ("restore", ["restored.json"], ["backup 1"]),
  ]

  @Test func `every verb is tested`() {
    // `QueueTests` tests the verbs of queues, `LMDBTests` and `WatchTests` those of LMDB, and `EncryptionTests` those of keys.
    // `aDifferenceReportsBothStores` tests `diff`, which succeeds only for equal stores. `EditTests` tests `edit`,
    // `InspectTests` `inspect`, `StackTests` `stack`, which opens nothing, and `HTTPTests` the verbs of HTTP caches.
    let others: Set = [
      "queue", "http", "stores", "watch", "migrate", "keyring", "reencrypt", "diff", "edit", "inspect", "stack",
    ]
    #expect(Set(Self.verbs.map(\.verb)) == Set(LarderCommand.verbs).subtracting(others))
  }

  @Test(arguments: verbs) func theReportGoesToStandardError(
    verb: (verb: String, arguments: [String], rows: [String])
  ) async throws {
    let timeToLive = verb.verb == "purge" ? "--ttl 1h" : ""
    // Runs twice, each time on a new store.
    let line = """
      cd "$1"; rm -rf *.json*; larder set json:s.json a '{"secret":1}' \(timeToLive)
      echo '{"key":"b","value":2}' | larder $2 json:s.json $3
      """
    let arguments = verb.arguments.joined(separator: " ")
    let plain = try await Tool.shell(line, folder.path, verb.verb, arguments)
    let metered = try await Tool.shell(line, folder.path, verb.verb, "\(arguments) --metrics")
    #expect(plain.status == 0 && metered.status == 0)
    if verb.verb != "bench" { #expect(metered.output == plain.output) }
    let rows = rows(of: metered.errors)
    #expect(rows.contains("json:s.json count"))
    for row in verb.rows + ["open 1", "close 1"] { #expect(rows.contains(row), "\(metered.errors)") }
    #expect(!metered.errors.contains("secret"))
    #expect(!plain.errors.contains("json:s.json"))
  }

  @Test func `a copy reports both stores`() async throws {
    let (source, destination) = (StoreKind.json.url("a", in: folder), StoreKind.lmdb.url("b", in: folder))
    #expect(try await Tool.larder("set", source, "k", "1") == .done())
    let run = try await Tool.larder("copy", source, destination, "--metrics")
    #expect(run.status == 0 && run.output.isEmpty)
    let rows = rows(of: run.errors)
    #expect(rows.contains("\(source) count") && rows.contains("\(destination) count"))
    #expect(rows.filter { $0 == "open 1" }.count == 2)
  }

  @Test func aDifferenceReportsBothStores() async throws {
    let (first, second) = (StoreKind.json.url("a", in: folder), StoreKind.lmdb.url("b", in: folder))
    #expect(try await Tool.larder("set", first, "k", "1") == .done())
    #expect(try await Tool.larder("set", second, "k", "2") == .done())
    let run = try await Tool.larder("diff", first, second, "--metrics")
    #expect(run.status == 5 && run.output == #"{"key":"k","difference":"value"}"# + "\n")
    let rows = rows(of: run.errors)
    #expect(rows.contains("\(first) count") && rows.contains("\(second) count"))
    #expect(rows.filter { $0 == "open 1" }.count == 2)
  }

  @Test func `a verb that fails reports too`() async throws {
    let store = StoreKind.lmdb.url(in: folder)
    #expect(try await Tool.larder("set", store, "k", "1") == .done())
    let run = try await Tool.larder("compact", store, "--metrics")
    #expect(run.status == 64 && run.output.isEmpty)
    #expect(run.errors.contains("1 unsupported"))
    #expect(run.errors.split(separator: "\n").last?.hasPrefix("larder: ") == true)
    let missing = try await Tool.larder("get", StoreKind.json.url("none", in: folder), "k", "--metrics")
    #expect(missing.status == 66 && missing.output.isEmpty)
    #expect(rows(of: missing.errors).contains("open 1"))
  }
}
