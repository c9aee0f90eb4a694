import Testing

/// Stores in SQLite databases, beside the command `sqlite3`.
@Suite struct SQLiteTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  @Test func otherProgramsReadAndWriteTheTables() async throws {
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
}
