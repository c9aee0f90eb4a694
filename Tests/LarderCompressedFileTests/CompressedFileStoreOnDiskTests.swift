#if Compression
import Foundation
import Larder
import LarderCompressedFile
import LarderTesting
import Testing
import TestSupport

/// Tests with third-party programs and the real file system.
@Suite struct CompressedFileStoreOnDiskTests {
  /// The program of the guide that prints the content of a store with `jq`.
  static let currentState = """
    reduce inputs as $line ({};
      if $line | has("set") then .[$line.set] = ($line | if has("value") then .value else .base64 end)
      elif $line | has("remove") then del(.[$line.remove])
      elif $line | has("removeAll") then $line.removeAll as $range
        | with_entries(select(.key < $range.from or ($range.upTo != null and .key >= $range.upTo)))
      else . end)
    """

  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func shown(_ path: String) throws -> String {
    let run = try CommandRun(["sh", "-c", "zcat < \"$1\" | jq -nc \"$2\"", "sh", path, Self.currentState])
    #expect(run.status == 0 && run.errors == "")
    return run.output
  }

  @Test func `other programs read it at any time`() async throws {
    let path = folder.path("s.gz")
    let store = try await CompressedFileStore(path: path, codec: .jsonText)
    #expect(try shown(path) == "{}\n")
    try await store.apply([
      .set("a", JSONText("{\"name\":\"Ada \\\"é🐄\"}")), .set("b", JSONText("2")), .set("c", JSONText("3")),
      .set("d", JSONText("4")),
    ])
    try await store.apply([.remove("b"), .removeAll("c"..<"d"), .set("keyBytes:", JSONText("5"))])
    let expected = "{\"a\":{\"name\":\"Ada \\\"é🐄\"},\"d\":4,\"keyBytes:6b657942797465733a\":5}\n"
    #expect(try shown(path) == expected, "open")
    try await store.compact()
    #expect(try shown(path) == expected, "compacted")
    try await store.setValue(JSONText("6"), forKey: "e")
    try await store.close()
    #expect(try shown(path) == expected.dropLast(2) + ",\"e\":6}\n", "closed")
    let lines = try CommandRun(["zcat", path]).lines
    #expect(lines.first?.hasPrefix("{\"larder\":2,\"format\":\"compressed\",\"codec\":\"json\",\"salt\":\"") == true)
    #expect(lines.last { $0.hasPrefix("{\"set\"") } == "{\"set\":\"e\",\"value\":6}")
    #expect(try CommandRun(["gzip", "-t", path]).status == 0)
  }

  @Test func `python reads the same and finds the blocks of BGZF`() async throws {
    let path = folder.path("s.gz")
    let store = try await CompressedFileStore(path: path, codec: .jsonText, durability: .buffered)
    var batch = ChangeBatch<JSONText>()
    for number in 0..<3_000 { batch.setValue(try JSONText("[\(number),\"é\"]"), forKey: StoreKey("key \(number)")) }
    try await store.apply(batch)
    try await store.compact()
    try await store.setValue(JSONText("\"\(String(repeating: "x", count: 100_000))\""), forKey: "large")
    try await store.close()
    let script = """
      import gzip, json, struct, sys
      data = open(sys.argv[1], "rb").read()
      lines = gzip.open(sys.argv[1]).read().splitlines()
      sets = {l["set"]: l["value"] for l in map(json.loads, filter(bytes.strip, lines)) if "set" in l}
      offset = blocks = 0
      text = b""
      while offset < len(data):
        assert data[offset:offset + 4] == b"\\x1f\\x8b\\x08\\x04"
        # What htslib and Biopython ask of the header: this subfield, and no other.
        assert data[offset + 10:offset + 16] == b"\\x06\\x00BC\\x02\\x00"
        size = struct.unpack("<H", data[offset + 16:offset + 18])[0] + 1
        text += gzip.decompress(data[offset:offset + size])
        offset, blocks = offset + size, blocks + 1
      assert offset == len(data) and data.endswith(bytes.fromhex("1f8b08040000000000ff0600424302001b0003") + bytes(9))
      assert text.splitlines() == lines
      print(len(sets), sets["key 2999"], len(sets["large"]), blocks > 5)
      """
    let run = try CommandRun(["python3", "-c", script, path])
    #expect(run.output == "3001 [2999, 'é'] 100000 True\n", "\(run.errors)")
    let check = "bgzip -t \"$1\" && bgzip -r \"$1\" && bgzip -b 4096 -s 10 \"$1\" | wc -c && bgzip -dc \"$1\" | wc -l"
    let bgzip = try CommandRun(["sh", "-c", check, "sh", path])
    let counts = bgzip.lines.compactMap { Int($0.trimmingCharacters(in: .whitespaces)) }
    #expect(bgzip.status == 0 && counts.first == 10 && (counts.last ?? 0) > 3_001, "\(bgzip.output), \(bgzip.errors)")
  }

