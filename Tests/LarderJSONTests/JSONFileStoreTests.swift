import Foundation
import Larder
import LarderFiles
import LarderTesting
import TestSupport
import Testing

@testable import LarderJSON

@Suite struct JSONFileStoreTests {
  let disk = SimulatedFileSystem(seed: 1)

  private func store(
    durability: Durability.File = .synced, createsIfMissing: Bool = true
  ) async throws -> JSONFileStore<JSONText> {
    try await JSONFileStore(
      path: "/s.json", codec: .jsonText, durability: durability, createsIfMissing: createsIfMissing, fileSystem: disk)
  }

  private func text(_ path: String = "/s.json") -> String? {
    disk.content(at: path).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Returns the document without the attributes that Larder records about its own write.
  private func document(_ path: String = "/s.json") -> String? {
    text(path)?.replacing(/,"written":\{.*\}\}\n$/, with: "}\n")
  }

  private func place(_ text: String, at path: String = "/s.json") throws {
    try disk.place(Array(text.utf8), at: path)
  }

  private func error(_ body: () async throws -> Void) async throws -> StoreError {
    do {
      try await body()
    } catch let error as StoreError {
      return error
    }
    throw Expected()
  }

  struct Expected: Error {}

  // MARK: At rest

  @Test func `at rest one document holds everything`() async throws {
    let store = try await store()
    #expect(document() == "{\"larder\":2,\"generation\":1,\"entries\":{}}\n")
    let empty = text()
    try await store.apply([.set("b", try JSONText("[9007199254740993, -0.0, 1e308]")), .set("a", try JSONText("null"))])
    #expect(text() == empty, "a write does not touch the document")
    #expect(
      text("/s.json.journal")?.contains(
        "{\"set\":\"b\",\"value\":[9007199254740993,-0.0,1e308]},{\"set\":\"a\",\"value\":null}]}\n") == true)
    try await store.close()
    #expect(
      document()
        == "{\"larder\":2,\"generation\":2,\"entries\":{\n\"a\":null,\n\"b\":[9007199254740993,-0.0,1e308]\n}}\n")
    #expect(try disk.contentsOfDirectory(at: "/") == ["s.json", "s.json.lock"])
    let again = try await self.store()
    #expect(try again.value(forKey: "b") == JSONText("[9007199254740993,-0.0,1e308]"))
  }

  @Test func `closing without a write keeps the layout of the document`() async throws {
    let laidOut = "{ \"larder\": 2,\n  \"entries\": { \"a\": { \"x\":\n 1 } } }"
    try place(laidOut)
    let store = try await store(createsIfMissing: false)
    #expect(try store.value(forKey: "a") == JSONText("{\"x\":1}"))
    try await store.close()
    #expect(text() == laidOut)
  }

  @Test func `a value of several lines goes through the journal`() async throws {
    try place("{\"larder\":2,\"entries\":{\"a\":{\n\"x\": \"1 \\\" 2\"\n}}}")
    let file = try await store()
    _ = try await file.update(["a", "b"]) { $0[1] = $0[0] }
    disk.killProcess()
    let again = try await store()
    #expect(try again.value(forKey: "b") == JSONText("{\"x\":\"1 \\\" 2\"}"))
  }

  @Test func `the document is private and keeps its permissions`() async throws {
    let store = try await store()
    #expect(try disk.attributes(at: "/s.json")?.permissions == 0o600)
    #expect(try disk.attributes(at: "/s.json.lock")?.permissions == 0o600)
    try disk.open("/s.json", .readWrite).setPermissions(0o644)
    try await store.apply([.set("a", try JSONText("1"))])
    #expect(try disk.attributes(at: "/s.json.journal")?.permissions == 0o644)
    try await store.close()
    #expect(try disk.attributes(at: "/s.json")?.permissions == 0o644)
  }

  // MARK: Opening

  @Test(arguments: [
    ("", StoreError.Code.corrupted), ("{\"larder\":2,", .corrupted), ("not JSON", .corrupted),
    ("{\"larder\":2,\"entries\":{\"a\":1,\"a\":1}}", .corrupted), ("[1]", .unrecognizedFormat),
    ("{\"larder\":3,\"entries\":{}}", .versionMismatch),
    ("{\"larder\":2,\"codec\":\"cbor\",\"entries\":{}}", .versionMismatch),
  ]) func `invalid documents are refused and left unchanged`(_ document: String, _ code: StoreError.Code) async throws {
    try place(document)
    let error = try await error { _ = try await store() }
    #expect(error.code == code && error.operation == .open && error.store == "s.json")
    #expect(text() == document)
    #expect(error.message.contains(document.contains("cbor") ? "the codec cbor" : "/s.json"))
  }

  @Test(arguments: [511, 512, 513]) func `written values can be read`(_ depth: Int) async throws {
    // The document and the journal add levels around a value, which must not count.
    let text = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    guard depth <= 512 else {
      #expect(throws: JSONSyntaxError.self) { try JSONText(text) }
      return
    }
    var store = try await store()
    try await store.setValue(JSONText(text), forKey: "deep")
    disk.killProcess()
    store = try await self.store()
    #expect(try store.value(forKey: "deep") == JSONText(text))
    try await store.close()
    store = try await self.store()
    #expect(try store.value(forKey: "deep") == JSONText(text))
    try await store.close()
    let entries = try #require(document()).dropFirst("{\"larder\":2,\"generation\":2,\"entries\":".count)
    try place("{\"entries\":" + entries.dropLast(2) + ",\"larder\":2}")
    #expect(try await self.store().value(forKey: "deep") == JSONText(text))
  }

  @Test func `the error names the key if there is one`() async throws {
    for document in [
      "{\"larder\":2,\"entries\":{\"a\":1,\"bad\":tru}}", "{\"larder\":2,\"entries\":{\"bad\":1,\"bad\":2}}",
    ] {
      try place(document)
      #expect(try await error { _ = try await store() }.key == "bad")
    }
  }

  @Test func `the error names the line and the column`() async throws {
    try place("{\"larder\":2,\"entries\":{\n\"a\":1,\n\"a\":2}}")
    let error = try await error { _ = try await store() }
    #expect(error.message.contains("line 3, column 1: this key appears twice"))
  }

  @Test func `a missing store is not created without the option`() async throws {
    let error = try await error { _ = try await store(createsIfMissing: false) }
    #expect(error.code == .notFound)
    #expect(try disk.contentsOfDirectory(at: "/") == [])
  }

  @Test func `a directory is not a store`() async throws {
    try disk.createDirectory(at: "/s.json")
    #expect(try await error { _ = try await store() }.code == .unrecognizedFormat)
    #expect(try disk.contentsOfDirectory(at: "/") == ["s.json"], "no lock file is created")
  }

  @Test func `one object at a time`() async throws {
    let first = try await store()
    let error = try await error { _ = try await store() }
    #expect(error.code == .locked && error.isRetryable)
    try await first.close()
    let second = try await store()
    try await second.close()
  }

  @Test func `releasing the store allows another opening`() async throws {
    do {
      let store = try await store()
      try await store.setValue(JSONText("1"), forKey: "a")
    }
    let again = try await store()
    #expect(try again.value(forKey: "a") == JSONText("1"))
    try await again.close()
    #expect(text("/s.json.journal") == nil, "it was folded")
  }

  @Test func `refused access is not permitted`() async throws {
    try place("{\"larder\":2,\"entries\":{}}")
    var codes: Set<StoreError.Code> = []
    for operation in 1...6 {
      disk.clearFaults()
      disk.schedule(.error(EACCES), atOperation: disk.operationCount + operation)
      do { try await store().close() } catch let error as StoreError { codes.insert(error.code) }
      disk.killProcess()
    }
    #expect(codes == [.notPermitted])
    #expect(text() == "{\"larder\":2,\"entries\":{}}")
  }

  @Test func `only stale temporary files are removed`() async throws {
    try place("{\"larder\":2,\"entries\":{}}")
    let others = ["s.json.larder-tmp-x", "t.json.larder-tmp-0123456789abcdef", "s.json.bak"]
    for name in others + ["s.json.larder-tmp-0123456789abcdef", "s.json.journal.larder-tmp-0123456789abcdef"] {
      try place("{", at: "/\(name)")
    }
    try await store().close()
    #expect(try disk.contentsOfDirectory(at: "/") == (others + ["s.json", "s.json.lock"]).sorted())
  }

  // MARK: The journal of a crash

  @Test func `the journal overrides the keys of an edited document`() async throws {
    let store = try await store()
    try await store.apply([.set("a", try JSONText("\"journal\"")), .set("b", try JSONText("\"journal\""))])
    try await store.removeValue(forKey: "b")
    disk.killProcess()
    try place("{\"larder\":2,\"entries\":{\"a\":\"hand\",\"b\":\"hand\",\"c\":\"hand\"}}")
    let again = try await self.store()
    #expect(try again.value(forKey: "a") == JSONText("\"journal\""))
    #expect(try again.value(forKey: "b") == nil)
    #expect(try again.value(forKey: "c") == JSONText("\"hand\""))
  }

  @Test func `a journal without its document is reported not replayed`() async throws {
    let store = try await store()
    try await store.setValue(JSONText("1"), forKey: "a")
    disk.killProcess()
    try disk.removeFile(at: "/s.json")
    let journal = text("/s.json.journal")
    #expect(try await error { _ = try await self.store() }.code == .corrupted)
    #expect(text() == nil && text("/s.json.journal") == journal)
  }

  @Test(arguments: ["", "something else\n", "{\"crc32c\":\"00000000\",\"journal\":2,\"codec\":\"json\"}\n"])
  func `a foreign journal is reported and left unchanged`(_ journal: String) async throws {
    let document = "{\"larder\":2,\"entries\":{\"a\":1}}"
    try place(document)
    try place(journal, at: "/s.json.journal")
    #expect(try await error { _ = try await store() }.code == .corrupted)
    #expect(text() == document && text("/s.json.journal") == journal)
  }

  @Test func `a journal of another codec is refused`() async throws {
    try place("{\"larder\":2,\"entries\":{}}")
    try disk.place(JSONJournalLine.bytes(of: .head(.init(codecName: "cbor"))), at: "/s.json.journal")
    #expect(try await error { _ = try await store() }.code == .versionMismatch)
  }

  @Test func `damage inside the journal is reported by line`() async throws {
    let store = try await store()
    for number in 0..<4 { try await store.setValue(JSONText("\(number)"), forKey: "a") }
    disk.killProcess()
    var journal = try #require(text("/s.json.journal"))
    journal = journal.replacingOccurrences(of: "\"value\":1", with: "\"value\":7")
    try place(journal, at: "/s.json.journal")
    let error = try await error { _ = try await self.store() }
    #expect(error.code == .corrupted && error.message.contains("line 3"))
    #expect(text("/s.json.journal") == journal)
  }

  @Test func `recovery synchronizes the journal before it folds`() async throws {
    // Otherwise power loss could leave the new document next to a prefix of the journal, which would revert the key.
    let history: [HistoryStep] = [.apply([.set("a", 1)]), .apply([.set("a", 2)]), .apply([.set("b", 3)]), .die]
    let trial = JSONFileStoreDiskTests.trials(.buffered).trial
    let operationCount = try await trial.repeatTrial(history, seed: 0, fault: nil)
    for operation in 1...operationCount {
      for seed in 0..<30 as Range<UInt64> {
        try await trial.repeatTrial(history, seed: seed, fault: (.powerLoss, operation))
      }
    }
  }

  // MARK: Concurrent edits

  @Test func `an edit of an open store is not overwritten`() async throws {
    let store = try await store()
    try await store.setValue(JSONText("1"), forKey: "a")
    let edited = "{\"larder\":2,\"entries\":{\"a\":0,\"hand\":2}}"
    try place(edited)
    #expect(try await error { try await store.compact() }.code == .conflict)
    try await store.setValue(JSONText("3"), forKey: "b")
    #expect(try await error { try await store.close() }.code == .conflict)
    #expect(text() == edited)
    let again = try await self.store()
    #expect(try await again.values(forKeys: ["a", "b", "hand"]) == [JSONText("1"), JSONText("3"), JSONText("2")])
    try await again.close()
    #expect(
      document() == "{\"larder\":2,\"generation\":2,\"entries\":{\n\"a\":1,\n\"b\":3,\n\"hand\":2\n}}\n")
  }

  @Test func `the store stops writing if its lock is removed`() async throws {
    let first = try await store()
    try await first.setValue(JSONText("1"), forKey: "a")
    try disk.removeFile(at: "/s.json.lock")
    let second = try await store()
    try await second.setValue(JSONText("2"), forKey: "b")
    #expect(try await error { try await first.setValue(JSONText("3"), forKey: "c") }.code == .locked)
    #expect(try await error { try await first.close() }.code == .locked)
    try await second.close()
    let again = try await store()
    #expect(try again.keys(in: .all, limit: .max, order: .ascending) == ["a", "b"])
  }

  // MARK: Failures

  @Test func `after a failed synchronization the store continues with a new journal`() async throws {
    let store = try await store()
    try await store.setValue(JSONText("1"), forKey: "a")
    disk.schedule(.error(EIO), atOperation: disk.operationCount + 5)
    let error = try await error { try await store.setValue(JSONText("2"), forKey: "a") }
    #expect(error.code == .ioFailed && error.outcome == .unknown)
    #expect(try store.value(forKey: "a") == JSONText("1"))
    try await store.setValue(JSONText("3"), forKey: "b")
    disk.losePower()
    let again = try await self.store()
    #expect(try again.value(forKey: "a") == JSONText("1"))
    #expect(try again.value(forKey: "b") == JSONText("3"))
  }

  @Test func `a full disk fails only the write`() async throws {
    let store = try await store()
    try await store.setValue(JSONText("1"), forKey: "a")
    disk.capacity = 400
    let large = JSONText(string: String(repeating: "x", count: 1_000))
    let error = try await error { try await store.setValue(large, forKey: "b") }
    #expect(error.code == .full && error.outcome == .nothingChanged && error.isRetryable)
    #expect(error.key == nil && !error.description.contains("xxx"))
    #expect(try store.count(in: .all) == 1)
    disk.capacity = nil
    try await store.setValue(large, forKey: "b")
    try await store.close()
    let again = try await self.store()
    #expect(try again.value(forKey: "a") == JSONText("1"))
    #expect(try again.value(forKey: "b") == large)
  }

  @Test func `closing on a full disk keeps everything in the journal`() async throws {
    let store = try await store()
    let large = JSONText(string: String(repeating: "x", count: 1_000))
    try await store.setValue(large, forKey: "a")
    disk.capacity = 1_400
    #expect(try await error { try await store.close() }.code == .full)
    #expect(try await error { _ = try store.value(forKey: "a") }.code == .closed)
    try await store.close()
    disk.capacity = nil
    #expect(try await self.store().value(forKey: "a") == large)
  }

  @Test func `the write that fills the journal folds it`() async throws {
    let store = try await store(durability: .buffered)
    let value = JSONText(string: String(repeating: "x", count: 100_000))
    for number in 0..<11 { try await store.setValue(value, forKey: "\(number)") }
    let statistics = try await store.storeStatistics()
    #expect(statistics.entryCount == 11)
    #expect(statistics.details.first { $0.name == "documentBytes" }.map { $0.value > 1_000_000 } == true)
    #expect(statistics.details.first { $0.name == "journalBytes" }.map { $0.value < 100 } == true)
    #expect(statistics.bytesOnDisk == Int64((text()?.utf8.count ?? 0) + (text("/s.json.journal")?.utf8.count ?? 0)))
  }

  @Test func `a failed fold fails no write`() async throws {
    let store = try await store(durability: .buffered)
    let value = JSONText(string: String(repeating: "x", count: 100_000))
    disk.capacity = 1_700_000
    for number in 0..<13 { try await store.setValue(value, forKey: "\(number)") }
    #expect(document() == "{\"larder\":2,\"generation\":1,\"entries\":{}}\n")
    #expect(try await error { try await store.synchronize() }.code == .full)
    disk.losePower()
    disk.capacity = nil
    #expect(try await self.store().count(in: .all) == 13, "the write was synchronized before the fold failed")
  }

  @Test func `an update that changes nothing writes nothing`() async throws {
    let store = try await store()
    try await store.setValue(JSONText("1"), forKey: "a")
    let operationCount = disk.operationCount
    let value = try await store.update("a") { $0 }
    #expect(value == (try JSONText("1")))
    #expect(disk.operationCount == operationCount)
  }

  @Test func `invalid JSON fails to encode`() async throws {
    struct Lying: Codec {
      var name: String { "json" }
      var format: CodecFormat { .json }
      func encode(_ value: String, into bytes: inout [UInt8], context: ValueContext) { bytes += value.utf8 }
      func decode(_ bytes: RawSpan, context: ValueContext) -> String {
        bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
      }
    }
    let store = try await JSONFileStore(path: "/l.json", codec: Lying(), fileSystem: disk)
    for text in ["", "}", "1,\"x\":2", "nope"] {
      let error = try await error { try await store.apply([.set("b", "1"), .set("a", text)]) }
      #expect(error.code == .encodingFailed && error.key == "a")
    }
    #expect(try store.count(in: .all) == 0)
  }

  // MARK: Bytes

  @Test func `bytes are written as base 64 with the name of their codec`() async throws {
    let store = try await JSONFileStore(path: "/b.json", codec: .raw, fileSystem: disk)
    try await store.apply([.set("a", [0, 0x80, 0xC0, 0xFF]), .set("b", [])])
    #expect(try store.value(forKey: "a") == [0, 0x80, 0xC0, 0xFF])
    try await store.close()
    #expect(
      document("/b.json")
        == "{\"larder\":2,\"generation\":2,\"codec\":\"raw\",\"entries\":{\n\"a\":\"AIDA/w==\",\n\"b\":\"\"\n}}\n")
    let again = try await JSONFileStore(path: "/b.json", codec: .raw, fileSystem: disk)
    #expect(try await again.values(forKeys: ["b", "a"]) == [[], [0, 0x80, 0xC0, 0xFF]])
    try await again.close()
    let error = try await error { _ = try await JSONFileStore(path: "/b.json", codec: .jsonText, fileSystem: disk) }
    #expect(error.code == .versionMismatch && error.message.contains("raw"))
  }

  @Test func `errors show neither keys nor values`() async throws {
    struct Number: Codable { var secretField: Int }
    try place("{\"larder\":2,\"entries\":{\"secret key\":{\"secretField\":\"secret value\"}}}")
    let store = try await JSONFileStore<Number>(path: "/s.json", codec: .json(), fileSystem: disk)
    let damage = try await error { _ = try store.value(forKey: "secret key") }
    #expect(!damage.description.contains("secret") && damage.description.contains("DecodingError"))
    #expect(damage.detailedDescription.contains("secret key"))
    #expect((damage as any Error).localizedDescription == damage.description)
    let numbers = try await JSONFileStore<Double>(path: "/n.json", codec: .json(), fileSystem: disk)
    let failure = try await error { try await numbers.setValue(.infinity, forKey: "k") }
    #expect(!failure.description.contains("inf") && failure.description.contains("EncodingError"))
  }

  // MARK: Maintenance

  @Test func `values of several lines are not damage`() async throws {
    let encoder = JSONCodec<[String: Int]>.makeEncoder()
    encoder.outputFormatting.insert(.prettyPrinted)
    try place("{\"larder\":2,\"entries\":{\"hand\":{\n\"x\" : 1}}}")
    let store = try await JSONFileStore(
      path: "/s.json", codec: JSONCodec<[String: Int]>(encoder: encoder), fileSystem: disk)
    try await store.setValue(["a": 1, "b": 2], forKey: "k")
    #expect(try await store.verify().findings == [])
    disk.schedule(.error(EIO), atOperation: disk.operationCount + 5)
    do { try await store.setValue(["c": 3], forKey: "l") } catch let error as StoreError {
      #expect(error.outcome == .unknown)
    }
    try await store.setValue(["c": 3], forKey: "m")
    #expect(try await store.verify().findings == [])
  }

  @Test func `verifying many damaged entries reads the text once`() async throws {
    let entries = (0..<3_000).map { "\"\($0)\":\"x\"" }.joined(separator: ",\n")
    try place("{\"larder\":2,\"entries\":{\n\(entries)\n}}")
    let store = try await JSONFileStore(path: "/s.json", codec: .json(Int.self), fileSystem: disk)
    let report = try await store.verify()
    #expect(report.findings.count == 3_000)
    #expect(report.findings.first { $0.key == "17" }?.place == "/s.json, line 19, column 6")
  }

  @Test func `verification names keys and places of damage`() async throws {
    try place("{\"larder\":2,\"entries\":{\n\"a\":1,\n  \"b\":\"two\",\n\"c\":3}}")
    let store = try await JSONFileStore(path: "/s.json", codec: .json(Int.self), fileSystem: disk)
    try await store.setValue(4, forKey: "d")
    let report = try await store.verify()
    #expect(report.entryCount == 4)
    #expect(report.findings.map(\.key) == ["b"])
    #expect(report.findings.first?.place == "/s.json, line 3, column 7")
    #expect(try store.value(forKey: "a") == 1)
    #expect(try await error { _ = try store.value(forKey: "b") }.key == "b")
    #expect(try await error { _ = try await store.entries(in: .all, limit: 4, order: .ascending) }.code == .undecodable)
    #expect(try store.keys(in: .all, limit: 4, order: .ascending) == ["a", "b", "c", "d"])
    try await store.removeValue(forKey: "b")
    #expect(try await store.verify().findings == [])
  }

  @Test func `verification reads the disk`() async throws {
    let store = try await store()
    try await store.apply([.set("a", try JSONText("1")), .set("b", try JSONText("2"))])
    try await store.compact()
    #expect(try await store.verify().findings == [])
    try place("{\"larder\":2,\"entries\":{\"a\":1,\"b\":7,\"c\":3}}")
    #expect(try await store.verify().findings.map(\.key) == ["b", "c"])
    try place("{\"larder\":2,\"entries\":{\"a\":1,")
    let findings = try await store.verify().findings
    #expect(findings.count == 1 && findings.first?.message.contains("line 1, column 30") == true)
    disk.schedule(.error(EIO), atOperation: disk.operationCount + 1)
    #expect(try await error { _ = try await store.verify() }.code == .ioFailed)
  }

  @Test func `a backup opens as a store`() async throws {
    let store = try await store()
    try await store.setValue(JSONText("1"), forKey: "a")
    try await store.backup(to: "/copy.json")
    try await store.setValue(JSONText("2"), forKey: "a")
    #expect(
      document("/copy.json")
        == "{\"larder\":2,\"generation\":1,\"entries\":{\n\"a\":1\n}}\n")
    for taken in ["/copy.json", "/s.json", "/s.json.lock"] {
      #expect(try await error { try await store.backup(to: taken) }.code == .invalidArgument)
    }
    try await store.compact()
    let fresh = try await JSONFileStore<Int>(path: "/fresh.json", codec: .json(), fileSystem: disk)
    let journal = "/x/../fresh.json.journal"
    #expect(try await error { try await fresh.backup(to: journal) }.code == .invalidArgument)
    #expect(text("/copy.json")?.contains("\"a\":1") == true)
    try await store.close()
    #expect(try await error { try await store.backup(to: "/other.json") }.code == .closed)
    #expect(try await error { _ = try await store.storeStatistics() }.code == .closed)
    #expect(try await error { try await store.compact() }.code == .closed)
    #expect(try await error { _ = try await store.verify() }.code == .closed)
  }
}
