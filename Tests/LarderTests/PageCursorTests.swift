import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@Suite struct PageCursorTests {
  @Test func `text round trips`() throws {
    var random = SeededGenerator()
    for count in Array(1...40) + [100, 510, 511] {
      for _ in 0..<5 {
        for order in ScanOrder.allCases {
          let cursor = PageCursor(after: StoreKey(bytes: random.bytes(count: count)), order: order)
          let again = try PageCursor(cursor.text)
          #expect(again == cursor)
          #expect(again.hashValue == cursor.hashValue)
          #expect(cursor.description == cursor.text)
          // The text is safe in a URL without escaping.
          #expect(cursor.text.allSatisfy { "-_.".contains($0) || $0.isASCII && ($0.isLetter || $0.isNumber) })
        }
      }
    }
  }

  @Test func `the text format is fixed`() throws {
    #expect(PageCursor(after: "a").text == "1a.YQ")
    #expect(PageCursor(after: "a", order: .descending).text == "1d.YQ")
    #expect(PageCursor(after: StoreKey(bytes: [0xFB, 0xFF, 0xFE])).text == "1a.-__-")
    #expect(PageCursor(after: "ab").text == "1a.YWI")
    #expect(PageCursor(after: "abc").text == "1a.YWJj")
    #expect(try PageCursor("1d.YWI") == PageCursor(after: "ab", order: .descending))
    #expect(PageCursor(after: "a", index: "tag").text == "2a.dGFn.YQ")
    #expect(try PageCursor("2d.dGFn.YWI") == PageCursor(after: "ab", order: .descending, index: "tag"))
  }

  @Test(arguments: [
    "", "1", "1a", "1a.", "1d.", ".", "YQ", "a.YQ", "0a.YQ", "2a.YQ", "1b.YQ", "1A.YQ", "11a.YQ", " 1a.YQ", "1a.YQ ",
    "1a. YQ", "1a.Y", "1a.YWJjY", "1a.YQ=", "1a.YQ==", "1a.YQ===", "1a.=", "1a.====", "1a.YR", "1a.YWJ", "1a.YWL",
    "1a.+//+", "1a.Y.Q", "1a.YQ\n", "1a.YQ\r\n", "1a.Y\nQ", "1a.YQ\u{0}", "1a.YQ%3D", "1a.Yé", "1a.YQ\u{301}",
    "1a.\u{301}YQ", "1a.\u{212A}Q", "１a.YQ", "1a.YQYQ\u{FEFF}", "1a.🐄", "null", "{}", "[]",
  ])
  func `any other text is refused`(_ text: String) {
    let error = expectStoreError(.invalidArgument) { try PageCursor(text) }
    #expect(error?.operation == .page)
  }

  @Test func `a key that is too long is refused`() {
    let text = PageCursor(after: StoreKey(bytes: [UInt8](repeating: 1, count: 512))).text
    expectStoreError(.invalidArgument) { try PageCursor(text) }
  }

  @Test func `changed texts are refused or are another cursor`() {
    var random = SeededGenerator()
    for _ in 0..<5_000 {
      let cursor = PageCursor(after: StoreKey(bytes: random.bytes(count: random.integer(in: 1...30))))
      var text = Array(cursor.text.utf8)
      let index = random.integer(in: 0...text.count - 1)
      switch random.integer(in: 0...2) {
      case 0: text[index] = UInt8(random.integer(in: 0...127))
      case 1: text.remove(at: index)
      default: text.insert(UInt8(random.integer(in: 0...127)), at: index)
      }
      let changed = String(decoding: text, as: UTF8.self)
      do {
        let read = try PageCursor(changed)
        // Each cursor has exactly one text.
        guard read.text == changed else {
          Issue.record("\(changed) reads as \(read.text)")
          return
        }
      } catch StoreError.Code.invalidArgument {
      } catch {
        Issue.record(error)
      }
    }
  }

  @Test func `is Codable as its text`() throws {
    let cursor = PageCursor(after: "user:1", order: .descending)
    let json = try JSONEncoder().encode(["next": cursor])
    #expect(String(decoding: json, as: UTF8.self) == "{\"next\":\"\(cursor.text)\"}")
    #expect(try JSONDecoder().decode([String: PageCursor].self, from: json) == ["next": cursor])
    expectStoreError(.invalidArgument) {
      try JSONDecoder().decode(PageCursor.self, from: Data("\"1a.YQ==\"".utf8))
    }
    #expect(throws: DecodingError.self) { try JSONDecoder().decode(PageCursor.self, from: Data("1".utf8)) }
  }
}
