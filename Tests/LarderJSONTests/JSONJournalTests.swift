import Foundation
import Larder
import LarderTesting
import Testing

@testable import LarderJSON

@Suite struct JSONJournalTests {
  typealias Batch = [BatchChange<ArraySlice<UInt8>>]

  private static func text(_ string: String) -> ArraySlice<UInt8> { Array(string.utf8)[...] }

  private static let batches: [Batch] = [
    [.set("a", text("1"))],
    [.remove("b"), .set(StoreKey(bytes: [0x80, 0xC0]), text("{\"x\":[null,\"é\"]}"))],
    [.removeAll(.all), .removeAll("c"..<"d"), .removeAll(KeyRange(from: "x", upTo: nil))],
    [],
    [.set("keyBytes:", text("\"\""))],
  ]

  /// Returns a journal of these batches, each synchronized before the next, and the end of each line.
  private static func journal(_ batches: [Batch] = batches) -> (text: [UInt8], ends: [Int]) {
    var text = JSONJournalLine.bytes(of: .head(.init(codecName: "json")))
    var ends = [text.count]
    for batch in batches {
      text += JSONJournalLine.bytes(of: .batch(changes: batch, durable: Int64(text.count)))
      ends.append(text.count)
    }
    return (text, ends)
  }

  @Test func `the format is fixed`() throws {
    let line = JSONJournalLine.bytes(
      of: .batch(
        changes: [.set("a", Self.text("{ \"x\" :\n1}")), .remove("b"), .removeAll("c"..<"d"), .removeAll(.all)],
        durable: 49))
    let rest =
      "\"durable\":49,\"changes\":[{\"set\":\"a\",\"value\":{\"x\":1}},{\"remove\":\"b\"},{\"removeAll\":{\"from\":\"c\",\"upTo\":\"d\"}},{\"removeAll\":{\"from\":\"\"}}]}"
    let checksum = String(CRC32C.checksum(of: rest.utf8), radix: 16)
    let padding = String(repeating: "0", count: 8 - checksum.count)
    #expect(String(decoding: line, as: UTF8.self) == "{\"crc32c\":\"\(padding)\(checksum)\",\(rest)\n")
    let head = String(decoding: JSONJournalLine.bytes(of: .head(.init(codecName: "json"))), as: UTF8.self)
    #expect(head.hasSuffix(",\"journal\":2,\"codec\":\"json\",\"generation\":0}\n"))
    let full = JSONJournalLine.Head(codecName: "raw", generation: 17, document: "9ae0daaf")
    #expect(
      String(decoding: JSONJournalLine.bytes(of: .head(full)), as: UTF8.self)
        .hasSuffix("\"codec\":\"raw\",\"generation\":17,\"document\":\"9ae0daaf\"}\n"))
  }

  @Test func `reads written batches`() throws {
    let (text, _) = Self.journal()
    let journal = try JSONJournal(text)
    #expect(journal.batches == Self.batches)
    #expect(journal.head == JSONJournalLine.Head(codecName: "json"))
    #expect(journal.size == text.count)
  }

  @Test func `a torn journal holds the batches before the tear`() throws {
    let (text, ends) = Self.journal()
    for count in 0..<text.count {
      let torn = Array(text.prefix(count))
      guard count >= ends[0] else {
        #expect(throws: JSONJournal.Problem.self) { try JSONJournal(torn) }
        continue
      }
      let whole = ends.lastIndex { $0 <= count } ?? 0
      for tail in [[], [UInt8](repeating: 0, count: 100), Array("garbage\nmore\n".utf8)] {
        let journal = try JSONJournal(torn + tail)
        #expect(journal.batches == Array(Self.batches.prefix(whole)), "\(count) bytes")
        #expect(journal.size == ends[whole])
      }
    }
  }

  @Test func `flipped bits are never read`() throws {
    let (text, ends) = Self.journal()
    for index in text.indices {
      for bit in 0..<8 {
        var damaged = text
        damaged[index] ^= 1 << UInt8(bit)
        let line = ends.firstIndex { index < $0 } ?? 0
        do {
          let journal = try JSONJournal(damaged)
          // Only the last line could have been torn before it was durable.
          #expect(line == Self.batches.count, "bit \(bit) of byte \(index)")
          #expect(journal.batches == Array(Self.batches.dropLast()))
        } catch JSONJournal.Problem.damaged(let found, _) {
          #expect(found == line + 1, "bit \(bit) of byte \(index)")
        }
      }
    }
  }

  @Test func `a hole before non durable batches is a torn tail`() throws {
    var text = JSONJournalLine.bytes(of: .head(.init(codecName: "json")))
    let head = Int64(text.count)
    text += JSONJournalLine.bytes(of: .batch(changes: Self.batches[0], durable: head))
    let size = text.count
    let lost = JSONJournalLine.bytes(of: .batch(changes: Self.batches[1], durable: head))
    let survivor = JSONJournalLine.bytes(of: .batch(changes: Self.batches[4], durable: head))
    let journal = try JSONJournal(text + [UInt8](repeating: 0, count: lost.count - 1) + [UInt8(ascii: "\n")] + survivor)
    #expect(journal.batches == [Self.batches[0]])
    #expect(journal.size == size)
    let later = JSONJournalLine.bytes(of: .batch(changes: Self.batches[4], durable: Int64(size + lost.count)))
    #expect(
      throws: JSONJournal.Problem.damaged(line: 3, reason: "its checksum is wrong, or lines before it are missing")
    ) {
      try JSONJournal(text + [UInt8](repeating: 0, count: lost.count - 1) + [UInt8(ascii: "\n")] + later)
    }
  }

  @Test(arguments: ["", "\n", "hello\n", "{\"larder\":2,\"entries\":{}}\n"]) func `other files are not journals`(
    _ text: String
  ) {
    #expect(throws: JSONJournal.Problem.self) { try JSONJournal(Array(text.utf8)) }
  }

  @Test(arguments: [
    (1, "\"codec\":\"json\"}"), (3, "\"codec\":\"json\"}"), (3, "\"somethingNew\":{}}"),
  ]) func `another version is detected`(_ version: Int, _ rest: String) {
    #expect(throws: JSONJournal.Problem.otherVersion("\(version)")) {
      try JSONJournal(Self.signed("\"journal\":\(version),\(rest)"))
    }
  }

  @Test(arguments: [
    "\"durable\":\"x\",\"changes\":[]}", "\"changes\":[]}", "\"durable\":1,\"changes\":[{}]}",
    "\"durable\":1,\"changes\":[{\"set\":\"a\"}]}", "\"durable\":1,\"changes\":[{\"value\":1}]}",
    "\"durable\":1,\"changes\":[{\"remove\":7}]}", "\"durable\":1,\"changes\":[{\"removeAll\":{\"upTo\":\"a\"}}]}",
    "\"durable\":1,\"changes\":[{\"rename\":\"a\"}]}", "\"durable\":1,\"changes\":{}}", "\"durable\":1,\"changes\":[]",
    "\"journal\":2,\"codec\":\"json\"}", "}",
  ]) func `invalid lines with a checksum are damage`(_ rest: String) throws {
    let text = JSONJournalLine.bytes(of: .head(.init(codecName: "json"))) + Self.signed(rest)
    #expect(throws: JSONJournal.Problem.self) { try JSONJournal(text) }
  }

  private static func signed(_ rest: String) -> [UInt8] {
    let checksum = String(CRC32C.checksum(of: rest.utf8), radix: 16)
    return Array("{\"crc32c\":\"\(String(repeating: "0", count: 8 - checksum.count))\(checksum)\",\(rest)\n".utf8)
  }
}
