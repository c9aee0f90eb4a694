import Foundation
import Larder
import LarderJSON
import TestSupport
import Testing

/// Tests with the real file system and third-party programs.
@Suite struct JSONFileStoreOnDiskTests {
  private let temporary: TemporaryFolder
  private var folder: String { temporary.path }

  init() throws {
    temporary = try TemporaryFolder()
  }

  private func output(of command: String, _ arguments: String...) throws -> String {
    let run = try CommandRun([command] + arguments)
    try #require(run.status == 0, "\(command) failed: \(run.errors)")
    return run.output
  }

  struct User: Codable, Equatable {
    var name: String
    var age: Int?
  }

  @Test func `other programs read the document and the journal`() async throws {
    let path = "\(folder)/users.json"
    let store = try await JSONFileStore<User>(path: path)
    try await store.setValue(User(name: "Ada \"\u{1}é🐄", age: 36), forKey: "user:1")
    try await store.setValue(User(name: "Bob", age: nil), forKey: StoreKey(bytes: [0x80]))
    #expect(try output(of: "jq", "-c", ".changes[0].value.age // .journal", path + ".journal") == "2\n36\nnull\nnull\n")
    try await store.close()
    #expect(try output(of: "jq", "-r", ".entries[\"user:1\"].name", path) == "Ada \"\u{1}é🐄\n")
    #expect(try output(of: "jq", "-c", ".entries | keys", path) == "[\"keyBytes:80\",\"user:1\"]\n")
    _ = try output(of: "python3", "-m", "json.tool", path)
  }

  @Test func `the checksums match the published algorithm`() async throws {
    let path = "\(folder)/sums.json"
    let store = try await JSONFileStore<[String]>(path: path)
    for number in 0..<20 { try await store.setValue(["é", "\(number)"], forKey: "\(number)") }
    // CRC-32C bit by bit, as RFC 3720 defines it.
    let script = """
      import json, sys
      def crc32c(data):
        crc = 0xFFFFFFFF
        for byte in data:
          crc ^= byte
          for _ in range(8): crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        return crc ^ 0xFFFFFFFF
      lines = open(sys.argv[1], "rb").read().splitlines()
      print(len(lines), all(int(json.loads(l)["crc32c"], 16) == crc32c(l[l.index(b",") + 1:]) for l in lines))
      """
    #expect(try output(of: "python3", "-c", script, path + ".journal") == "22 True\n")
    try await store.close()
  }

