import Foundation
import Testing

/// Tables of an SQLite database that another program created, so they have no record of a codec.
@Suite struct ForeignTableTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  /// Creates a table of text and a table of blobs, each with one entry.
  private func createTables() async throws {
    #expect(
      try await sql(
        """
        CREATE TABLE texts(key BLOB NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT;
        INSERT INTO texts VALUES(CAST('a' AS BLOB), '{}');
        CREATE TABLE blobs(key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT;
        INSERT INTO blobs VALUES(CAST('a' AS BLOB), x'000102ff');
        """) == .done())
  }

  private func sql(_ text: String) async throws -> ToolRun {
    try await Tool.shell("command -v sqlite3 >/dev/null && sqlite3 \"$1\" \"$2\"", folder.file("f.sqlite"), text)
  }

  private func url(_ table: String) -> String { "sqlite:\(folder.file("f.sqlite"))#\(table)" }

  /// The number of tables, which a record would increase.
  private let tableCount = "SELECT count(*) FROM sqlite_master WHERE type = 'table'"

  @Test func `a table of text is JSON`() async throws {
    try await createTables()
    let store = url("texts")
    #expect(try await Tool.larder("list", store) == .done("{\"key\":\"a\",\"value\":{}}\n"))
    #expect(try await Tool.larder("count", store) == .done("1\n"))
    #expect(try await Tool.larder("stat", store).output.contains(/codec +json/))
    #expect(try await Tool.larder("verify", store).errors == "1 entry, no damage\n")
    #expect(try await Tool.larder("get", store, "a", "--codec", "raw").failed(65, "holds text"))
    #expect(try await sql(tableCount) == .done("2\n"))
    // The verbs that look at stored bytes, too.
    let ring = "file:\(folder.file("keys.json"))"
    #expect(try await Tool.larder("keyring", "create", ring).status == 0)
    #expect(
      try await Tool.larder("keyring", "list", ring, store).output.contains(
        "{\"key\":null,\"stores\":{\"\(store)\":1}}"))
    #expect(try await Tool.larder("set", store, "b", "1") == .done())
    #expect(try await sql("SELECT codec FROM larder; SELECT value FROM texts") == .done("json\n{}\n1\n"))
  }

  @Test func `a table of blobs needs a codec`() async throws {
    try await createTables()
    let (store, json) = (url("blobs"), "json:\(folder.file("users.json"))")
    #expect(try await Tool.larder("set", json, "a", "1") == .done())
    for (arguments, option) in [
      (["list", store], "--codec"), (["count", store], "--codec"), (["get", store, "a"], "--codec"),
      (["stat", store], "--codec"), (["verify", store], "--codec"), (["watch", store], "--codec"),
      (["set", store, "b", "1"], "--codec"), (["set", store, "b", "1", "--ttl", "1h"], "--codec"),
      (["copy", json, store], "--codec"), (["copy", store, json], "--from-codec"),
      (["diff", store, json], "--first-codec"), (["diff", json, store], "--second-codec"),
      (["salvage", store, "json:\(folder.file("new.json"))"], "--codec"),
    ] {
      let run = try await ToolRun.run(Tool.path, arguments)
      #expect(run.failed(64, "records no codec"), "\(arguments) \(run)")
      #expect(run.errors.contains("Name it with \(option), as in \(option) raw."), "\(arguments) \(run)")
    }
    #expect(try await sql(tableCount) == .done("2\n"))
    #expect(try folder.names().filter { $0.hasPrefix("new") } == [])
  }

  @Test func `the chosen codec is recorded by the first verb that writes`() async throws {
    try await createTables()
    let store = url("blobs")
    let entry = "{\"key\":\"a\",\"value\":{\"$base64\":\"AAEC/w==\"}}\n"
    #expect(try await Tool.larder("list", store, "--codec", "raw") == .done(entry))
    #expect(try await Tool.larder("count", store, "--codec", "raw") == .done("1\n"))
    #expect(try await Tool.larder("stat", store, "--codec", "raw").output.contains(/codec +raw/))
    #expect(try await Tool.larder("verify", store, "--codec", "raw").errors == "1 entry, no damage\n")
    #expect(try await Tool.larder("get", store, "a", "--codec", "raw").output == "{\"$base64\":\"AAEC/w==\"}\n")
    #expect(try await sql(tableCount) == .done("2\n"))
    // The values that are there have no deadlines.
    #expect(
      try await Tool.larder("set", store, "b", "x", "--raw", "--codec", "raw", "--ttl", "1h").failed(
        64, "do not expire"))
    #expect(try await sql(tableCount) == .done("2\n"))
    #expect(try await Tool.larder("set", store, "b", "x", "--raw", "--codec", "raw") == .done())
    #expect(try await sql("SELECT codec FROM larder; SELECT hex(value) FROM blobs") == .done("raw\n000102FF\n78\n"))
    // From now on it needs no option, and refuses another codec.
    #expect(try await Tool.larder("get", store, "b", "--raw") == .done("x"))
    #expect(try await Tool.larder("get", store, "b", "--codec", "cbor").failed(65, "codec raw, not with cbor"))
    #expect(try await Tool.larder("watch", store, "--codec", "cbor").failed(65, "Omit --codec"))
    #expect(try await Tool.larder("count", store, "--codec", "yaml").failed(64, "'json', 'cbor' or 'raw'"))
  }

  @Test func `a table is copied and salvaged with its codec`() async throws {
    try await createTables()
    let (store, copy, rescued) = (url("blobs"), "lmdb:\(folder.file("copy"))", "lmdb:\(folder.file("rescued"))")
    #expect(try await Tool.larder("copy", store, copy, "--from-codec", "raw").status == 0)
    #expect(try await Tool.larder("salvage", store, rescued, "--codec", "raw").status == 0)
    #expect(try await Tool.larder("diff", copy, store, "--second-codec", "raw") == .done())
    #expect(try await Tool.larder("diff", rescued, store, "--second-codec", "raw") == .done())
    #expect(try await Tool.larder("stat", copy).output.contains(/codec +raw/))
    #expect(try await Tool.larder("set", copy, "b", "x", "--raw") == .done())
    #expect(try await Tool.larder("copy", copy, store).failed(64, "--codec raw"))
    #expect(try await Tool.larder("copy", copy, store, "--codec", "raw").status == 0)
    #expect(try await sql("SELECT codec FROM larder; SELECT hex(value) FROM blobs") == .done("raw\n000102FF\n78\n"))
  }

  @Test(arguments: StoreKind.allCases) func `a new store has the chosen codec`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("set", store, "a", "é", "--raw", "--codec", "raw") == .done())
    #expect(try await Tool.larder("get", store, "a") == .done("{\"$base64\":\"w6k=\"}\n"))
    let expiring = kind.url("expiring", in: folder)
    #expect(try await Tool.larder("set", expiring, "a", "1", "--codec", "json", "--ttl", "1h") == .done())
    #expect(try await Tool.larder("stat", expiring).output.contains(/codec +json\+expiring/))
    // The transforms do not count.
    #expect(try await Tool.larder("get", expiring, "a", "--codec", "json") == .done("1\n"))
  }
}

