import Foundation
import Larder
import LarderFiles
import LarderTesting
import Testing

@testable import LarderJSON

@Suite struct JSONDocumentTests {
  private func document(_ text: String) throws -> JSONDocument { try JSONDocument(Array(text.utf8)) }

  private func texts(_ document: JSONDocument) -> [StoreKey: String] {
    var texts: [StoreKey: String] = [:]
    document.entries.forEach { texts[$0] = String(decoding: $1, as: UTF8.self) }
    return texts
  }

  private func written(_ document: JSONDocument) throws -> String {
    var bytes: [UInt8] = []
    var stamp = JSONStamp(of: JSONDocumentTests.attributes, expectedSize: 0)
    try document.write(stamping: &stamp) { bytes += $0 }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static let attributes = FileAttributes(
    kind: .file, size: 0, modificationTime: 7_500_000_000, permissions: 0o600,
    owner: FileAttributes.Owner(user: 0, group: 0), linkCount: 1,
    identity: FileAttributes.Identity(device: 1, inode: 5))

  /// Returns the end of a document, with the size and the checksum of the preceding bytes.
  private func written(_ bytes: Int, _ checksum: String) -> String {
    "\"written\":{\"bytes\":\(bytes),\"blockBytes\":4096,\"crc32c\":[\"\(checksum)\"],\"inode\":5,\"time\":8}"
  }

  @Test func `writes one entry per line in key order`() throws {
    var document = JSONDocument(codecName: "json")
    let checksum = Hexadecimal.text(of: CRC32C.checksum(of: "{\"larder\":2,\"entries\":{}".utf8))
    #expect(try written(document) == "{\"larder\":2,\"entries\":{},\(written(24, checksum))}\n")
    for (key, text) in [("b", "2"), ("a", "[1]"), ("\"\n", "null")] as [(StoreKey, String)] {
      _ = document.entries.setValue(Array(text.utf8)[...], forKey: key)
    }
    #expect(
      try written(document).hasPrefix(
        """
        {"larder":2,"entries":{
        "\\"\\n":null,
        "a":[1],
        "b":2
        },"written":{
        """))
    document.codecName = "raw"
    document.generation = 17
    #expect(try written(document).hasPrefix("{\"larder\":2,\"generation\":17,\"codec\":\"raw\",\"entries\":{\n"))
  }

  @Test func `reads any layout`() throws {
    let document = try document(
      """
      \u{FEFF}
      { "entries" : { "b" : { "x" : [ 1 ,
            2 ] } , "a":1e308,"\\u0061b":"\\u00e9" } ,
        "larder" : 2 }

      """)
    #expect(document.codecName == "json")
    #expect(texts(document) == ["a": "1e308", "ab": "\"\\u00e9\"", "b": "{ \"x\" : [ 1 ,\n      2 ] }"])
    #expect(document.entries.keys(in: .all, limit: .max, order: .ascending) == ["a", "ab", "b"])
  }

  @Test(arguments: [
    ("", 1, 1), (" \n ", 2, 2), ("{", 1, 2), ("nonsense", 1, 1), ("{\"larder\":2,\"entries\":{\"a\":}}", 1, 28),
    ("{\"larder\":2,\"entries\":{\n\"a\":1\n\"b\":2\n}}", 3, 1),
    ("{\"larder\":2,\"entries\":{\"a\":1,\n \"a\":2}}", 2, 2),
    ("{\"larder\":2,\"entries\":{\"a\":1,\"\\u0061\":2}}", 1, 30),
    ("{\"larder\":2,\"entries\":{\"\":1}}", 1, 24), ("{\"larder\":2,\"entries\":{},\"entries\":{}}", 1, 26),
    ("{\"larder\":2,\"larder\":2,\"entries\":{}}", 1, 13), ("{\"larder\":2}", 1, 1),
    ("{\"larder\":2,\"entries\":{},\"note\":1}", 1, 26), ("{\"larder\":2,\"entries\":{}} x", 1, 27),
    ("{\"larder\":2,\"entries\":[]}", 1, 23), ("{\"larder\":2,\"codec\":7,\"entries\":{}}", 1, 21),
    ("{\"larder\":2,\"entries\":{\"keyBytes:8\":1}}", 1, 24), ("{\"larder\":2,\"entries\":{\"keyBytes:\":1}}", 1, 24),
    ("{\"larder\":2,\"entries\":{\"keyBytes:61\":1,\"a\":1}}", 1, 40),
  ]) func `damage is named by line and column`(_ text: String, _ line: Int, _ column: Int) throws {
    do {
      _ = try document(text)
      Issue.record("\(text) was read")
    } catch JSONDocument.Problem.damaged(let error, _) {
      #expect(error.line == line && error.column == column, "\(error)")
    }
  }

  @Test(arguments: [
    "[]", "7", "\"text\"", "null", "{}", "{\"name\":\"x\"}", "{\"larder\":\"1\",\"entries\":{}}", "{\"larder\":0}",
  ])
  func `other JSON is foreign`(_ text: String) throws {
    do {
      _ = try document(text)
      Issue.record("\(text) was read")
    } catch JSONDocument.Problem.foreign {}
  }

  @Test(arguments: [
    "{\"larder\":1,\"entries\":{}}", "{\"larder\":3,\"entries\":{}}", "{\"larder\":3,\"pages\":[]}",
    "{\"pages\":[],\"larder\":17}",
  ])
  func `other versions are detected`(_ text: String) throws {
    do {
      _ = try document(text)
      Issue.record("\(text) was read")
    } catch JSONDocument.Problem.otherVersion {}
  }

  @Test func `truncated documents are never read`() throws {
    let text = Array("{\"larder\":2,\"codec\":\"json\",\"entries\":{\n\"a\":{\"x\":[1,\"é\"]},\n\"b\":null\n}}\n".utf8)
    _ = try JSONDocument(text)
    // Without its last byte, a line end, the document is still whole.
    for count in 0..<text.count - 1 {
      #expect(throws: JSONDocument.Problem.self, "\(count) bytes") { _ = try JSONDocument(Array(text.prefix(count))) }
    }
  }

  @Test func `keys of any bytes round trip and never collide`() throws {
    var generator = SeededGenerator(seed: 7)
    var keys: Set<StoreKey> = [
      StoreKey(bytes: [0]), "keyBytes:", "keyBytes:61", "keybytes:61", "keyBytes:keyBytes:", "/", "../x", "é",
      "e\u{301}",
      StoreKey(bytes: [0x80]), StoreKey(bytes: [0xC0]), StoreKey(bytes: Array("keyBytes:".utf8) + [0xFF]),
      StoreKey(bytes: 0..<32), "\u{7F}\"\\", "🐄",
    ]
    for _ in 0..<2_000 {
      let count = Int.random(in: 1...6, using: &generator)
      let pool: [UInt8] = [0, 0x1F, 0x22, 0x5C, 0x61, 0x80, 0xC3, 0xA9, 0xED, 0xF0]
      keys.insert(StoreKey(bytes: (0..<count).map { _ in pool.randomElement(using: &generator) ?? 0 }))
    }
    var document = JSONDocument(codecName: "json")
    for key in keys { _ = document.entries.setValue(Array("\(key.hashValue)".utf8)[...], forKey: key) }
    let read = try self.document(written(document))
    #expect(texts(read) == texts(document))
    #expect(read.entries.count == keys.count)
  }
}
