#if Compression
import Foundation
import Larder
import LarderFiles
import LarderTesting
import TestSupport
import Testing

@testable import LarderCompression

@Suite struct CompressionDictionariesTests {
  private func dictionary(_ text: String) throws -> CompressionDictionary {
    try CompressionDictionary(Array(text.utf8))
  }

  private func added(
    _ texts: String..., to path: String = "/dictionaries", in disk: SimulatedFileSystem
  ) async throws {
    for text in texts {
      _ = try await CompressionDictionaries.add(dictionary(text), toFile: path, in: disk)
    }
  }

  // MARK: The set

  @Test func `the one added last is the current one`() throws {
    var dictionaries = CompressionDictionaries()
    #expect(dictionaries.current == nil)
    let (a, b) = (try dictionary("a"), try dictionary("b"))
    try dictionaries.add(a)
    try dictionaries.add(b)
    #expect(dictionaries.all == [a, b])
    #expect(dictionaries.current == b)
    try dictionaries.add(a)
    #expect(dictionaries.all == [b, a])
    #expect(dictionaries[a.id] == a)
    #expect(dictionaries[b.id] == b)
    #expect(dictionaries[CompressionDictionary.ID(rawValue: a.id.rawValue &+ 1)] == nil)
    #expect(try CompressionDictionaries([a, b, a]) == dictionaries)
    #expect(dictionaries.description == "CompressionDictionaries(\(b.id), \(a.id))")
  }

