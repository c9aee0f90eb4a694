#if LMDB
import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderLMDB

/// Files that Larder writes and LMDB's own commands and Python read, and the reverse.
@Suite struct InteroperabilityTests {
  private func all(_ store: LMDBStore<[UInt8]>) async throws -> [StoreEntry<[UInt8]>] {
    try await store.entries(in: .all, limit: .max, order: .ascending)
  }

  private func expectEqual(
    _ left: [StoreEntry<[UInt8]>], _ right: [StoreEntry<[UInt8]>], sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(left.map(\.key) == right.map(\.key), sourceLocation: sourceLocation)
    #expect(left.map(\.value) == right.map(\.value), sourceLocation: sourceLocation)
  }

  /// Opens a folder or a file with random entries in two stores.
  private func filledEnvironment(_ path: String, test: String = #function) async throws -> LMDBEnvironment {
    var random = SeededGenerator(test: test)
    let environment = try await LMDBEnvironment(path: path)
    for name in ["default", "näme of two words"] {
      let store = try await LMDBStore<[UInt8]>(in: environment, name: name, codec: .raw)
      // Backslashes are left out, because `mdb_dump -p` of LMDB 0.9.24 does not escape them.
      let backslash = UInt8(ascii: "\\")
      try await store.apply(
        ChangeBatch((0..<300).map { _ in .set(random.key(), random.value().filter { $0 != backslash }) }))
      // Removals leave free pages.
      try await store.removeAll(in: "a"..<"b")
    }
    return environment
  }

  // MARK: LMDB's own commands

