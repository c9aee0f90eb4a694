import Foundation
import Larder
import LarderCompression
import LarderLMDB
import Testing

@Suite struct BackupTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func lines(_ numbers: Range<Int>) -> String {
    numbers.map { "{\"key\":\"\(1_000_000 + $0)\",\"value\":[\($0)]}\n" }.joined()
  }

  @Test(arguments: StoreKind.allCases, [[], ["--compact"]])
  func `a backup is a store of the same kind`(kind: StoreKind, options: [String]) async throws {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("import", store, input: lines(0..<500)).status == 0)
    let path = folder.file("copy")
    #expect(try await ToolRun.run(Tool.path, ["backup", store, path] + options) == .done())
    #expect(try await Tool.larder("clear", store) == .done())
    let copy = "\(kind.rawValue):\(path)"
    #expect(try await Tool.larder("export", copy) == .done(lines(0..<500)))
    #expect(try await Tool.larder("verify", copy).errors == "500 entries, no damage\n")
    #expect(try await Tool.larder("set", copy, "k", "1") == .done())
    #expect(try folder.names().filter { $0.contains("larder-") } == [])
  }

  @Test(arguments: StoreKind.allCases)
  func `an existing path is refused`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("set", store, "k", "1") == .done())
    let path = try folder.write("mine", to: "taken")
    #expect(try await Tool.larder("backup", store, path).failed(64, " already"))
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "mine")
    #expect(try await Tool.larder("backup", store, folder.path).failed(64, " already"))
    #expect(try await Tool.larder("backup", store, folder.file(kind.fileName())).failed(64, " already"))
    #expect(try await Tool.larder("backup", store, folder.file("none/copy")).failed(74, "No such file or directory"))
    #expect(try await Tool.larder("get", store, "k") == .done("1\n"))
  }

  /// Returns the names in the folder of the backups that have a prefix.
  private func backups(of prefix: String = "") throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.file("backups")).filter { $0.hasPrefix(prefix) }.sorted()
  }

  private func createBackupFolder(with names: [String] = []) throws -> String {
    let path = folder.file("backups")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    for name in names { try Data("old".utf8).write(to: URL(filePath: "\(path)/\(name)")) }
    return path
  }

  @Test(arguments: StoreKind.allCases) func `the oldest backups are removed`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    let path = try createBackupFolder(with: ["mine"])
    for round in 0..<3 {
      #expect(try await Tool.larder("import", store, input: lines(0..<(round + 3))).status == 0)
      #expect(try await Tool.larder("backup", store, path, "--keep", "2") == .done())
    }
    let names = try backups(of: kind.fileName())
    #expect(names.count == 2 && names[0].contains("-000002-") && names[1].contains("-000003-"), "\(names)")
    for (name, count) in zip(names, [4, 5]) {
      let restored = folder.file("restored\(count)")
      let run = try await Tool.larder("restore", "\(kind.rawValue):\(path)/\(name)", restored)
      #expect(run.status == 0 && run.errors == "restored \(count) entries\n", "\(run)")
      #expect(try await Tool.larder("export", "\(kind.rawValue):\(restored)") == .done(lines(0..<count)))
    }
    #expect(try await Tool.larder("backup", store, path, "--keep", "0").status == 64)
    // A backup that fails removes nothing.
    #expect(try await Tool.larder("backup", "json:\(folder.file("none"))", path, "--keep", "1").status == 66)
    #expect(try await Tool.larder("backup", store, folder.file("none"), "--keep", "1").failed(74, "existing folder"))
    #expect(try backups() == (names + ["mine"]).sorted())
  }

  /// A program has written to a backup, or was killed there.
  @Test(arguments: StoreKind.allCases) func `the files of an opened backup are removed with it`(kind: StoreKind)
    async throws
  {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("set", store, "k", "1") == .done())
    let path = try createBackupFolder()
    #expect(try await Tool.larder("backup", store, path, "--keep", "1") == .done())
    let old = try #require(backups().first)
    #expect(try await Tool.larder("set", "\(kind.rawValue):\(path)/\(old)", "k", "2") == .done())
    for suffix in kind.companionSuffixes where !FileManager.default.fileExists(atPath: "\(path)/\(old)\(suffix)") {
      try Data("left".utf8).write(to: URL(filePath: "\(path)/\(old)\(suffix)"))
    }
    try Data("note".utf8).write(to: URL(filePath: "\(path)/\(old).note"))
    #expect(try await Tool.larder("backup", store, path, "--keep", "1") == .done())
    let left = try backups()
    #expect(left.count == 2 && left[0] == old + ".note" && left[1].contains("-000002-"), "\(left)")
  }

  /// A clock that was ahead once has left a backup with a later time.
  @Test(arguments: StoreKind.allCases) func `the new backup stays whatever the clock said`(kind: StoreKind) async throws
  {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("set", store, "ada", "\"old\"") == .done())
    let path = try createBackupFolder()
    #expect(try await Tool.larder("backup", store, path, "--keep", "1") == .done())
    let made = try #require(backups().first)
    let ahead = made.replacing(/-\d{8}T\d{6}Z$/, with: "-20991231T235959Z")
    try FileManager.default.moveItem(atPath: "\(path)/\(made)", toPath: "\(path)/\(ahead)")
    #expect(try await Tool.larder("set", store, "ada", "\"new\"") == .done())
    #expect(try await Tool.larder("backup", store, path, "--keep", "1") == .done())
    let left = try backups()
    #expect(left.count == 1 && left != [ahead], "\(left)")
    #expect(try await Tool.larder("get", "\(kind.rawValue):\(path)/\(left[0])", "ada") == .done("\"new\"\n"))
  }

  @Test func `stores in one folder keep their backups`() async throws {
    let path = try createBackupFolder()
    let stores = ["json:\(folder.file("users.json"))", "json:\(folder.file("orders.json"))"]
    for store in stores { #expect(try await Tool.larder("set", store, "k", "1") == .done()) }
    for _ in 0..<2 {
      for store in stores { #expect(try await Tool.larder("backup", store, path, "--keep", "1") == .done()) }
    }
    #expect(try backups().count == 2)
    #expect(try backups(of: "users.json-").count == 1)
    #expect(try backups(of: "orders.json-").count == 1)
    // The stores of an environment are backed up together.
    let shop = "lmdb:\(folder.file("shop"))"
    for name in ["customers", "orders"] {
      #expect(try await Tool.larder("set", "\(shop)#\(name)", "k", "1") == .done())
      #expect(try await Tool.larder("backup", "\(shop)#\(name)", path, "--keep", "1") == .done())
    }
    #expect(try backups(of: "shop-").count == 1)
  }

  @Test func `backups that name no store are left and reported`() async throws {
    let old = ["20200101T000000Z", "20210101T000000Z", "20991231T235959Z"]
    let path = try createBackupFolder(with: old + ["20200101T000000Z.note"])
    let store = StoreKind.json.url(in: folder)
    #expect(try await Tool.larder("set", store, "k", "1") == .done())
    let run = try await Tool.larder("backup", store, path, "--keep", "1")
    #expect(run.status == 0 && run.errors.contains("3 backups whose name does not say which store"), "\(run)")
    #expect(run.errors.contains("such as 20200101T000000Z"))
    #expect(Set(try backups()).isSuperset(of: old))
    #expect(try backups().count == 5)
  }

  @Test func `a damaged backup is not restored`() async throws {
    let store = StoreKind.json.url(in: folder)
    #expect(try await Tool.larder("import", store, input: lines(0..<3)).status == 0)
    let path = folder.file("copy")
    #expect(try await Tool.larder("backup", store, path) == .done())
    let text = try String(contentsOfFile: path, encoding: .utf8)
    try text.replacing("[1]", with: "[1").write(toFile: path, atomically: true, encoding: .utf8)
    let run = try await Tool.larder("restore", "json:\(path)", folder.file("restored"))
    #expect(run.status == 2 || run.status == 65, "\(run)")
    #expect(!FileManager.default.fileExists(atPath: folder.file("restored")))
    #expect(try await Tool.larder("restore", store, path).failed(64, " already"))
  }

  @Test(arguments: [(StoreKind.json, ".journal"), (.sqlite, "-wal"), (.sqlite, "-journal")])
  func `nothing is restored beside a file of the damaged store`(kind: StoreKind, suffix: String) async throws {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("import", store, input: lines(0..<3)).status == 0)
    let restored = folder.file("restored")
    let left = try folder.write("of a killed program", to: "restored" + suffix)
    #expect(try await Tool.larder("restore", store, restored).failed(64, left))
    #expect(try await Tool.larder("backup", store, restored).failed(64, left))
    #expect(!FileManager.default.fileExists(atPath: restored))
    #expect(try String(contentsOfFile: left, encoding: .utf8) == "of a killed program")
    try FileManager.default.removeItem(atPath: left)
    #expect(try await Tool.larder("restore", store, restored).status == 0)
    #expect(try await Tool.larder("export", "\(kind.rawValue):\(restored)") == .done(lines(0..<3)))
  }

  @Test func `a backup has the dictionaries of its values`() async throws {
    let path = folder.file("users")
    // Values below 48 bytes are not compressed.
    let values = (0..<200).map { ["name": "user number \($0)", "address": "1 Rue de Rivoli, 75001 Paris, France"] }
    let dictionary = try CompressionDictionary.train(on: values, codec: .json([String: String].self))
    let dictionaries = try await CompressionDictionaries.add(
      dictionary, toFile: CompressionDictionaries.path(besideStoreAt: path))
    let store = try await LMDBStore(
      path: path, codec: .json([String: String].self).compressed(dictionaries: dictionaries))
    for (number, value) in values.prefix(20).enumerated() { try await store.setValue(value, forKey: "\(number)") }
    try await store.close()
    #expect(try await Tool.larder("backup", "lmdb:\(path)", folder.file("copy")) == .done())
    let run = try await Tool.larder("restore", "lmdb:\(folder.file("copy"))", folder.file("again"))
    #expect(run.status == 0 && run.errors == "restored 20 entries\n")
    #expect(try await Tool.larder("get", "lmdb:\(folder.file("again"))", "3").output.contains("number 3"))
    // A rotation removes them together with their backup.
    let nightly = try createBackupFolder()
    for _ in 0..<2 { #expect(try await Tool.larder("backup", "lmdb:\(path)", nightly, "--keep", "1") == .done()) }
    let names = try FileManager.default.contentsOfDirectory(atPath: nightly).sorted()
    #expect(names.count == 2 && names[1] == names[0] + ".dictionaries", "\(names)")
    // A backup of an earlier version has none.
    try FileManager.default.removeItem(atPath: folder.file("copy.dictionaries"))
    let failed = try await Tool.larder("restore", "lmdb:\(folder.file("copy"))", folder.file("third"))
    #expect(
      failed.status == 2 && failed.output.contains("is missing (\(folder.file("copy.dictionaries")))"), "\(failed)")
    #expect(failed.errors.contains("was not restored") && !failed.errors.contains("is damaged"))
  }

  @Test func `the backup needs a path`() async throws {
    let store = StoreKind.json.url(in: folder)
    #expect(try await Tool.larder("set", store, "k", "1") == .done())
    #expect(try await Tool.larder("backup", store, "lmdb:copy").failed(64, "omit lmdb:, or write './lmdb:copy'"))
    #expect(try await Tool.larder("backup", store, "").failed(64, "must not be empty"))
    #expect(try await Tool.larder("backup", store).failed(64, "larder backup --help"))
    #expect(try await Tool.larder("backup", "memory:", folder.file("copy")).failed(66, "memory"))
    #expect(try await Tool.larder("backup", store, folder.file("a:b")) == .done())
  }

  @Test func `the whole environment is backed up`() async throws {
    let path = folder.file("shop")
    #expect(try await Tool.larder("set", "lmdb:\(path)#customers", "7", "\"Ada\"") == .done())
    #expect(try await Tool.larder("set", "lmdb:\(path)#orders", "7/1", "2") == .done())
    #expect(try await Tool.larder("backup", "lmdb:\(path)#orders", folder.file("copy")) == .done())
    #expect(try await Tool.larder("get", "lmdb:\(folder.file("copy"))#customers", "7") == .done("\"Ada\"\n"))
    #expect(try await Tool.larder("get", "lmdb:\(folder.file("copy"))#orders", "7/1") == .done("2\n"))
  }

  @Test func `a compacting backup omits free space`() async throws {
    let store = StoreKind.lmdb.url(in: folder)
    #expect(try await Tool.larder("import", store, input: lines(0..<20_000)).status == 0)
    #expect(try await Tool.larder("clear", store) == .done())
    #expect(try await Tool.larder("import", store, input: lines(0..<10)).status == 0)
    var sizes: [Int] = []
    for (name, options) in [("plain", []), ("compact", ["--compact"])] {
      #expect(try await ToolRun.run(Tool.path, ["backup", store, folder.file(name)] + options) == .done())
      let data = folder.file("\(name)/data.mdb")
      let attributes = try FileManager.default.attributesOfItem(atPath: data)
      sizes.append(try #require(attributes[.size] as? NSNumber).intValue)
      #expect(attributes[.posixPermissions] as? NSNumber == 0o600)
      #expect(try await Tool.larder("export", "lmdb:\(folder.file(name))") == .done(lines(0..<10)))
    }
    #expect(sizes[1] * 4 < sizes[0])
  }
}