  @Test func `duplicate identifiers are refused`() throws {
    let original = try dictionary("original")
    let namesake = try #require(
      try (0..<2_000_000 as Range<Int>).lazy.map { try dictionary("namesake \($0)") }.first { $0.id == original.id })
    var dictionaries = try CompressionDictionaries([original])
    expectStoreError(.conflict) { try dictionaries.add(namesake) }
    #expect(dictionaries.all == [original])
  }

  // MARK: The file

  @Test func `added dictionaries are read again`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("users.dictionaries")
    #expect(try await CompressionDictionaries.read(fromFile: path) == CompressionDictionaries())
    #expect(try folder.names == [])
    let (a, b) = (try dictionary("a"), try dictionary("b"))
    #expect(try await CompressionDictionaries.add(a, toFile: path).all == [a])
    #expect(try await CompressionDictionaries.add(b, toFile: path).all == [a, b])
    #expect(try await CompressionDictionaries.read(fromFile: path).all == [a, b])
    #expect(try await CompressionDictionaries.add(a, toFile: path).all == [b, a])
    #expect(try await CompressionDictionaries.read(fromFile: path).current == a)
    #expect(try folder.names == ["users.dictionaries", "users.dictionaries.lock"])
  }

  @Test func `the format is the published one`() async throws {
    let disk = SimulatedFileSystem(seed: 1)
    try await added("123456789", in: disk)
    let text = """
      {"larder-dictionaries":1,"dictionaries":[
      {"crc32":"cbf43926","base64":"MTIzNDU2Nzg5"}
      ]}

      """
    #expect(disk.content(at: "/dictionaries").map { String(decoding: $0, as: UTF8.self) } == text)
    #expect(DictionaryFile.bytes(of: CompressionDictionaries()).last == UInt8(ascii: "\n"))
    #expect(
      try DictionaryFile.dictionaries(in: DictionaryFile.bytes(of: CompressionDictionaries()), path: "")
        == CompressionDictionaries())
  }

  @Test func `the file of a stores dictionaries`() {
    #expect(CompressionDictionaries.path(besideStoreAt: "users.json") == "users.json.dictionaries")
    #expect(CompressionDictionaries.path(besideStoreAt: "./users") == "./users.dictionaries")
    #expect(CompressionDictionaries.path(besideStoreAt: "/data/users/") == "/data/users.dictionaries")
    #expect(CompressionDictionaries.path(besideStoreAt: "data/users") == "data/users.dictionaries")
  }

  @Test func `files of other formats are refused by name`() throws {
    func code(of text: String) -> StoreError.Code? {
      #expect(throws: StoreError.self) { try DictionaryFile.dictionaries(in: Array(text.utf8), path: "/d") }?.code
    }
    for text in ["", "{", "{}", "larder", "{\"larder\":2,\"entries\":{}}", "\u{1F}\u{8B}"] {
      #expect(code(of: text) == .unrecognizedFormat, "\(text)")
    }
    #expect(code(of: "{\"larder-dictionaries\":2,\"anything\":[]}") == .versionMismatch)
    let good = "{\"crc32\":\"cbf43926\",\"base64\":\"MTIzNDU2Nzg5\"}"
    let damaged = [
      "", ",\"dictionaries\":", ",\"dictionaries\":{}", ",\"dictionaries\":[]", ",\"others\":[]}",
      ",\"dictionaries\":[],\"dictionaries\":[]}", ",\"dictionaries\":[\(good)]} x", ",\"dictionaries\":[\(good),]}",
      ",\"dictionaries\":[{}]}", ",\"dictionaries\":[{\"crc32\":\"00000000\",\"base64\":\"\"}]}",
      ",\"dictionaries\":[{\"crc32\":\"cbf43926\",\"base64\":\"MTIzNDU2Nzg?\"}]}",
      ",\"dictionaries\":[{\"crc32\":\"cbf43927\",\"base64\":\"MTIzNDU2Nzg5\"}]}",
      ",\"dictionaries\":[{\"crc32\":\"cbf43926\",\"crc32\":\"cbf43926\",\"base64\":\"MTIzNDU2Nzg5\"}]}",
      ",\"dictionaries\":[{\"crc32\":\"cbf43926\",\"base64\":\"MTIzNDU2Nzg5\",\"more\":\"\"}]}",
    ]
    for rest in damaged { #expect(code(of: "{\"larder-dictionaries\":1\(rest)") == .corrupted, "\(rest)") }
    let spacious = "{\"larder-dictionaries\": 1 ,\n\"dictionaries\" : [ \(good) ] }"
    #expect(try DictionaryFile.dictionaries(in: Array(spacious.utf8), path: "").all == [dictionary("123456789")])
  }

  @Test func `every truncation and every changed bit is found`() throws {
    let dictionaries = try CompressionDictionaries([dictionary("a first one"), dictionary("another")])
    let bytes = DictionaryFile.bytes(of: dictionaries)
    // Without its final line end, the file is still whole.
    for length in 0..<bytes.count - 1 {
      #expect(throws: StoreError.self) {
        try DictionaryFile.dictionaries(in: Array(bytes.prefix(length)), path: "")
      }
    }
    for bit in 0..<8 * bytes.count {
      var damaged = bytes
      damaged[bit / 8] ^= 1 << (bit % 8)
      do {
        let found = try DictionaryFile.dictionaries(in: damaged, path: "")
        #expect(found == dictionaries, "bit \(bit)")
      } catch {
        #expect([.unrecognizedFormat, .versionMismatch, .corrupted].contains(error.code), "bit \(bit)")
      }
    }
  }

  @Test func `only one writer adds at a time`() async throws {
    let disk = SimulatedFileSystem(seed: 1)
    let lock = try #require(try FileLock.acquire("/dictionaries.lock", in: disk))
    let error = await expectStoreError(.locked) { try await added("a", in: disk) }
    #expect(error?.isRetryable == true)
    // Readers need no lock, because the file is replaced as a whole.
    #expect(try await CompressionDictionaries.read(fromFile: "/dictionaries", in: disk).all == [])
    try lock.release()
    try await added("a", in: disk)
  }

  @Test func `a damaged file stays unchanged`() async throws {
    let disk = SimulatedFileSystem(seed: 1)
    try disk.place(Array("{\"larder-dictionaries\":1".utf8), at: "/dictionaries")
    await expectStoreError(.corrupted) { try await added("a", in: disk) }
    #expect(disk.content(at: "/dictionaries") == Array("{\"larder-dictionaries\":1".utf8))
  }

  /// Power loss or a failure at any operation.
  ///
  /// The file has all added dictionaries, and is always in the state before or after an interrupted addition.
  @Test func `no added dictionary is ever lost`() async throws {
    let texts = ["first", "second", "third"]
    let all = try texts.map { try dictionary($0) }
    let undisturbed = SimulatedFileSystem(seed: 1)
    for text in texts { try await added(text, in: undisturbed) }
    for operation in 1...undisturbed.operationCount {
      for fault in [.powerLoss, .error(EIO), .error(ENOSPC), .shortTransfer] as [SimulatedFault] {
        let disk = SimulatedFileSystem(seed: UInt64(operation))
        disk.schedule(fault, atOperation: operation)
        var addedCount = 0
        var mayHaveMore = false
        for text in texts {
          do {
            try await added(text, in: disk)
            addedCount += 1
          } catch let error as StoreError {
            mayHaveMore = error.outcome == .unknown || fault == .powerLoss
            break
          }
        }
        disk.restart()
        disk.losePower()
        let found = try await CompressionDictionaries.read(fromFile: "/dictionaries", in: disk).all
        #expect(
          found == Array(all.prefix(addedCount)) || mayHaveMore && found == Array(all.prefix(addedCount + 1)),
          "\(fault) at operation \(operation)")
      }
    }
  }

  @Test func `errors of the file system pass through`() async throws {
    let folder = try TemporaryFolder()
    await expectStoreError(.unrecognizedFormat) { try await CompressionDictionaries.read(fromFile: folder.path) }
    let dictionary = try dictionary("a")
    await expectStoreError(.ioFailed) {
      try await CompressionDictionaries.add(dictionary, toFile: folder.path("missing/dictionaries"))
    }
  }
}
#endif