  @Test func `bytes are written as base 64`() async throws {
    let path = folder.path("s.gz")
    let store = try await CompressedFileStore(path: path, codec: .raw)
    try await store.setValue([0, 255, 128], forKey: StoreKey(bytes: [0xFF]))
    let lines = try CommandRun(["zcat", path]).lines
    #expect(lines.last == "{\"set\":\"keyBytes:ff\",\"base64\":\"AP+A\"}")
    try await store.close()
    let again = try await CompressedFileStore(path: path, codec: .raw)
    #expect(try again.value(forKey: StoreKey(bytes: [0xFF])) == [0, 255, 128])
    try await again.close()
    await expectStoreError(.versionMismatch) { _ = try await CompressedFileStore<Int>(path: path) }
  }

  @Test func `a compacted file is not much larger than with gzip`() async throws {
    // A package manager's records, if there are any, have the length and the redundancy of real data.
    guard let status = try? String(contentsOfFile: "/var/lib/dpkg/status", encoding: .utf8) else {
      print("not measured: this system has no /var/lib/dpkg/status")
      return
    }
    let path = folder.path("s.gz")
    let store = try await CompressedFileStore(path: path, codec: .jsonText, durability: .buffered)
    var batch = ChangeBatch<JSONText>()
    for record in status.components(separatedBy: "\n\n").prefix(300) where !record.isEmpty {
      let name = record.prefix { $0 != "\n" }
      batch.setValue(JSONText(string: record), forKey: StoreKey(String(name)))
    }
    try await store.apply(batch)
    try await store.compact()
    try await store.close()
    let run = try CommandRun(["sh", "-c", "zcat \"$1\" | gzip -6 | wc -c; wc -c < \"$1\"", "sh", path])
    let sizes = run.lines.compactMap { Double($0.trimmingCharacters(in: .whitespaces)) }
    // How much is added to each entry depends on the lengths of the records, which differ between machines.
    #expect(sizes.count == 2 && sizes[1] <= 1.5 * sizes[0], "\(sizes)")
  }

  // MARK: Files of other programs

