import Foundation
import LarderTesting
import Testing

/// Stores in SQLite databases, beside the command `sqlite3`.
@Suite struct SQLiteTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  @Test func `other programs read and write the tables`() async throws {
    let path = folder.file("shop.sqlite")
    #expect(try await Tool.larder("import", "sqlite:\(path)", input: "{\"key\":\"a\",\"value\":1}").status == 0)
    let json = folder.file("orders.json")
    #expect(try await Tool.larder("set", "json:\(json)", "7/1", "{\"n\":2}") == .done())
    // A copy keeps the codec, so the values are text that SQL understands.
    #expect(try await Tool.larder("copy", "json:\(json)", "sqlite:\(path)#orders").status == 0)
    #expect(
      try await Tool.larder("stores", "sqlite:\(path)") == .done("sqlite:\(path)#default\nsqlite:\(path)#orders\n"))
    let insertion = "INSERT INTO orders VALUES(CAST('7/2' AS BLOB), json('{\"n\": 3}'))"
    let query = "\(insertion); SELECT sum(value->>'n') FROM orders_text WHERE key > '7/'"
    #expect(try await Tool.shell("command -v sqlite3 >/dev/null && sqlite3 \"$1\" \"$2\"", path, query) == .done("5\n"))
    #expect(try await Tool.larder("get", "sqlite:\(path)#orders", "7/2") == .done("{\"n\":3}\n"))
    #expect(try await Tool.larder("compact", "sqlite:\(path)") == .done())
    #expect(try await Tool.larder("stores", "sqlite:\(folder.file("nosuch"))").failed(66, "nosuch"))
  }

  @Test func `layout is that of new tables`() async throws {
    let (path, json) = (folder.file("shop.sqlite"), "json:\(folder.file("users.json"))")
    func isClustered(_ name: String) async throws -> ToolRun {
      let query = "SELECT sql LIKE '%WITHOUT ROWID%' FROM sqlite_master WHERE name = '\(name)'"
      return try await Tool.shell("command -v sqlite3 >/dev/null && sqlite3 \"$1\" \"$2\"", path, query)
    }
    #expect(try await Tool.larder("set", "sqlite:\(path)#plain", "a", "1") == .done())
    #expect(try await Tool.larder("set", "sqlite:\(path)#small", "a", "1", "--layout", "clustered") == .done())
    #expect(try await isClustered("plain") == .done("0\n"))
    #expect(try await isClustered("small") == .done("1\n"))
    let copied = try await Tool.larder("copy", "sqlite:\(path)#plain", "sqlite:\(path)#copy", "--layout", "clustered")
    #expect(copied.status == 0)
    #expect(try await isClustered("copy") == .done("1\n"))
    // An existing table keeps its layout.
    #expect(try await Tool.larder("set", "sqlite:\(path)#plain", "b", "2", "--layout", "clustered") == .done())
    #expect(try await isClustered("plain") == .done("0\n"))
    #expect(try await Tool.larder("set", json, "a", "1", "--layout", "clustered").failed(64, "--layout"))
    #expect(try await Tool.larder("set", "sqlite:\(path)", "a", "1", "--layout", "wide").failed(64, "clustered"))
  }
}

/// Imports into a database during which one call of the system fails.
@Suite(.enabled(if: SystemCallFailure.obstacle == nil, "\(SystemCallFailure.obstacle ?? "")"))
struct SQLiteFailureTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  @Test(arguments: ["fdatasync", "fsync", "pwrite64", "ftruncate"])
  func `a call that fails once loses nothing`(call: String) async throws {
    let seed = SeededGenerator.seedOfProcess
    print("LARDER_SEED=\(seed)")
    var generator = SeededGenerator(seed: seed)
    let lines = (100..<200).map { "{\"key\":\"\($0)\",\"value\":\"\(String(repeating: "x", count: 500))\"}\n" }
    let input = try folder.write(lines.joined(), to: "lines")
    // The first calls create the store, later ones write.
    for number in [1, 2, 3, 5] + (0..<4).map({ _ in Int.random(in: 6...40, using: &generator) }) {
      let store = "sqlite:\(folder.file("\(number).sqlite"))"
      let run = try await Tool.shell(
        "strace -f -o /dev/null -e trace=$1 -e inject=$1:error=EIO:when=$2 \"$3\" "
          + "import \"$4\" \"$5\" --batch 10 --acknowledge",
        call, "\(number)", Tool.path, store, input)
      let context: Comment = "seed \(seed), call \(number): \(run.errors)"
      let acknowledged = run.output.split(separator: "\n").last.flatMap { Int($0) } ?? 0
      #expect(run.status == 0 || [73, 74, 77].contains(run.status), context)
      let count = try await Tool.larder("count", store)
      guard count.status == 0 else {
        // The store was never created.
        #expect(count.status == 66 && acknowledged == 0, context)
        continue
      }
      let present = try #require(Int(count.output.dropLast()), context)
      #expect(present >= acknowledged && present.isMultiple(of: 10), context)
      #expect(run.status != 0 || present == 100, context)
      #expect(try await Tool.larder("verify", store).status == 0, context)
      // After any failure, the next import completes the store.
      #expect(try await Tool.larder("import", store, input).status == 0, context)
      #expect(try await Tool.larder("count", store) == .done("100\n"), context)
    }
  }
}

/// Calls of the system that `strace` makes fail.
private enum SystemCallFailure {
  /// The reason why no call can be made to fail, or `nil` if it can.
  static let obstacle: String? = {
    let process = Process()
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = ["-c", "strace -f -o /dev/null -e inject=sync:error=EIO true 2>/dev/null"]
    do {
      try process.run()
      process.waitUntilExit()
      return process.terminationStatus == 0 ? nil : "strace is missing or must not trace"
    } catch {
      return "strace cannot be run: \(error)"
    }
  }()
}
