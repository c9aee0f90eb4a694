#if Compression
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderCompressedFile
@testable import LarderCompression

/// Files in version 1 of the format can be read.
///
/// The first write upgrades them.
@Suite struct Version1Tests {
  private typealias State = [StoreKey: JSONText]

  private let disk = SimulatedFileSystem(seed: 1)

  private func open(
    _ content: [UInt8], access: StoreAccess = .readWrite
  ) async throws -> CompressedFileStore<JSONText> {
    try disk.place(content, at: "/s.gz")
    return try await CompressedFileStore(path: "/s.gz", codec: .jsonText, access: access, fileSystem: disk)
  }

  private func state(_ store: CompressedFileStore<JSONText>) async throws -> State {
    let entries = try await store.entries(in: .all, limit: .max, order: .ascending)
    return Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) })
  }

  private func expected() throws -> State {
    ["a": try JSONText("\"new\""), "c": try JSONText("3"), "d": try JSONText("4"), "f": try JSONText("6")]
  }

  static let files = [
    Version1Files.leftOpen, Version1Files.closed, Version1Files.compactedLeftOpen, Version1Files.compactedClosed,
  ]

  @Test(arguments: files) func aVersion1FileIsReadAndStaysUnchangedUntilAWrite(_ content: [UInt8]) async throws {
    for access in [StoreAccess.readOnly, .immutable, .readWrite] {
      let store = try await open(content, access: access)
      #expect(try await state(store) == expected())
      #expect(try await store.verify().findings.isEmpty)
      if access != .readWrite { try await store.close() }
      #expect(disk.content(at: "/s.gz") == content)
      disk.killProcess()
      disk.restart()
    }
    let store = try await open(content)
    try await store.setValue(JSONText("7"), forKey: "g")
    var expected = try expected()
    expected["g"] = try JSONText("7")
    #expect(try await state(store) == expected)
    let written = try #require(disk.content(at: "/s.gz"))
    #expect(written.withUnsafeBytes { BlockFrame.size(at: $0) } != nil)
    try await store.backup(to: "/copy.gz")
    // Acknowledged writes are durable.
    disk.losePower()
    disk.restart()
    for path in ["/s.gz", "/copy.gz"] {
      let again = try await CompressedFileStore(path: path, codec: .jsonText, fileSystem: disk)
      #expect(try await state(again) == expected)
      #expect(try await again.verify().findings.isEmpty)
      try await again.close()
    }
  }

  @Test func largeValuesAndBytesAreRead() async throws {
    let store = try await open(Version1Files.large)
    let keys = try store.keys(in: .all, limit: .max, order: .ascending)
    #expect(keys == ["large 0", "large 1", "large 2", "large 3", "large 4", "large 5", "small"])
    #expect(try store.value(forKey: "large 5") == JSONText(string: String(repeating: "5", count: 100_000)))
    #expect(try store.value(forKey: "large 3") == JSONText(string: String(repeating: "x", count: 4_500)))
    try await store.compact()
    #expect(try store.value(forKey: "large 0") == JSONText(string: String(repeating: "0", count: 100_000)))
    try await store.close()
    try disk.place(Version1Files.bytes, at: "/bytes.gz")
    let bytes = try await CompressedFileStore(path: "/bytes.gz", codec: .raw, fileSystem: disk)
    #expect(try bytes.value(forKey: StoreKey(bytes: [0xFF])) == [0, 255, 128])
    #expect(try bytes.value(forKey: "text") == Array("text".utf8))
  }

  @Test func aBackupKeepsTheVersion() async throws {
    let store = try await open(Version1Files.compactedClosed)
    try await store.backup(to: "/whole.gz")
    try await store.backup(to: "/compact.gz", compacting: true)
    #expect(disk.content(at: "/s.gz") == Version1Files.compactedClosed)
    for path in ["/whole.gz", "/compact.gz"] {
      let copy = try await CompressedFileStore(path: path, codec: .jsonText, fileSystem: disk)
      #expect(try await state(copy) == expected())
      #expect(try await copy.verify().findings.isEmpty)
    }
  }

  @Test(arguments: files) func everyFlippedBitIsFoundAndNothingIsDestroyed(
    _ content: [UInt8]
  ) async throws {
    let expected = try expected()
    for bit in stride(from: 0, to: content.count * 8, by: 37) {
      var damaged = content
      damaged[bit / 8] ^= 1 << (bit % 8)
      let context: Comment = "byte \(bit / 8), bit \(bit % 8)"
      do {
        let store = try await open(damaged)
        let isTorn = try await store.storeStatistics().details.contains { $0.name == "tornBytes" && $0.value > 0 }
        let found = try await state(store)
        #expect(found == expected || isTorn, context)
      } catch let error as StoreError where error.operation == .open {
        #expect(error.code == .corrupted || bit / 8 < 64, context)
        #expect(disk.content(at: "/s.gz") == damaged, context)
      }
      disk.killProcess()
      disk.restart()
    }
  }

  @Test func numbersThatNoStoreReachesAreDamage() throws {
    // A head with the greatest batch number and valid checksums.
    var bytes = Version1Files.leftOpen
    let size = 60
    for place in 25..<33 { bytes[place] = 0xFF }
    let checksum = CRC32C.checksum(of: bytes[..<(size - 4)])
    withUnsafeBytes(of: checksum.littleEndian) { bytes.replaceSubrange((size - 4)..<size, with: $0) }
    #expect(try bytes.withUnsafeBytes { try Version1Header($0)?.batch } == nil)
    #expect(throws: FileProblem.self) { try StoreFileParts.scan(bytes) }
  }
}
#endif