  @Test func `files that are not stores are refused unchanged`() async throws {
    let text = "{\"set\":\"a\",\"value\":1}\n"
    let commands: [(name: String, command: String, code: StoreError.Code, message: String)] = [
      ("text", "printf '%s' '\(text)' > \"$1\"", .unrecognizedFormat, "not a gzip file"),
      ("gzip", "printf '%s' '\(text)' | gzip > \"$1\"", .unrecognizedFormat, "another program"),
      ("empty", ": > \"$1\"", .corrupted, "empty"),
      ("other blocks", "python3 -c '\(Self.blocks(of: "b\"else\""))' \"$1\"", .unrecognizedFormat, "BGZF"),
      ("BAM", "python3 -c '\(Self.blocks(of: "b\"BAM\\x01....\""))' \"$1\"", .unrecognizedFormat, "BAM"),
      (
        "version 1", "printf '%s' '\(Self.version1)' | base64 -d > \"$1\"", .versionMismatch,
        "has version 1 of the format"
      ),
      ("folder", "mkdir \"$1\"", .unrecognizedFormat, "not a regular file"),
    ]
    for (name, command, code, message) in commands {
      let path = folder.path(name)
      let made = try CommandRun(["sh", "-c", command, "sh", path])
      #expect(made.status == 0, "\(name): \(made.errors)")
      let before = FileManager.default.contents(atPath: path)
      let error = await expectStoreError(code) { _ = try await CompressedFileStore<Int>(path: path) }
      #expect(error?.message.contains(message) == true, "\(name): \(error?.message ?? "")")
      #expect(FileManager.default.contents(atPath: path) == before)
    }
  }

  /// The head of a file in version 1 of the format, in base64.
  private static let version1 =
    "H4sIBAAAAAAA/zAAQkMCAHoATEQmAAEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAeVUULwYEAGpzb26PYdd6ATIAzf97Im"
    + "xhcmRlciI6MSwiZm9ybWF0IjoiY29tcHJlc3NlZCIsImNvZGVjIjoianNvbiJ9CgFsuDUyAAAA"

  /// Returns a program that writes a BGZF file with one block and the end-of-file mark.
  private static func blocks(of text: String) -> String {
    """
    import struct, sys, zlib
    def block(text):
      deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
      data = deflate.compress(text) + deflate.flush()
      extra = b"BC" + struct.pack("<HH", 2, 25 + len(data))
      return (b"\\x1f\\x8b\\x08\\x04" + bytes(4) + b"\\x00\\xff" + struct.pack("<H", len(extra)) + extra + data
        + struct.pack("<II", zlib.crc32(text), len(text)))
    open(sys.argv[1], "wb").write(block(\(text)) + block(b""))
    """
  }

  @Test func `a file with two hard links is refused`() async throws {
    let path = folder.path("s.gz")
    try await CompressedFileStore<Int>(path: path).close()
    try FileManager.default.linkItem(atPath: path, toPath: folder.path("t.gz"))
    await expectStoreError(.unsupported) { _ = try await CompressedFileStore<Int>(path: path) }
  }

  @Test func `external changes to the file are noticed`() async throws {
    for (name, command) in [
      ("removed", "rm \"$1\""), ("longer", "echo x >> \"$1\""), ("shorter", "truncate -s 10 \"$1\""),
      ("replaced", "cp \"$1\" \"$1.new\" && mv \"$1.new\" \"$1\""),
    ] {
      let path = folder.path(name)
      let store = try await CompressedFileStore<Int>(path: path)
      try await store.setValue(1, forKey: "a")
      #expect(try CommandRun(["sh", "-c", command, "sh", path]).status == 0)
      await expectStoreError(.conflict) { try await store.setValue(2, forKey: "a") }
      await expectStoreError(.conflict) { try await store.close() }
    }
  }

  @Test func `nothing is written without the lock`() async throws {
    let path = folder.path("s.gz")
    let store = try await CompressedFileStore<Int>(path: path)
    try await store.setValue(1, forKey: "a")
    try FileManager.default.removeItem(atPath: path + ".lock")
    let other = try await CompressedFileStore<Int>(path: path)
    try await other.setValue(2, forKey: "b")
    await expectStoreError(.locked) { try await store.setValue(3, forKey: "c") }
    await expectStoreError(.locked) { try await store.compact() }
    #expect(try other.keys(in: .all, limit: .max, order: .ascending) == ["a", "b"])
    #expect(try await other.verify().findings.isEmpty)
    try await other.close()
  }

  @Test func `symbolic links are followed`() async throws {
    try FileManager.default.createSymbolicLink(atPath: folder.path("link"), withDestinationPath: folder.path("real.gz"))
    let store = try await CompressedFileStore<Int>(path: folder.path("link"))
    try await store.setValue(1, forKey: "a")
    await expectStoreError(.locked) { _ = try await CompressedFileStore<Int>(path: folder.path("real.gz")) }
    try await store.compact()
    try await store.close()
    #expect(try folder.names == ["link", "real.gz", "real.gz.lock"])
    #expect(try await CompressedFileStore<Int>(path: folder.path("real.gz")).value(forKey: "a") == 1)
  }
}
#endif
