#if Compression
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderCompressedFile
@testable import LarderCompression

/// Malicious files with valid seals and checksums.
@Suite struct CompressedFileStoreHostileTests {
  private typealias Store = CompressedFileStore<JSONText>

  private let salt: UInt64 = 0x5A17
  private let inflaters = StreamPool { () throws(ZlibError) in try ZlibInflater() }

  private func open(_ content: [UInt8], on disk: SimulatedFileSystem) async throws -> Store {
    try disk.place(content, at: "/s.gz")
    return try await Store(path: "/s.gz", codec: .jsonText, fileSystem: disk)
  }

  /// Creates a file of blocks with these texts.
  private func file(_ texts: [(text: [UInt8], isContinuation: Bool)], salt: UInt64) throws -> [UInt8] {
    let composer = BlockComposer(level: 1)
    var bytes: [UInt8] = []
    for (text, isContinuation) in texts {
      bytes += try composer.block(
        text, isContinuation: isContinuation, isCompressed: false, salt: salt, at: Int64(bytes.count))
    }
    return bytes + BlockFrame.endOfFileMarker
  }

  private func file(_ texts: [String]) throws -> [UInt8] {
    try file(texts.map { (Array($0.utf8), false) }, salt: salt)
  }

  private var head: String { String(decoding: FileHead(codecName: "json", salt: salt).line, as: UTF8.self) }

  /// Calls every operation of a store, and checks only that nothing crashes and that no bytes disappear.
  private func use(_ content: [UInt8], _ context: Comment) async throws {
    let disk = SimulatedFileSystem(seed: 1)
    let store: Store
    do {
      store = try await open(content, on: disk)
    } catch let error as StoreError {
      #expect([.corrupted, .versionMismatch, .unrecognizedFormat].contains(error.code), context)
      #expect(disk.content(at: "/s.gz") == content, context)
      return
    }
    for key: StoreKey in ["a", "key 3", "large", "none"] { _ = try? store.value(forKey: key) }
    _ = try? await store.entries(in: .all, limit: 10, order: .descending)
    _ = try? store.count(in: .all)
    _ = try? await store.verify()
    _ = try? await store.storeStatistics()
    do {
      try await store.setValue(JSONText("1"), forKey: "new")
      #expect(try store.value(forKey: "new") == JSONText("1"), context)
      try await store.compact()
    } catch is StoreError {}
    _ = try? await store.close()
  }