  @Test func `symbolic links lead to one store and stay`() async throws {
    let link = "\(folder)/link.json"
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "real.json")
    let store = try await JSONFileStore<Int>(path: link)
    do {
      _ = try await JSONFileStore<Int>(path: "\(folder)/real.json")
      Issue.record("the same file was opened twice")
    } catch StoreError.Code.locked {}
    try await store.setValue(1, forKey: "a")
    try await store.close()
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "real.json")
    let again = try await JSONFileStore<Int>(path: "\(folder)/real.json", createsIfMissing: false)
    #expect(try again.value(forKey: "a") == 1)
  }

  @Test func `a document with two hard links is refused`() async throws {
    let path = "\(folder)/one.json"
    try await JSONFileStore<Int>(path: path).close()
    try FileManager.default.linkItem(atPath: path, toPath: "\(folder)/two.json")
    do {
      _ = try await JSONFileStore<Int>(path: path)
      Issue.record("it was opened")
    } catch StoreError.Code.unsupported {}
  }

  @Test func `a huge file is refused unread`() async throws {
    let path = "\(folder)/huge.json"
    try #require(FileManager.default.createFile(atPath: path, contents: nil))
    try #require(truncate(path, 1 << 42) == 0)
    do {
      _ = try await JSONFileStore<Int>(path: path)
      Issue.record("it was opened")
    } catch StoreError.Code.unsupported {}
  }

  @Test func `a huge sparse file is refused unread`() async throws {
    let path = "\(folder)/sparse.json"
    for beginning in ["", "{\"larder\":2,\"entries\":{\n"] {
      try Data(beginning.utf8).write(to: URL(fileURLWithPath: path))
      try #require(truncate(path, 3 << 30) == 0)
      for access in beginning.isEmpty ? StoreAccess.allCases : [.readWrite] {
        do {
          _ = try await JSONFileStore<Int>(path: path, access: access)
          Issue.record("it was opened")
        } catch StoreError.Code.corrupted {}
      }
    }
  }

  @Test func `a folder replaced while the store is open keeps its own data`() async throws {
    let (data, other) = ("\(folder)/data", "\(folder)/other")
    for path in [data, other] {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      try await JSONFileStore<Int>(path: "\(path)/s.json").close()
    }
    let first = try await JSONFileStore<Int>(path: "\(data)/s.json")
    try FileManager.default.moveItem(atPath: data, toPath: "\(folder)/old")
    try FileManager.default.moveItem(atPath: other, toPath: data)
    let second = try await JSONFileStore<Int>(path: "\(data)/s.json")
    try await second.setValue(2, forKey: "second")
    do {
      try await first.setValue(1, forKey: "first")
      Issue.record("the store wrote into another store")
    } catch StoreError.Code.locked {}
    try await second.close()
    try await first.close()
    let reader = try await JSONFileStore<Int>(path: "\(data)/s.json", access: .readOnly)
    #expect(try reader.keys(in: .all, limit: 9, order: .ascending) == ["second"])
  }

  @Test func `a path with a NUL is refused`() async throws {
    do {
      _ = try await JSONFileStore<Int>(path: "\(folder)/users\0x.json")
      Issue.record("it was opened")
    } catch StoreError.Code.invalidArgument {}
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
  }

  @Test func `names that differ only in an accent are two stores`() async throws {
    let composed = try await JSONFileStore<Int>(path: "\(folder)/\u{E9}.json")
    let stale = "\(folder)/e\u{301}.json.larder-tmp-0123456789abcdef"
    try #require(FileManager.default.createFile(atPath: stale, contents: nil))
    try await composed.close()
    try await JSONFileStore<Int>(path: "\(folder)/\u{E9}.json").close()
    #expect(FileManager.default.fileExists(atPath: stale))
    let combining = try await JSONFileStore<Int>(path: "\(folder)/\u{301}x.json")
    #expect(combining.information.name == "\u{301}x.json")
  }

  @Test func `a missing folder is named`() async throws {
    do {
      _ = try await JSONFileStore<Int>(path: "\(folder)/no/store.json")
      Issue.record("it was opened")
    } catch let error as StoreError {
      #expect(error.code == .notFound && error.message == "the folder \(folder)/no does not exist; create it first")
    }
  }

  @Test(arguments: ["", ".", "..", ".hidden", "a/b", "/", "a\0b"]) func `invalid file names are refused`(_ name: String)
    async
  {
    do {
      _ = try await JSONFileStore<Int>(name: name)
      Issue.record("it was opened")
    } catch StoreError.Code.invalidArgument {
    } catch {
      Issue.record(error)
    }
  }

  @Test func `the registry opens it by URL`() async throws {
    let registry = StoreRegistry(providers: [JSONFileStoreProvider()])
    let path = "\(folder)/a:b.json"
    let store = try await registry.open("json:\(path)", codec: .json(Int.self))
    try await store.setValue(1, forKey: "a")
    try await store.close()
    #expect(FileManager.default.fileExists(atPath: path))
    do {
      _ = try await registry.open("json:", codec: .json(Int.self))
      Issue.record("it was opened")
    } catch StoreError.Code.invalidArgument {}
  }

  @Test func `the registry uses the codec of the document`() async throws {
    let registry = StoreRegistry(providers: [JSONFileStoreProvider()])
    let url = try StoreURL("json:\(folder)/chosen.json")
    // The first opening creates the store.
    for newCodecName in ["raw", nil, "json"] {
      let untyped = try await registry.open(url, newCodecName: newCodecName)
      #expect(untyped.codecName == "raw")
      let store = try await untyped.typed(codec: .raw)
      try await store.setValue([1], forKey: "a")
      try await store.close()
    }
    // A store that gets no type, or is refused one, is unchanged and available to others.
    _ = try await registry.open(url)
    do {
      _ = try await registry.open(url).typed(codec: .json(Int.self))
      Issue.record("it was opened")
    } catch StoreError.Code.versionMismatch {}
    let store = try await registry.open(url, codec: .raw)
    #expect(try await store["a"] == [1])
    try await store.close()
  }
}
