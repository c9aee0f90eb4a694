import Foundation
import Testing

/// The features of LMDB stores only: names, figures, and concurrent processes.
@Suite struct LMDBTests {
  private let folder: TemporaryFolder
  private let path: String
  private let store: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.file("store")
    store = "lmdb:\(path)"
  }

  private func lines(_ prefix: String, _ numbers: Range<Int>) -> String {
    numbers.map { "{\"key\":\"\(prefix)\(1_000_000 + $0)\",\"value\":[\($0)]}\n" }.joined()
  }

  // MARK: Locations

  @Test func `the default name is default`() async throws {
    #expect(try await Tool.larder("set", store, "k", "1") == .done())
    #expect(try await Tool.larder("set", "\(store)#other", "k", "2") == .done())
    #expect(try await Tool.larder("get", "\(store)#default", "k") == .done("1\n"))
    #expect(try await Tool.larder("get", "\(store)#other", "k") == .done("2\n"))
    #expect(try await Tool.larder("get", "\(store)#third", "k").failed(66, "no store of this name"))
    #expect(try await Tool.larder("set", "\(store)#larder", "k", "1").failed(64, "larder, which is reserved"))
    for url in ["lmdb:", "\(store)#", "lmdb:#name"] {
      #expect(try await Tool.larder("set", url, "k", "1").failed(64, "lmdb:shop#orders"))
    }
    #expect(try folder.names() == ["store"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: path).sorted() == ["data.mdb", "lock.mdb"])
  }

  @Test func `the last number sign counts`() async throws {
    let odd = "lmdb:\(folder.file("a b%20:é?#1"))"
    #expect(try await Tool.larder("set", "\(odd)#n", "k", "1") == .done())
    #expect(try folder.names() == ["a b%20:é?#1"])
    #expect(try await Tool.larder("get", "\(odd)#n", "k") == .done("1\n"))
    // A path that contains a number sign needs the name after it.
    #expect(try await Tool.larder("get", odd, "k").failed(64, "write \(odd)#default for the path"))
  }

  /// A path with a number sign is never mistaken for the path of another environment.
  @Test func `an ambiguous number sign is refused`() async throws {
    #expect(try await Tool.larder("set", "\(store)#7", "k", "1") == .done())
    #expect(try await Tool.larder("set", "\(store)#7#default", "k", "2") == .done())
    // Now there is both a store 7 and a folder whose name ends with #7.
    for arguments in [["set", "\(store)#7", "k", "3"], ["get", "\(store)#7", "k"], ["stores", "\(store)#7"]] {
      #expect(
        try await ToolRun.run(Tool.path, arguments).failed(
          64, "write \(store)#7#default for the path \(path)#7, or \(store)/#7 for the store 7 in "))
    }
    #expect(try await Tool.larder("get", "\(store)/#7", "k") == .done("1\n"))
    #expect(try await Tool.larder("get", "\(store)#7#default", "k") == .done("2\n"))
    #expect(try await Tool.larder("stores", "\(store)#7#default") == .done("\(store)#7#default\n"))
    // No environment is created beside a folder with a number sign, whether the folder exists or not.
    let other = folder.file("#folder")
    for _ in 0..<2 {
      #expect(
        try await Tool.larder("set", "lmdb:\(other)/store", "k", "1")
          .failed(64, "write lmdb:\(other)/store#default for the path \(other)/store\n"))
      try FileManager.default.createDirectory(atPath: other, withIntermediateDirectories: true)
    }
    #expect(try await Tool.larder("set", "lmdb:\(other)/store#default", "k", "1") == .done())
    #expect(try folder.names() == ["#folder", "store", "store#7"])
    // The name of a store can contain a slash if there is no such folder.
    #expect(try await Tool.larder("set", "\(store)#a/b", "k", "4") == .done())
    #expect(try await Tool.larder("stores", store) == .done("\(store)#7\n\(store)#a/b\n"))
  }

  @Test func `one folder is made and none above it`() async throws {
    #expect(
      try await Tool.larder("set", "lmdb:\(folder.file("none/store"))", "k", "1")
        .failed(66, "none creates its parent folder"))
    #expect(try folder.names() == [])
  }

  // MARK: Damage

  @Test func `a damaged page costs its entries only`() async throws {
    #expect(try await Tool.larder("import", store, input: lines("k", 0..<3000)).status == 0)
    // Without pages of earlier transactions.
    let copy = folder.file("copy")
    #expect(try await Tool.larder("backup", store, copy, "--compact") == .done())
    let url = URL(filePath: "\(copy)/data.mdb")
    var content = try Data(contentsOf: url)
    let place = try #require(content.range(of: Data("k1001234".utf8))).lowerBound
    let page = place / 4096
    content.replaceSubrange(page * 4096..<(page + 1) * 4096, with: Data(count: 4096))
    try content.write(to: url)
    let verified = try await Tool.larder("verify", "lmdb:\(copy)")
    #expect(verified.status == 2)
    #expect(verified.output.split(separator: "\n").count == 1)
    #expect(verified.output.hasPrefix(#"{"key":null,"place":"copy, page \#(page)","message":"the page "#))
    let rescued = "json:\(folder.file("rescued.json"))"
    let salvaged = try await Tool.larder("salvage", "lmdb:\(copy)", rescued)
    #expect(salvaged.status == 2)
    #expect(salvaged.output.split(separator: "\n").count == 1)
    #expect(salvaged.errors.hasSuffix("entries, 1 key or range could not be read\n"))
    let count = try #require(Int(try await Tool.larder("count", rescued).output.dropLast()))
    #expect((2700..<3000).contains(count))
    #expect(verified.errors == "\(count) entries, 1 finding\n")
    // Damage is not copied.
    #expect(try await Tool.larder("migrate", "lmdb:\(copy)", "lmdb:\(folder.file("new"))").failed(65, "larder salvage"))
    #expect(try !folder.names().contains("new"))
  }

  /// Which of the copies of a branch page is in use is not known here, so all are destroyed.
  @Test func `entries below a destroyed page are copied`() async throws {
    for _ in 0..<2 {
      #expect(try await Tool.larder("import", store, "--batch", "500", input: lines("k", 0..<3000)).status == 0)
    }
    let url = URL(filePath: "\(path)/data.mdb")
    var content = try Data(contentsOf: url)
    // The flags are behind the number, and in LMDB 1.0 behind that of a transaction.
    let place = content[16] == 0xDE ? 10 : 18
    for page in stride(from: 2 * 4096, to: content.count, by: 4096) where content[page + place] == 0x01 {
      content.replaceSubrange(page..<page + 4096, with: Data(count: 4096))
    }
    try content.write(to: url)
    let rescued = "json:\(folder.file("rescued.json"))"
    let verified = try await Tool.larder("verify", store)
    #expect(verified.status == 2 && verified.output.contains("; all entries below it were found\"}\n"))
    #expect(verified.output.split(separator: "\n").count == 1 && verified.errors == "3000 entries, 1 finding\n")
    let salvaged = try await Tool.larder("salvage", store, rescued, "--possibly-older")
    #expect(salvaged == ToolRun(status: 0, output: "", errors: "copied 3000 entries, everything could be read\n"))

    // Without the list of free pages, some entries may be older ones. Its root is behind the header of each meta page.
    for meta in [0, 4096] {
      let root = content.dropFirst(meta + place + 70).withUnsafeBytes { $0.loadUnaligned(as: Int.self) } * 4096
      content.replaceSubrange(root..<root + 4096, with: Data(count: 4096))
    }
    try content.write(to: url)
    let certain = try await Tool.larder("salvage", store, "json:\(folder.file("certain.json"))")
    #expect(certain.status == 2 && certain.errors == "copied 0 entries, 1 key or range could not be read\n")
    #expect(certain.output.contains("may also be older or of another named database"))
    let all = try await Tool.larder("salvage", store, "json:\(folder.file("all.json"))", "--possibly-older")
    #expect(all.status == 2)
    #expect(
      all.errors.hasSuffix("copied 0 entries, 3000 entries possibly older, 1 key or range could not be read\n"),
      "\(all.errors)")
    #expect(all.output.contains("\"isPossiblyOlder\":true}\n"))
  }

  @Test func `the state before the latest transaction is copied on request`() async throws {
    #expect(try await Tool.larder("import", store, input: lines("k", 0..<300)).status == 0)
    #expect(try await Tool.larder("set", store, "latest", "1") == .done())
    let url = URL(filePath: "\(path)/data.mdb")
    var content = try Data(contentsOf: url)
    // The root of the list of databases and the number of the transaction in each meta page, in LMDB 1.0 8 bytes later.
    let shift = content[16] == 0xDE ? 0 : 8
    func integer(_ place: Int) -> Int {
      content.dropFirst(place + shift).withUnsafeBytes { $0.loadUnaligned(as: Int.self) }
    }
    let newest = try #require([0, 4096].max { integer($0 + 144) < integer($1 + 144) })
    let root = integer(newest + 128) * 4096
    content.replaceSubrange(root..<root + 4096, with: Data(count: 4096))
    try content.write(to: url)
    let rescued = "json:\(folder.file("rescued.json"))"
    #expect(
      try await Tool.larder("salvage", store, rescued).failed(65, "salvage --possibly-older, or restore a backup"))
    let salvaged = try await Tool.larder("salvage", store, rescued, "--possibly-older")
    #expect(salvaged.status == 2)
    #expect(
      salvaged.errors == "copied 0 entries, 300 entries possibly older, 1 key or range could not be read\n",
      "\(salvaged.errors)")
    #expect(try await Tool.larder("count", rescued) == .done("300\n"))
    // Nothing is added to entries of a store that exists.
    #expect(try await Tool.larder("salvage", store, rescued, "--possibly-older").failed(64, "already has entries"))
  }

  // MARK: Migration

  @Test func `an environment is migrated as a whole`() async throws {
    #expect(try await Tool.larder("import", store, input: lines("k", 0..<50)).status == 0)
    #expect(try await Tool.larder("set", "\(store)#other", "k", "2", "--codec", "json").status == 0)
    let new = "lmdb:\(folder.file("new"))"
    let run = try await Tool.larder("migrate", store, new)
    #expect(run.status == 0 && run.output.isEmpty)
    #expect(run.errors.hasPrefix("migrated 3 databases with 53 entries from LMDB "))
    #expect(try await Tool.larder("diff", store, new) == .done())
    #expect(try await Tool.larder("get", "\(new)#other", "k") == .done("2\n"))
    #expect(try await Tool.larder("migrate", store, new).failed(64, "already exists"))
    #expect(try await Tool.larder("migrate", "\(store)#other", new).failed(64, "as a whole"))
    #expect(try await Tool.larder("migrate", "json:\(path)", new).failed(64, "no LMDB environment"))
    #expect(try await Tool.larder("migrate", "\(store)-none", "\(new)2").failed(66, "no LMDB environment"))
    #expect(try folder.names() == ["new", "store"])
  }

  // MARK: Figures

  @Test func `stat shows the figures of the environment`() async throws {
    #expect(try await Tool.larder("import", store, input: lines("", 0..<3)).status == 0)
    let table = try await Tool.larder("stat", store)
    #expect(table.status == 0)
    let rows = table.output.split(separator: "\n").map { row in
      row.split(separator: "  ", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
    }
    let figures = Dictionary(uniqueKeysWithValues: rows.map { ($0[0], $0[1]) })
    #expect(figures["name"] == "store")
    #expect(figures["sharing"] == "between processes")
    #expect(figures["durability"] == "synced")
    #expect(figures["entries"] == "3")
    #expect(figures["depth"] == "1")
    #expect(figures["leaf pages"] == "1")
    for name in ["map bytes", "readers", "maximum readers", "last transaction", "environment free pages"] {
      #expect(figures[name].flatMap { Int($0) } != nil, "\(name)")
    }
    let json = try await Tool.larder("stat", "\(store)#default", "--json")
    #expect(json.status == 0)
    let object = try #require(try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any])
    #expect(object["entryCount"] as? Int == 3)
    #expect(object["sharing"] as? String == "betweenProcesses")
    let details = try #require(object["details"] as? [String: Int])
    let (pages, size) = (try #require(details["environmentPages"]), try #require(details["pageBytes"]))
    #expect(object["bytesOnDisk"] as? Int == pages * size)
    let attributes = try FileManager.default.attributesOfItem(atPath: folder.file("store/data.mdb"))
    #expect(object["bytesOnDisk"] as? NSNumber == attributes[.size] as? NSNumber)
  }

  @Test func `compact suggests a backup`() async throws {
    #expect(try await Tool.larder("set", store, "k", "1") == .done())
    #expect(try await Tool.larder("compact", store).failed(64, "make a compacting backup"))
    #expect(try await Tool.larder("get", store, "k") == .done("1\n"))
  }

  @Test func `entries are copied between kinds and within an environment`() async throws {
    let text = lines("", 0..<2500)
    #expect(try await Tool.larder("import", "json:\(folder.file("a.json"))", input: text).status == 0)
    #expect(try await Tool.larder("copy", "json:\(folder.file("a.json"))", store).status == 0)
    #expect(try await Tool.larder("copy", store, "\(store)#other", "--batch", "7").status == 0)
    #expect(try await Tool.larder("copy", "\(store)#other", "json:\(folder.file("b.json"))").status == 0)
    #expect(try await Tool.larder("export", "json:\(folder.file("b.json"))") == .done(text))
    let again = try await Tool.larder("copy", store, "\(store)#default")
    #expect(again.errors.wholeMatch(of: /copied 0 entries in .* s, 2500 were already equal\n/) != nil)
  }

  // MARK: Several processes

  private static let entryCount = 3_000
  private static let batchSize = 30

  @Test func `concurrent imports succeed and readers see whole batches`() async throws {
    #expect(try await Tool.larder("set", store, "first", "0") == .done())
    let texts = [lines("a", 0..<LMDBTests.entryCount), lines("b", 0..<LMDBTests.entryCount)]
    async let a: Void = importBatches(texts[0])
    async let b: Void = importBatches(texts[1])
    async let readerOfA: Void = readWhileItGrows(prefix: "a")
    async let readerOfB: Void = readWhileItGrows(prefix: "b")
    _ = try await (a, b, readerOfA, readerOfB)
    #expect(
      try await Tool.larder("export", store) == .done(texts.joined() + "{\"key\":\"first\",\"value\":0}\n"))
    let count = 2 * LMDBTests.entryCount + 1
    #expect(try await Tool.larder("verify", store).errors == "\(count) entries, no damage\n")
  }

  private func importBatches(_ text: String) async throws {
    let run = try await Tool.larder("import", store, "--batch", "\(LMDBTests.batchSize)", input: text)
    #expect(run.status == 0, "\(run.errors)")
  }

  private func readWhileItGrows(prefix: String) async throws {
    var seen = 0
    // Reads while the imports run, but not endlessly.
    for _ in 0..<100 where seen < LMDBTests.entryCount {
      // The count is one snapshot, even while entries are imported.
      let counted = try await Tool.larder("count", store, "--prefix", prefix)
      let count = try #require(Int(counted.output.dropLast()), "\(counted.errors)")
      #expect(count >= seen && count.isMultiple(of: LMDBTests.batchSize))
      // The list is a walk. It has every key from the first on, and no key disappears.
      let listed = try await Tool.larder("list", store, "--keys", "--prefix", prefix)
      #expect(listed.status == 0, "\(listed.errors)")
      let keys = listed.output.split(separator: "\n").map { String($0) }
      #expect(keys.count >= count)
      #expect(keys == (0..<keys.count).map { "{\"key\":\"\(prefix)\(1_000_000 + $0)\"}" })
      seen = keys.count
      #expect(try await Tool.larder("get", store, "first") == .done("0\n"))
    }
  }

  @Test func `a backup during an import is one snapshot`() async throws {
    #expect(try await Tool.larder("import", store).status == 0)
    async let growth: Void = importBatches(lines("a", 0..<LMDBTests.entryCount))
    for number in 0..<6 {
      let copy = folder.file("copy\(number)")
      let options = number.isMultiple(of: 2) ? [] : ["--compact"]
      #expect(try await ToolRun.run(Tool.path, ["backup", store, copy] + options) == .done())
      let count = try await Tool.larder("count", "lmdb:\(copy)").output.dropLast()
      // The backup has each batch completely or not at all.
      #expect(Int(count)?.isMultiple(of: LMDBTests.batchSize) == true, "\(count)")
      #expect(try await Tool.larder("verify", "lmdb:\(copy)").errors.hasSuffix("no damage\n"))
    }
    try await growth
  }

  @Test func `the stores of an environment are listed`() async throws {
    let environment = "lmdb:\(folder.file("shop"))"
    for name in ["orders", "customers"] {
      #expect(try await Tool.larder("set", "\(environment)#\(name)", "k", "1") == .done())
    }
    let urls = "\(environment)#customers\n\(environment)#orders\n"
    #expect(try await Tool.larder("stores", environment) == .done(urls))
    let metered = try await Tool.larder("stores", environment, "--metrics")
    #expect(metered.output == urls && metered.errors.contains("open"))
    #expect(
      try await Tool.larder("stores", "json:x.json").failed(
        64, "is no LMDB environment, SQLite database or PostgreSQL database")
    )
    #expect(try await Tool.larder("stores", "lmdb:\(folder.file("nosuch"))").failed(66, "nosuch"))
  }
}