  @Test func `numbers that no store writes are handled safely`() async throws {
    let greatest = "9007199254740992"
    let files: [[String]] = [
      [
        head, "{\"end\":null,\"x\":1}\n",
        "{\"batch\":\(greatest),\"durable\":\(UInt64(greatest).map { $0 - 1 } ?? 0)}\n",
      ],
      [head, "{\"end\":null,\"x\":1}\n", "{\"batch\":18446744073709551615,\"durable\":0}\n"],
      [head, "{\"end\":\(greatest),\"batch\":\(greatest),\"size\":\(greatest),\"x\":1}\n"],
      [
        head, "{\"end\":0,\"batch\":0,\"size\":0,\"x\":1}\n",
        "{\"batch\":1,\"durable\":0}\n{\"set\":\"a\",\"value\":1}\n",
      ],
      [head.replacing("}", with: ",\"after\":\(greatest),\"base\":true}"), "{\"base\":\(greatest)}\n"],
      [head.replacing("}", with: ",\"after\":18446744073709551615}")],
      [
        head, "{\"end\":null,\"x\":1}\n",
        "{\"batch\":1,\"durable\":0}\n{\"notes\":{\"from\":0,\"upTo\":999999999999999999,\"blocks\":[]}}\n",
        "{\"batch\":2,\"block\":4294967295,\"durable\":1}\n",
      ],
    ]
    for (number, texts) in files.enumerated() { try await use(file(texts), "file \(number)") }
    // A store whose batch numbers are exhausted reports this.
    let disk = SimulatedFileSystem(seed: 1)
    let full = try FileHead(codecName: "json", salt: salt, batch: #require(UInt64(greatest)))
    let store = try await open(full.block + full.block(of: .open), on: disk)
    await expectStoreError(.unsupported) { try await store.setValue(JSONText("1"), forKey: "a") }
  }

  @Test func `no block content causes a crash`() async throws {
    let disk = SimulatedFileSystem(seed: 1)
    let store = try await Store(path: "/s.gz", codec: .jsonText, fileSystem: disk)
    for number in 0..<40 { try await store.setValue(JSONText("\(number)"), forKey: StoreKey("key \(number)")) }
    try await store.compact()
    try await store.setValue(JSONText(string: String(repeating: "x", count: 70_000)), forKey: "large")
    for number in 0..<80 { try await store.setValue(JSONText("\(number)"), forKey: StoreKey("key \(number)")) }
    try await store.close()
    let content = try #require(disk.content(at: "/s.gz"))
    let salt = try FileHead(readingLine: content[23...].prefix { $0 != 10 }).salt
    var finder = BlockFinder(
      FileWindow(size: Int64(content.count)) { Array(content[Int($0.lowerBound)..<Int($0.upperBound)]) }, salt: salt,
      inflaters: inflaters)
    var texts: [(text: [UInt8], isContinuation: Bool)] = []
    var offset: Int64 = 0
    while let block = try finder.block(at: offset) {
      texts.append((block.text, block.isContinuation))
      offset = block.end
    }
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "hostile blocks")
    for round in 0..<(TestDepth.isShort ? 100 : 300) {
      var changed = texts
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        let place = Int.random(in: 0..<changed.count, using: &generator)
        switch Int.random(in: 0..<5, using: &generator) {
        case 0: changed.remove(at: place)
        case 1: changed.swapAt(place, .random(in: 0..<changed.count, using: &generator))
        case 2: changed[place].isContinuation.toggle()
        case 3: changed[place].text.removeLast(.random(in: 0...changed[place].text.count, using: &generator))
        default:
          // Inserts a digit, a quotation mark or a line end near the start, where most of the parsed text is.
          let index = Int.random(in: 0..<max(1, min(changed[place].text.count, 60)), using: &generator)
          guard index < changed[place].text.count else { continue }
          changed[place].text[index] = "0189{}[]\"\\\n,:x".utf8.randomElement(using: &generator) ?? 0
        }
      }
      try await use(
        file(changed, salt: salt), "round \(round), \(SeededGenerator.seedVariable)=\(SeededGenerator.seedOfProcess)")
    }
  }

  /// Keys and values from someone who does not know the file cannot make the store mistake a part of it for a block.
  @Test func `bytes in a key are not a block`() async throws {
    // A complete sealed block, as another file or program would have it.
    let other = BlockComposer.storedBlock(Array("{\"batch\":9,\"durable\":8}\n".utf8), salt: 1, at: 4000)
    let old = try #require(
      Hexadecimal.bytes(
        of: Array(
          "1f8b08040000000000ff2900424302003e004c441f000102010500000000000000ffffffffffffffff00000000750acbbb3e66b90a03000000000000000000"
            .utf8)))
    for forged in [other, old] {
      let disk = SimulatedFileSystem(seed: 1)
      let store = try await Store(path: "/s.gz", codec: .jsonText, fileSystem: disk)
      for number in 0..<100 { try await store.setValue(JSONText("1"), forKey: StoreKey("key \(number)")) }
      let size = try #require(disk.content(at: "/s.gz")?.count)
      try await store.setValue(JSONText(string: String(repeating: "x", count: 3_000)), forKey: StoreKey(bytes: forged))
      // The last write is torn.
      var content = try #require(disk.content(at: "/s.gz"))
      for place in size..<size + 20 { content[place] = 0 }
      let again = try await open(content, on: SimulatedFileSystem(seed: 1))
      #expect(try again.count(in: .all) == 100)
      #expect(try again.value(forKey: StoreKey(bytes: forged)) == nil)
      try await again.setValue(JSONText("2"), forKey: "other")
      #expect(try again.value(forKey: "key 7") == JSONText("1"))
      #expect(try await again.verify().findings.isEmpty)
    }
  }

  @Test func `closing needs no room`() async throws {
    let disk = SimulatedFileSystem(seed: 1)
    let store = try await Store(path: "/s.gz", codec: .jsonText, fileSystem: disk)
    disk.capacity = 20_000
    var count = 0
    await expectStoreError(.full) {
      while true {
        try await store.setValue(JSONText("\(count)"), forKey: StoreKey("key \(count)"))
        count += 1
      }
    }
    try await store.close()
    let again = try await Store(path: "/s.gz", codec: .jsonText, fileSystem: disk)
    #expect(try again.count(in: .all) == count)
    #expect(try await again.verify().findings.isEmpty)
    // The store was closed, so nothing has to be rewritten before the next write, for which there would be no room.
    disk.capacity = 20_600
    try await again.setValue(JSONText("1"), forKey: "more")
    try await again.close()
  }
}
#endif