  @Test(
    .enabled(if: ForeignTool.commandObstacle == nil, "\(ForeignTool.commandObstacle ?? "")"), arguments: ["-p", ""])
  func `dump shows the same entries in the same order`(format: String) async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    let environment = try await filledEnvironment(path)
    let options = format.isEmpty ? [] : [format]
    for name in try await environment.storeNames() {
      let store = try await LMDBStore<[UInt8]>(in: environment, name: name, codec: .raw)
      let lines = try ForeignTool.lines(of: ["mdb_dump"] + options + ["-s", name, path])
      let dumped = try DumpedDatabase.all(in: lines)
      #expect(dumped.count == 1)
      expectEqual(dumped[0].entries, try await all(store))
      #expect(dumped[0].entries.count > 100)
    }
    let dumped = try DumpedDatabase.all(in: ForeignTool.lines(of: ["mdb_dump"] + options + ["-a", path]))
    #expect(dumped.map(\.name) == ["default", "larder", "näme of two words"])
    #expect(dumped[1].entries.map(\.key) == ["default", "näme of two words"])
    #expect(dumped[1].entries.allSatisfy { $0.value == Array(#"{"codec":"raw","format":1}"#.utf8) })
    try await environment.close()
  }

  @Test(.enabled(if: ForeignTool.commandObstacle == nil, "\(ForeignTool.commandObstacle ?? "")"))
  func `a dump can be loaded into another environment`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await filledEnvironment(folder.path("environment"))
    for name in try await environment.storeNames() + ["larder"] {
      _ = try ForeignTool.lines(of: "mdb_dump", "-f", folder.path("dump"), "-s", name, folder.path("environment"))
      let dump = try String(contentsOfFile: folder.path("dump"), encoding: .utf8)
        .replacing(/mapsize=[0-9]+/, with: "mapsize=16777216")
      try dump.write(toFile: folder.path("dump"), atomically: false, encoding: .utf8)
      _ = try ForeignTool.lines(of: "mdb_load", "-n", "-f", folder.path("dump"), "-s", name, folder.path("loaded.mdb"))
    }
    let loaded = try await LMDBEnvironment(path: folder.path("loaded.mdb"), createsIfMissing: false)
    #expect(try await loaded.storeNames() == environment.storeNames())
    for name in try await environment.storeNames() {
      expectEqual(
        try await all(try await LMDBStore(in: loaded, name: name, codec: .raw, createsIfMissing: false)),
        try await all(try await LMDBStore(in: environment, name: name, codec: .raw)))
      await expectStoreError(.versionMismatch) { try await LMDBStore<Int>(in: loaded, name: name, codec: .json()) }
    }
    try await loaded.close()
    try await environment.close()
  }

  @Test(.enabled(if: ForeignTool.commandObstacle == nil, "\(ForeignTool.commandObstacle ?? "")"))
  func `stat matches the statistics`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    let environment = try await filledEnvironment(path)
    let store = try await LMDBStore<[UInt8]>(in: environment, codec: .raw)
    let statistics = try await environment.statistics()
    let whole = try figures(ForeignTool.lines(of: "mdb_stat", "-e", "-f", path))
    #expect(whole["Map size"] == statistics.mapSize)
    #expect(whole["Page size"] == statistics.pageSize)
    #expect(whole["Number of pages used"] == statistics.pageCount)
    #expect(whole["Free pages"] == statistics.freePageCount)
    #expect(statistics.freePageCount > 0)
    #expect(whole["Last transaction ID"] == statistics.lastTransaction)
    #expect(whole["Max readers"] == statistics.maximumReaderCount)
    // mdb_stat itself uses a slot.
    #expect((statistics.readerCount...statistics.readerCount + 1).contains(whole["Number of readers used"] ?? 0))

    let ofStore = try await store.storeStatistics()
    let details = Dictionary(uniqueKeysWithValues: ofStore.details.map { ($0.name, Int($0.value)) })
    let tree = try figures(ForeignTool.lines(of: "mdb_stat", "-s", "default", path))
    #expect(tree["Entries"] == ofStore.entryCount)
    #expect(tree["Entries"] == (try store.count(in: .all)))
    #expect(tree["Tree depth"] == details["depth"])
    #expect(tree["Branch pages"] == details["branchPages"])
    #expect(tree["Leaf pages"] == details["leafPages"])
    #expect(tree["Overflow pages"] == details["overflowPages"])
    #expect((details["overflowPages"] ?? 0) > 0)
    #expect(details["environmentPages"] == statistics.pageCount)
    #expect(details["mapBytes"] == statistics.mapSize)
    // Of all named databases, the last one is listed last.
    let databases = try ForeignTool.lines(of: "mdb_stat", "-a", path).filter { $0.hasPrefix("Status of ") }
    #expect(databases == ["Status of Main DB", "Status of default", "Status of larder", "Status of näme of two words"])
    try await environment.close()
  }

  /// The figures that `mdb_stat` prints last under each name.
  ///
  /// Those of the requested database follow those of the main one.
  private func figures(_ lines: [Substring]) -> [String: Int] {
    var figures: [String: Int] = [:]
    for line in lines {
      let parts = line.split(separator: ":")
      if parts.count == 2, let value = Int(parts[1].trimmingCharacters(in: .whitespaces)) {
        figures[parts[0].trimmingCharacters(in: .whitespaces)] = value
      }
    }
    return figures
  }

  // MARK: Python

  private static let dump = """
    environment = lmdb.open(argv[1], max_dbs=8, subdir=argv[2] == "folder", readonly=True)
    with environment.begin(db=environment.open_db(argv[3].encode(), create=False)) as transaction:
      for key, value in transaction.cursor():
        print(key.hex() + ":" + value.hex())
    """

  @Test(
    .enabled(if: ForeignTool.pythonObstacle == nil, "\(ForeignTool.pythonObstacle ?? "")"),
    arguments: ["folder", "file"])
  func `python reads the same entries in the same order`(layout: String) async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    if layout == "file" { try Data().write(to: URL(fileURLWithPath: path)) }
    let environment = try await filledEnvironment(path)
    for name in try await environment.storeNames() {
      let store = try await LMDBStore<[UInt8]>(in: environment, name: name, codec: .raw)
      let lines = try ForeignTool.lines(ofPython: InteroperabilityTests.dump, path, layout, name)
      let entries = try await all(store)
      #expect(entries.count > 100)
      #expect(
        lines
          == entries.map { "\($0.key.withUnsafeBytes { Hexadecimal.text(of: $0) }):\(Hexadecimal.text(of: $0.value))" }
          .map { $0[...] })
    }
    try await environment.close()
    #expect(try folder.names == (layout == "folder" ? ["environment"] : ["environment", "environment-lock"]))
  }

  @Test(
    .enabled(if: ForeignTool.pythonObstacle == nil, "\(ForeignTool.pythonObstacle ?? "")"),
    arguments: ["folder", "file"])
  func `larder reads entries written by Python`(layout: String) async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    let lines = try ForeignTool.lines(
      ofPython: """
        import random
        random.seed(int(argv[3]))
        environment = lmdb.open(argv[1], max_dbs=8, subdir=argv[2] == "folder", map_size=1 << 26)
        database = environment.open_db(b"foreign")
        entries = {random.randbytes(random.randint(1, 511)): random.randbytes(random.randint(0, 9000)) for _ in range(500)}
        with environment.begin(write=True, db=database) as transaction:
          for key in entries:
            transaction.put(key, entries[key])
        for key in sorted(entries):
          print(key.hex() + ":" + entries[key].hex())
        """, path, layout, "\(SeededGenerator.seedOfProcess)")
    let environment = try await LMDBEnvironment(path: path, createsIfMissing: false)
    #expect(try await environment.storeNames() == ["foreign"])
    let reading = try await LMDBStore<[UInt8]>(in: environment, name: "foreign", codec: .raw, createsIfMissing: false)
    let entries = try await all(reading)
    #expect(
      lines
        == entries.map { "\($0.key.withUnsafeBytes { Hexadecimal.text(of: $0) }):\(Hexadecimal.text(of: $0.value))" }
        .map { $0[...] })
    // Read-only access leaves no record. Opening the database as a store does.
    #expect(try await environment.storeNames() == ["foreign"])
    _ = try await LMDBStore<String>(in: environment, name: "foreign", codec: .json(), createsIfMissing: false)
    let owning = try await LMDBStore<[UInt8]>(in: environment, name: "foreign", codec: .raw)
    await expectStoreError(.versionMismatch) {
      try await LMDBStore<String>(in: environment, name: "foreign", codec: .json(), createsIfMissing: false)
    }
    try await owning.setValue([1, 2, 3], forKey: "from Larder")
    let value = try ForeignTool.lines(
      ofPython: """
        environment = lmdb.open(argv[1], max_dbs=8, subdir=argv[2] == "folder", map_size=1 << 26)
        with environment.begin(db=environment.open_db(b"foreign")) as transaction:
          print(transaction.get(b"from Larder").hex())
        """, path, layout)
    #expect(value == ["010203"])
    try await environment.close()
  }

  @Test(.enabled(if: ForeignTool.pythonObstacle == nil, "\(ForeignTool.pythonObstacle ?? "")"))
  func `the chosen codec is recorded for a foreign database`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    _ = try ForeignTool.lines(
      ofPython: """
        environment = lmdb.open(argv[1], max_dbs=8, map_size=1 << 24)
        with environment.begin(write=True, db=environment.open_db(b"foreign")) as transaction:
          transaction.put(b"key", bytes([7]))
        """, path)
    let registry = StoreRegistry(providers: [LMDBStoreProvider()])
    let url = StoreURL(scheme: "lmdb", location: path + "#foreign")
    // A default would be recorded for values that have another codec.
    for examines in [false, true] {
      let registry = StoreRegistry(providers: [LMDBStoreProvider(examinesPages: examines)])
      let options = examines ? StoreOptions(createsIfMissing: false, access: .readOnly) : StoreOptions()
      let error = await expectStoreError(.invalidArgument) { try await registry.open(url, options: options) }
      #expect(error?.underlying is UnrecordedCodecError)
      #expect(error?.message.contains("the named database was created by another program and records no codec") == true)
      let reading = StoreOptions(createsIfMissing: false, access: .readOnly)
      #expect(try await registry.open(url, options: reading, newCodecName: "raw").codecName == "raw")
    }
    let store = try await registry.open(url, newCodecName: "raw").typed(codec: .raw)
    #expect(try await store.value(forKey: "key") == [7])
    try await store.close()
    #expect(try await registry.open(url).codecName == "raw")
    await expectStoreError(.versionMismatch) { try await registry.open(url, codec: .json(Int.self)) }
  }

  @Test(.enabled(if: ForeignTool.pythonObstacle == nil, "\(ForeignTool.pythonObstacle ?? "")"))
  func `foreign named databases are refused`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    _ = try ForeignTool.lines(
      ofPython: """
        environment = lmdb.open(argv[1], max_dbs=8, map_size=1 << 24)
        environment.open_db(b"several", dupsort=True)
        environment.open_db(b"reversed", reverse_key=True)
        environment.open_db(b"integers", integerkey=True)
        environment.open_db(b"usual")
        with environment.begin(write=True) as transaction:
          transaction.put(b"plain", b"an entry of the main database")
          transaction.put(b"\\xFF\\xFE", b"another, whose key is no text")
          transaction.put(b"forty-eight", bytes(48))
        """, path)
    let environment = try await LMDBEnvironment(path: path)
    #expect(try await environment.storeNames() == ["integers", "reversed", "several", "usual"])
    for name in ["several", "reversed", "integers"] {
      let error = await expectStoreError(.unsupported) {
        try await LMDBStore<[UInt8]>(in: environment, name: name, codec: .raw)
      }
      #expect(error?.description.contains(name) == true)
    }
    // In LMDB 1.0, the keys of named databases end with a zero byte, so that they can have the names of other keys.
    for name in DataFileFormat.linked == .version1 ? ["plain", "forty-eight"] : [] {
      await expectStoreError(.unsupported) { try await LMDBStore<[UInt8]>(in: environment, name: name, codec: .raw) }
    }
    await expectStoreError(.notFound) {
      try await LMDBStore<[UInt8]>(in: environment, name: "missing", codec: .raw, createsIfMissing: false)
    }
    let usual = try await LMDBStore<[UInt8]>(in: environment, name: "usual", codec: .raw)
    try await usual.setValue([1], forKey: "k")
    #expect(try await environment.storeNames() == ["integers", "reversed", "several", "usual"])
    // Other data in the main database stays.
    let lines = try ForeignTool.lines(
      ofPython: """
        environment = lmdb.open(argv[1], max_dbs=8, map_size=1 << 24)
        with environment.begin() as transaction:
          print(transaction.get(b"plain").decode(), len(transaction.get(b"forty-eight")))
        """, path)
    #expect(lines == ["an entry of the main database 48"])
    try await environment.close()
  }

  @Test(.enabled(if: ForeignTool.pythonObstacle == nil, "\(ForeignTool.pythonObstacle ?? "")"))
  func `named databases beyond the limit of open ones are listed`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    _ = try ForeignTool.lines(
      ofPython: """
        environment = lmdb.open(argv[1], max_dbs=3000, map_size=1 << 26)
        with environment.begin(write=True) as transaction:
          for number in range(2500):
            environment.open_db(b"%04d" % number, txn=transaction)
        """, path)
    let environment = try await LMDBEnvironment(path: path)
    #expect(try await environment.storeNames() == (0..<2500).map { String("0000\($0)".suffix(4)) })
    _ = try await LMDBStore<[UInt8]>(in: environment, name: "2400", codec: .raw)
    #expect(try await environment.storeNames().count == 2500)
    try await environment.close()
  }

  @Test(.enabled(if: ForeignTool.pythonObstacle == nil, "\(ForeignTool.pythonObstacle ?? "")"))
  func `python and larder take turns in one environment`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    let store = try await LMDBStore<[UInt8]>(path: path, codec: .raw)
    for round in 0..<5 {
      try await store.setValue([UInt8(round)], forKey: "larder \(round)")
      _ = try ForeignTool.lines(
        ofPython: """
          environment = lmdb.open(argv[1], max_dbs=8, map_size=1 << 26)
          with environment.begin(write=True, db=environment.open_db(b"default")) as transaction:
            assert transaction.get(b"larder " + argv[2].encode()) == bytes([int(argv[2])])
            transaction.put(b"python " + argv[2].encode(), b"x")
          """, path, "\(round)")
      #expect(try store.value(forKey: "python \(round)") == [UInt8(ascii: "x")])
    }
    #expect(try store.count(in: .all) == 10)
    try await store.close()
  }

  @Test(.enabled(if: ForeignTool.pythonObstacle == nil, "\(ForeignTool.pythonObstacle ?? "")"))
  func `a named database removed by another program is reported`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    let environment = try await LMDBEnvironment(path: path)
    let store = try await LMDBStore<[UInt8]>(in: environment, codec: .raw)
    let other = try await LMDBStore<[UInt8]>(in: environment, name: "other", codec: .raw)
    let entries = (0..<300).map { (StoreKey(integer: $0), [UInt8](repeating: 1, count: 500)) }
    for store in [store, other] { try await store.apply(ChangeBatch(entries.map { .set($0.0, $0.1) })) }
    _ = try ForeignTool.lines(
      ofPython: """
        environment = lmdb.open(argv[1], max_dbs=8, map_size=1 << 26)
        database = environment.open_db(b"default")
        with environment.begin(write=True) as transaction:
          transaction.drop(database)
        """, path)
    for _ in 0..<3 {
      if DataFileFormat.linked == .version1 {
        #expect(try store.value(forKey: StoreKey(integer: 3)) == nil)
        #expect(try store.keys(in: .all, limit: 3, order: .ascending) == [])
      } else {
        expectStoreError(.conflict) { try store.value(forKey: StoreKey(integer: 3)) }
        expectStoreError(.conflict) { try store.keys(in: .all, limit: 3, order: .ascending) }
      }
      // LMDB itself would terminate the process here.
      await expectStoreError(.conflict) { try await store.setValue([2], forKey: "k") }
      await expectStoreError(.conflict) { try await store.removeAll() }
      await expectStoreError(.conflict) { try await store.update("k") { $0 = [3] } }
      await expectStoreError(.conflict) { try await environment.write { try $0.setValue([2], forKey: "k", in: store) } }
      try await other.apply(ChangeBatch(entries.map { .set($0.0, $0.1 + $0.1) }))
    }
    #expect(try other.count(in: .all) == 300)
    #expect(try await all(other).allSatisfy { $0.value.count == 1000 })
    #expect(try await environment.storeNames() == ["other"])
    try await environment.close()
    // Opening it again creates a new store.
    let again = try await LMDBStore<[UInt8]>(path: path, codec: .raw)
    try await again.setValue([2], forKey: "k")
    #expect(try again.count(in: .all) == 1)
    try await again.close()
  }
}

