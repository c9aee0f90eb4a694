import Foundation
import Larder
import LarderTesting
import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct CopyTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func lines(_ numbers: Range<Int>, value: String = "1.5") -> String {
    numbers.map { "{\"key\":\"\(1_000_000 + $0)\",\"value\":[\($0),\(value)]}\n" }.joined()
  }

  private func copy(_ source: String, to destination: String, _ arguments: String...) async throws -> ToolRun {
    // The default codec of new stores of this kind.
    let codec = ["lmdb:", "sqlite:"].contains(where: destination.hasPrefix) ? "cbor" : "json"
    return try await ToolRun.run(Tool.path, ["copy", source, destination, "--codec", codec] + arguments)
  }

  @Test(arguments: StoreKind.pairs(for: "everyEntryIsCopiedUnchanged"))
  func everyEntryIsCopiedUnchanged(from sourceKind: StoreKind, to destinationKind: StoreKind) async throws {
    let source = sourceKind.url("source", in: folder)
    let destination = destinationKind.url("destination", in: folder)
    let text = lines(0..<25) + "{\"keyBytes\":\"80c0\",\"value\":null}\n{\"key\":\"é\",\"value\":-0.0}\n"
    #expect(try await Tool.larder("import", source, input: text).status == 0)
    for batch in ["1", "10", "27", "1000000"] {
      let run = try await copy(source, to: destination, "--batch", batch)
      #expect(run.status == 0)
      #expect(run.output == "")
      #expect(run.errors.wholeMatch(of: /copied 27 entries in \d+\.\d s, 0 were already equal\n/) != nil)
      #expect(try await Tool.larder("export", destination) == .done(text))
      #expect(try await Tool.larder("clear", destination) == .done())
    }
    #expect(try folder.names().filter { $0.hasSuffix(".journal") } == [])
  }

  @Test(arguments: StoreKind.pairs(for: "equalEntriesAreSkippedAndOtherKeysStay"))
  func equalEntriesAreSkippedAndOtherKeysStay(from sourceKind: StoreKind, to destinationKind: StoreKind) async throws {
    let source = sourceKind.url("source", in: folder)
    let destination = destinationKind.url("destination", in: folder)
    #expect(try await Tool.larder("import", source, input: lines(0..<10)).status == 0)
    #expect(try await Tool.larder("import", destination, input: lines(0..<4) + lines(8..<12, value: "2")).status == 0)
    #expect(
      try await copy(source, to: destination).errors.wholeMatch(of: /copied 6 entries in .* s, 4 were already equal\n/)
        != nil)
    #expect(try await Tool.larder("export", destination) == .done(lines(0..<10) + lines(10..<12, value: "2")))
    #expect(
      try await copy(source, to: destination).errors.wholeMatch(of: /copied 0 entries in .* s, 10 were already equal\n/)
        != nil)
  }

  @Test(arguments: StoreKind.pairs(for: "anEmptyStoreCreatesAnEmptyOne"))
  func anEmptyStoreCreatesAnEmptyOne(from sourceKind: StoreKind, to destinationKind: StoreKind) async throws {
    let source = sourceKind.url("source", in: folder)
    let destination = destinationKind.url("destination", in: folder)
    #expect(try await Tool.larder("import", source).status == 0)
    #expect(try await copy(source, to: destination).status == 0)
    #expect(try await Tool.larder("count", destination) == .done("0\n"))
  }

  @Test func `a store is not copied to itself`() async throws {
    let source = StoreKind.json.url("source", in: folder)
    #expect(try await Tool.larder("set", source, "k", "1") == .done())
    #expect(try await Tool.larder("copy", source, source).failed(64, "cannot be copied to itself"))
    let link = folder.file("link.json")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: folder.file("source.json"))
    #expect(
      try await Tool.larder("copy", source, "json:\(link)", "--wait", "0s").failed(
        75, "cannot be copied to itself under another name"))
    #expect(try await Tool.larder("get", source, "k") == .done("1\n"))
    #expect(try await Tool.larder("copy", "memory:", "memory:").failed(64, "cannot be copied to itself"))
  }

  @Test func `the codec of the source is kept`() async throws {
    let (source, copy) = ("lmdb:\(folder.file("source"))", "lmdb:\(folder.file("copy"))")
    let program = try await Stores.registry.open(source, codec: .raw)
    try await program.setValue([1, 2, 0xFF], forKey: "k")
    try await program.close()
    #expect(try await Tool.larder("copy", source, copy).status == 0)
    let again = try await Stores.registry.open(copy, codec: .raw)
    #expect(try await again["k"] == [1, 2, 0xFF])
    try await again.close()
  }

  /// A value that the tool would encode differently stays as the program has written it.
  @Test(arguments: StoreKind.allCases, StoreKind.allCases)
  func `stored bytes are not decoded`(from sourceKind: StoreKind, to destinationKind: StoreKind) async throws {
    let source = sourceKind.url("source", in: folder)
    let destination = destinationKind.url("destination", in: folder)
    // The number 1 in two bytes, and bytes that are no CBOR.
    let values: [StoreKey: [UInt8]] = ["long": [0x18, 0x01], "other": [0xFF, 0x00]]
    for name in ["cbor", "cbor+v1", "mine", "json+crc32c"] {
      let program = try await Stores.registry.open(source, codec: BytesCodec(name: name))
      for (key, value) in values { try await program.setValue(value, forKey: key) }
      try await program.close()
      let run = try await Tool.larder("copy", source, destination)
      #expect(run.status == 0 && run.errors.hasPrefix("copied 2 entries"), "\(run)")
      #expect(try await Tool.larder("copy", source, destination).errors.contains("2 were already equal"))
      let copy = try await Stores.registry.open(destination, codec: BytesCodec(name: name))
      for (key, value) in values { #expect(try await copy.value(forKey: key) == value, "\(name)") }
      try await copy.close()
      for kind in [(sourceKind, "source"), (destinationKind, "destination")] {
        for file in try folder.names() where file.hasPrefix(kind.0.fileName(kind.1)) {
          try FileManager.default.removeItem(atPath: folder.file(file))
        }
      }
    }
  }

  /// A copy from a newer version raises the version of its destination, and one from an older version does not lower it.
  @Test(arguments: StoreKind.allCases, ["json", "cbor"])
  func `copies carry the version`(kind: StoreKind, base: String) async throws {
    func open(_ name: String, _ version: Int) async throws -> AnyDataStore<JSONText> {
      try await Stores.registry.open(
        kind.url(name, in: folder), codec: ValueCodecs().codec(named: "\(base)+v\(version)"))
    }
    func set(_ name: String, _ version: Int, _ key: StoreKey) async throws {
      let store = try await open(name, version)
      try await store.setValue(JSONText(#"{"$version":\#(version),"$value":\#(version)}"#), forKey: key)
      try await store.close()
    }
    let (app, backup) = (kind.url("app", in: folder), kind.url("backup", in: folder))
    try await set("app", 1, "a")
    #expect(try await Tool.larder("copy", app, backup).status == 0)
    try await set("app", 2, "b")
    #expect(try await Tool.larder("copy", app, backup).errors.hasPrefix("copied 1 entry"))
    #expect(try await Tool.larder("stat", backup).output.contains("\(base)+v2"))
    #expect(try await Tool.larder("get", backup, "b") == .done(#"{"$version":2,"$value":2}"# + "\n"))
    await #expect(throws: StoreError.self) { try await open("backup", 1) }
    try await set("older", 1, "c")
    #expect(try await Tool.larder("copy", kind.url("older", in: folder), backup).errors.hasPrefix("copied 1 entry"))
    #expect(try await Tool.larder("get", backup, "c") == .done(#"{"$version":1,"$value":1}"# + "\n"))
    #expect(try await Tool.larder("stat", backup).output.contains("\(base)+v2"))
    #expect(try await Tool.larder("set", backup, "d", #"{"$version":3,"$value":1}"#).failed(65, "up to 2"))
  }

  @Test func `deadlines are kept with stored bytes`() async throws {
    let (source, copy) = ("lmdb:\(folder.file("s"))", "sqlite:\(folder.file("c"))")
    #expect(try await Tool.larder("set", source, "stays", "[1.5]", "--ttl", "1h") == .done())
    #expect(try await Tool.larder("set", source, "ends", "2", "--ttl", "1ms") == .done())
    #expect(try await Tool.larder("copy", source, copy).errors.hasPrefix("copied 1 entry"))
    #expect(try await Tool.larder("list", copy) == .done("{\"key\":\"stays\",\"value\":[1.5]}\n"))
    #expect(try await Tool.larder("stat", copy).output.contains("cbor+expiring\n"))
    // A plain source fits a destination whose values expire, also where the bytes differ.
    let (plain, expiring) = ("lmdb:\(folder.file("p"))", "lmdb:\(folder.file("e"))")
    #expect(try await Tool.larder("set", plain, "k", "1") == .done())
    #expect(try await Tool.larder("copy", plain, source).errors.hasPrefix("copied 1 entry"))
    #expect(try await Tool.larder("get", source, "k") == .done("1\n"))
    for (url, name) in [(plain, "cbor+crc32c"), (expiring, "cbor+expiring+crc32c")] {
      let program = try await Stores.registry.open(
        "\(url)#checked", codec: ValueCodecs().codec(named: name))
      try await program.setValue(try JSONText("[\"a\"]"), forKey: url == plain ? "a" : "b")
      try await program.close()
    }
    #expect(try await Tool.larder("copy", "\(plain)#checked", "\(expiring)#checked").status == 0)
    #expect(try await Tool.larder("get", "\(expiring)#checked", "a") == .done("[\"a\"]\n"))
    #expect(try await Tool.larder("verify", "\(expiring)#checked").errors == "2 entries, no damage\n")
  }

  @Test(arguments: StoreKind.allCases) func `a copy that fails at once creates nothing`(kind: StoreKind) async throws {
    let source = StoreKind.lmdb.url("source", in: folder)
    let program = try await Stores.registry.open(source, codec: BytesCodec(name: "cbor"))
    try await program.setValue([0x01], forKey: "good")
    try await program.setValue([0xFF], forKey: "zbad")
    try await program.close()
    let run = try await Tool.larder("copy", source, kind.url("destination", in: folder), "--codec", "json")
    #expect(run.status == 65, "\(run)")
    // JSON allows a name to repeat, and CBOR does not.
    let text = StoreKind.json.url("text", in: folder)
    #expect(try await Tool.larder("set", text, "k", #"{"a":1,"a":2}"#) == .done())
    let encoding = try await Tool.larder("copy", text, kind.url("destination", in: folder), "--codec", "cbor")
    #expect(encoding.failed(65, "could not be encoded with the codec cbor"), "\(encoding)")
    #expect(try folder.names().filter { $0.hasPrefix("destination") } == [])
  }

  @Test func `another codec must be named`() async throws {
    let (json, lmdb) = ("json:\(folder.file("s.json"))", "lmdb:\(folder.file("s.lmdb"))")
    #expect(try await Tool.larder("set", lmdb, "k", "1") == .done())
    #expect(try await Tool.larder("set", json, "j", "2") == .done())
    #expect(try await Tool.larder("copy", lmdb, json).failed(65, "use larder copy with --codec json."))
    #expect(try await Tool.larder("copy", json, lmdb).failed(65, "use larder copy with --codec cbor."))
    #expect(try await Tool.larder("count", json) == .done("1\n"))
    #expect(
      try await Tool.larder("copy", json, lmdb, "--codec", "jsno").failed(64, "'json', 'cbor' or 'raw'"))
    #expect(try await Tool.larder("copy", lmdb, json, "--codec", "json").status == 0)
    #expect(try await Tool.larder("copy", json, lmdb, "--codec", "cbor").status == 0)
    #expect(try await Tool.larder("export", json) == Tool.larder("export", lmdb))
  }

  @Test func `bounds limit the copy`() async throws {
    let (source, copy) = ("json:\(folder.file("s.json"))", "json:\(folder.file("c.json"))")
    #expect(try await Tool.larder("import", source, input: lines(0..<10)).status == 0)
    #expect(try await Tool.larder("copy", source, copy, "--from", "1000003", "--to", "1000005").status == 0)
    #expect(try await Tool.larder("export", copy) == .done(lines(3..<5)))
    #expect(try await Tool.larder("copy", source, copy, "--prefix", "").failed(64, "--prefix is empty"))
  }

  @Test func `a bad source creates no destination`() async throws {
    let source = StoreKind.json.url("source", in: folder)
    let destination = StoreKind.json.url("destination", in: folder)
    #expect(try await copy(source, to: destination).failed(66, "source.json"))
    _ = try folder.write(#"{"larder":2,"entries":{"a":}}"#, to: "source.json")
    #expect(try await copy(source, to: destination).failed(65, "larder verify"))
    #expect(try await copy(source, to: destination, "--batch", "0").failed(64, "--batch must be at least 1"))
    #expect(try await Tool.larder("copy", source).failed(64, "larder copy --help"))
    #expect(try folder.names().filter { $0.hasPrefix("destination") } == [])
  }

  @Test(arguments: StoreKind.allCases) func `a bad destination stays unchanged`(kind: StoreKind) async throws {
    let source = kind.url("source", in: folder)
    let destination = kind.url("destination", in: folder)
    #expect(try await Tool.larder("set", source, "k", "1") == .done())
    let path = try folder.write("[1]", to: kind.fileName("destination"))
    #expect(try await copy(source, to: destination).failed(65, kind.fileName("destination")))
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "[1]")
    #expect(try await copy(source, to: kind.url("none/x", in: folder)).failed(66, "creates its parent folder"))
    #expect(try await Tool.larder("get", source, "k") == .done("1\n"))
  }

  // MARK: Killed copies

  private static let entryCount = 3_000
  private static let batchSize = 30

  @Test(arguments: StoreKind.allCases) func `another copy completes a killed one`(kind: StoreKind) async throws {
    let source = kind.url("source", in: folder)
    let seed = SeededGenerator.seedOfProcess
    print("LARDER_SEED=\(seed)")
    var generator = SeededGenerator(seed: seed)
    let padding = "\"\(String(repeating: "x", count: 100))\""
    let expected = lines(0..<CopyTests.entryCount, value: padding)
    #expect(try await Tool.larder("import", source, input: expected).status == 0)
    for round in 0..<5 {
      // A new destination each time, whose file grows from zero.
      let destination = kind.url("destination\(round)", in: folder)
      #expect(try await Tool.larder("import", destination, input: "{\"key\":\"z\",\"value\":0}").status == 0)
      try killCopy(
        of: source, to: destination, once: folder.file(kind.growingFile("destination\(round)")),
        has: Int.random(in: 0...expected.utf8.count, using: &generator),
        andTurns: Int.random(in: 0...400_000, using: &generator))
      let context: Comment = "seed \(seed), round \(round)"

      #expect(try await Tool.larder("verify", destination).output == "", context)
      let count = try await Tool.larder("count", destination, "--prefix", "1").output.dropLast()
      let copied = try #require(Int(count), context)
      print("round \(round): killed after \(copied) entries")
      #expect(copied.isMultiple(of: CopyTests.batchSize), context)
      let run = try await copy(source, to: destination)
      #expect(run.status == 0, context)
      let summary = try #require(run.errors.wholeMatch(of: /copied (\d+) .* s, (\d+) w.* already equal\n/), context)
      #expect(Int(summary.1) == CopyTests.entryCount - copied, context)
      #expect(Int(summary.2) == copied, context)
      #expect(
        try await Tool.larder("export", destination) == .done(expected + "{\"key\":\"z\",\"value\":0}\n"), context)
      #expect(try await Tool.larder("export", source) == .done(expected), context)
    }
  }

  /// Starts a copy and kills it.
  ///
  /// - Parameters:
  ///   - source: The store to copy from.
  ///   - destination: The store to copy to.
  ///   - file: A file of the destination that grows during the copy.
  ///   - size: The size of the file, in bytes, after which to kill the copy.
  ///   - turns: The number of turns of an idle loop to wait after that, so the kill can hit any part of a commit.
  private func killCopy(
    of source: String, to destination: String, once file: String, has size: Int, andTurns turns: Int
  ) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Tool.path)
    process.arguments = ["copy", source, destination, "--batch", "\(CopyTests.batchSize)"]
    process.environment = ["SWIFT_BACKTRACE": "enable=no"]
    process.standardError = FileHandle.nullDevice
    try process.run()
    while process.isRunning {
      let attributes =
        FileManager.default.fileExists(atPath: file)
        ? try? FileManager.default.attributesOfItem(atPath: file) : nil
      guard (attributes?[.size] as? NSNumber)?.intValue ?? -1 < size else { break }
    }
    var turn = 0
    while turn < turns { turn += 1 }
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }
}