/// Named databases of an LMDB environment that another program created.
@Suite(.enabled(if: MDBLoad.isInstalled, "the command mdb_load is missing")) struct ForeignDatabaseTests {
  private let folder: TemporaryFolder
  private var url: String { "lmdb:\(folder.file("environment"))#foreign" }

  init() async throws {
    folder = try TemporaryFolder()
    let dump = """
      VERSION=3
      format=print
      type=btree
      mapsize=1048576
      HEADER=END
       a
       \\00\\01\\02\\ff
      DATA=END

      """
    let path = try folder.write(dump, to: "dump")
    #expect(
      try await Tool.shell("mkdir \"$1\" && mdb_load -f \"$2\" -s foreign \"$1\"", folder.file("environment"), path)
        == .done())
  }

  @Test func `a database needs a codec`() async throws {
    let json = "json:\(folder.file("users.json"))"
    #expect(try await Tool.larder("set", json, "a", "1") == .done())
    for arguments in [
      ["list", url], ["count", url], ["get", url, "a"], ["stat", url], ["verify", url], ["watch", url],
      ["set", url, "b", "1"], ["set", url, "b", "1", "--ttl", "1h"], ["remove", url, "a"], ["copy", json, url],
      ["salvage", url, "json:\(folder.file("new.json"))"],
    ] {
      let run = try await ToolRun.run(Tool.path, arguments)
      #expect(run.failed(64, "records no codec"), "\(arguments) \(run)")
      #expect(run.errors.contains("Name it with --codec, as in --codec raw."), "\(arguments) \(run)")
    }
    #expect(try folder.names().filter { $0.hasPrefix("new") } == [])
    // None of them has recorded another one.
    #expect(try await Tool.larder("list", url, "--codec", "json").status != 64)
  }

  @Test func `the chosen codec is recorded by the first verb that writes`() async throws {
    let entry = "{\"key\":\"a\",\"value\":{\"$base64\":\"AAEC/w==\"}}\n"
    #expect(try await Tool.larder("list", url, "--codec", "raw") == .done(entry))
    #expect(try await Tool.larder("verify", url, "--codec", "raw").errors == "1 entry, no damage\n")
    #expect(
      try await Tool.larder("set", url, "b", "x", "--raw", "--codec", "raw", "--ttl", "1h").failed(64, "do not expire"))
    #expect(try await Tool.larder("list", url).failed(64, "records no codec"))
    #expect(try await Tool.larder("set", url, "b", "x", "--raw", "--codec", "raw") == .done())
    #expect(try await Tool.larder("get", url, "b", "--raw") == .done("x"))
    #expect(try await Tool.larder("get", url, "b", "--codec", "cbor").failed(65, "codec raw, not with cbor"))
  }
}

/// A command of LMDB that creates named databases.
private enum MDBLoad {
  static let isInstalled = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"].contains {
    FileManager.default.isExecutableFile(atPath: "\($0)/mdb_load")
  }
}
