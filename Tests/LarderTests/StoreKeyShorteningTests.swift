import Larder
import LarderTesting
import TestSupport
import Testing

@Suite struct StoreKeyShorteningTests {
  /// The bytes of a mark and of a digest in hexadecimal.
  private let endLength = 65

  @Test func `a short text is its own key`() {
    for text in ["", "a", "https://example.com/", "é~", String(repeating: "a", count: 511)] {
      #expect(StoreKey(shortening: text) == StoreKey(text))
    }
    #expect(StoreKey(shortening: "12345", limit: 5) == "12345")
  }

  /// The digest is that of Python's `hashlib`.
  @Test func `a long text keeps its beginning and ends in its digest`() {
    let url = "https://example.com/search?q=" + String(repeating: "larder+", count: 80)
    let key = StoreKey(shortening: url)
    #expect(key.count == StoreKey.maximumLength)
    #expect(key.string == url.prefix(446) + "~b709ed87c6d044584d6c9866c27e0d8bfebe4151782def481b915a2a2518d963")
    #expect(KeyRange.prefix("https://example.com/").contains(key))
  }

  @Test func `one byte too many is shortened`() {
    let text = String(repeating: "a", count: 512)
    #expect(StoreKey(shortening: text).count == 511)
    #expect(StoreKey(shortening: text) != StoreKey(shortening: text + "a"))
    #expect(StoreKey(shortening: text).string?.hasPrefix(String(repeating: "a", count: 446) + "~") == true)
  }

  @Test func `the beginning ends between two scalars`() {
    for (text, length) in [("é", 2), ("€", 3), ("🐄", 4), ("a", 1)] {
      for offset in 0..<4 {
        let long = String(repeating: "x", count: offset) + String(repeating: text, count: 600)
        let key = StoreKey(shortening: long)
        #expect(key.string != nil)
        #expect((StoreKey.maximumLength - length + 1...StoreKey.maximumLength).contains(key.count))
      }
    }
    // Only scalars count, so a mark can lose the letter before it, and the key does not depend on Unicode's version.
    let marks = "e" + String(repeating: "\u{301}", count: 300)
    #expect(StoreKey(shortening: marks).string?.unicodeScalars.first == "e")
  }

  @Test func `a text that looks like a shortened key has another key`() throws {
    let long = String(repeating: "a", count: 600)
    let key = StoreKey(shortening: long)
    let lookalike = try #require(key.string)
    #expect(StoreKey(shortening: lookalike) != key)
    // And so on, without end.
    let next = try #require(StoreKey(shortening: lookalike).string)
    #expect(Set([long, lookalike, next].map { StoreKey(shortening: $0) }).count == 3)

    // A short text of this form has a digest of its own, and what only resembles the form is unchanged.
    let digits = String(repeating: "0123456789abcdef", count: 4)
    #expect(StoreKey(shortening: "~" + digits) != StoreKey("~" + digits))
    #expect(StoreKey(shortening: "a~" + digits).string?.hasPrefix("a~") == true)
    for text in ["a~" + digits.dropLast(), "a~" + digits.uppercased(), "a#" + digits, "~" + digits + "g"] {
      #expect(StoreKey(shortening: text) == StoreKey(text))
    }
  }

  @Test func `different texts have different keys whatever the limits`() {
    var random = SeededGenerator()
    var texts: Set<String> = []
    for _ in 0..<300 {
      let beginning = String(repeating: "ab", count: random.integer(in: 0...60))
      texts.insert(beginning + String(random.integer(in: 0...1_000)))
    }
    // The keys themselves are texts, too.
    for text in texts {
      for limit in [65, 66, 80, 100] {
        texts.insert(StoreKey(shortening: text, limit: limit).string ?? "")
      }
    }
    var textsByKey: [StoreKey: String] = [:]
    for text in texts {
      for limit in [65, 66, 80, 100] {
        let key = StoreKey(shortening: text, limit: limit)
        #expect(key.count <= limit)
        let other = textsByKey.updateValue(text, forKey: key)
        #expect(other == nil || other == text)
      }
    }
  }

  @Test func `a view with a prefix has a lower limit`() async throws {
    let pages = MemoryStore<[UInt8]>().typed(String.self, prefix: "page/", codec: .json())
    let url = "https://example.com/" + String(repeating: "a", count: 490)
    await expectStoreError(.invalidKey) { try await pages.setValue("a", forKey: StoreKey(shortening: url)) }
    let key = StoreKey(shortening: url, limit: pages.information.maximumKeyLength)
    try await pages.setValue("a", forKey: key)
    #expect(try await pages.value(forKey: key) == "a")
    #expect(key.count == 506)
  }

  @Test(arguments: [64, 1, 0, -1, Int.min]) func `a limit without room for a digest gives a key of the digest only`(
    _ limit: Int
  ) {
    let text = String(repeating: "a", count: 80)
    let key = StoreKey(shortening: text, limit: limit)
    #expect(key.count == endLength)
    #expect(key.string?.first == "~")
  }
}