/// The output of `mdb_dump` for one named database: header lines, then a line for each key and each value in turn.
struct DumpedDatabase {
  let name: String
  let entries: [StoreEntry<[UInt8]>]

  struct Unreadable: Error {
    let line: Substring
  }

  /// Parses the whole output.
  static func all(in lines: [Substring]) throws -> [DumpedDatabase] {
    var databases: [DumpedDatabase] = []
    var name = ""
    var isPrintable = false
    var data: [[UInt8]]?
    for line in lines {
      if let items = data {
        if line == "DATA=END" {
          let entries = stride(from: 0, to: items.count - 1, by: 2).map { index in
            StoreEntry(key: StoreKey(bytes: items[index]), value: items[index + 1])
          }
          databases.append(DumpedDatabase(name: name, entries: entries))
          data = nil
        } else {
          guard line.first == " ", let item = bytes(of: line.dropFirst(), isPrintable: isPrintable) else {
            throw Unreadable(line: line)
          }
          data?.append(item)
        }
      } else if line == "HEADER=END" {
        data = []
      } else if line.hasPrefix("database=") {
        name = String(line.dropFirst("database=".count))
      } else if line.hasPrefix("format=") {
        isPrintable = line == "format=print"
      }
    }
    return databases
  }

  private static func bytes(of text: Substring, isPrintable: Bool) -> [UInt8]? {
    guard isPrintable else { return Hexadecimal.bytes(of: text.utf8) }
    var bytes: [UInt8] = []
    var rest = text.utf8
    while let byte = rest.popFirst() {
      if byte != UInt8(ascii: "\\") {
        bytes.append(byte)
      } else if rest.first == UInt8(ascii: "\\") {
        bytes.append(rest.removeFirst())
      } else {
        guard let escaped = Hexadecimal.bytes(of: rest.prefix(2)), escaped.count == 1 else { return nil }
        bytes += escaped
        rest.removeFirst(2)
      }
    }
    return bytes
  }
}
#endif
