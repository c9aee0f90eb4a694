import Foundation
import Larder

extension CaseList {
  mutating func addKeyCases() {
    begin(.keys, checking: .keys)
    addRefusal("23", "an empty key is refused by every operation", key: "")
    addRefusal("36a", "a key of 512 bytes is refused by every operation", key: .tooLong)
    addRefusal(
      "36b", "a key of 100,000 bytes is refused by every operation",
      key: StoreKey(bytes: Array(repeating: 0x61, count: 100_000)))
    addLongKeyCases()
    addUnusualKeyCases()
  }

  private mutating func addRefusal(_ id: String, _ name: String, key: StoreKey) {
    add(id, name, keys: ["a", "b"]) { store, _ in
      for call in StoreCall<Store>.taking(key) {
        try await expect(store, refuses: [call], with: .invalidKey, key: key)
        try await expect(store, holds: Entries(keys: ["a", "b"]), "after \(call.name)")
      }
    }
  }

  /// Adds a case in which a fresh store treats all given keys as distinct.
  private mutating func addDistinct(_ id: String, _ name: String, _ keys: [StoreKey]) {
    let keys = Set(keys).sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    add(id, name) { trial in
      let store = try await trial.open()
      for key in keys.reversed() {
        try await expect("whether the fresh store contains \(key)", store.contains(key), equals: false)
      }
      try await store.apply(ChangeBatch(keys.reversed().map { .set($0, SampleValue(key: $0)) }))
      for key in keys {
        try await expect("the value of \(key)", store.value(forKey: key), equals: SampleValue(key: key))
        try await expect("whether it contains \(key)", store.contains(key), equals: true)
      }
      let settled = try await expect(store, keeps: Entries(keys: keys), in: trial)
      for index in stride(from: 0, to: keys.count, by: 2) { try await settled.removeValue(forKey: keys[index]) }
      let rest = stride(from: 1, to: keys.count, by: 2).map { keys[$0] }
      try await expect(settled, holds: Entries(keys: rest), "after removing every other key")
    }
  }

  private mutating func addDistinct(_ id: String, _ name: String, bytes keys: [[UInt8]]) {
    addDistinct(id, name, keys.map { StoreKey(bytes: $0) })
  }

  private mutating func addLongKeyCases() {
    let maximum = settings.maximumKeyLength
    let longest = StoreKey(bytes: Array(repeating: 0x61, count: maximum))
    addDistinct("36c", "a key of 105 bytes works like any other", bytes: [(0..<105).map { UInt8($0) }])
    let highest = [maximum, maximum - 1].map { StoreKey(bytes: Array(repeating: 0xFF, count: $0)) }
    add("36d", "a key of the maximum length works like any other", keys: highest + ["a"]) { store, trial in
      let reopened = try await expect(store, keeps: Entries(keys: highest + ["a"]), in: trial)
      for call in StoreCall<Store>.taking(highest[0]) { try await call.run(reopened) }
      try await expect("the value of the key at the end", reopened.value(forKey: highest[0]), equals: "new")
    }
    // Lengths around the limits at which implementations change their representation.
    let lengths = [1, 7, 8, 9, 15, 16, 17, 22, 23, 24, 25, 31, 32, 33, 127, 128, 255, 256, maximum - 1]
    addDistinct(
      "36e", "keys that differ only in their last bytes are distinct, at every length",
      bytes: lengths.flatMap { length in
        let bytes = Array(repeating: UInt8(ascii: "k"), count: length)
        return [bytes, bytes.dropLast() + [0], bytes + [0]]
      })
    addDistinct("36f", "every single byte is a valid key", bytes: (0...UInt8.max).map { [$0] })
    add("200", "the bound of a range may be empty, or longer than any key", keys: ["a", longest, "b"]) { store, _ in
      let long = StoreKey(bytes: Array(repeating: 0x61, count: maximum + 1))
      let veryLong = StoreKey(bytes: Array(repeating: 0x61, count: 5_000))
      let model = ScanModel(["a", longest, "b"])
      for range in [
        ""..., ""..."", ..<"", ..."", ""..<"b", long..., veryLong..., ..<long, ..<veryLong, long..<"c", ""..<veryLong,
        long..<veryLong, .only(longest), .only(long), .prefix(longest), .prefix(long), .prefix(""),
      ] {
        try await expect(store, scans: range, like: model)
      }
      try await store.removeAll(in: long..<veryLong)
      try await expect("the count after removing a range without keys", store.count(), equals: 3)
      try await store.removeAll(in: ""..<long)
      try await expect("the keys after removing up to a long bound", store.keys(in: .all, limit: 9), equals: ["b"])
    }
  }

  private mutating func addUnusualKeyCases() {
    addDistinct("25", "0x80 and 0xC0 are distinct keys", bytes: [[0x80], [0xC0], [0x80, 0xC0], [0xC0, 0x80]])
    add("26", "a key from a slice has only the bytes of the slice", keys: []) { store, _ in
      try await store.setValue("a", forKey: StoreKey(bytes: Data("before-key-after".utf8)[7..<10]))
      try await expect(store, holds: ["key": "a"])
    }
    addDistinct("27", "slashes are ordinary bytes", ["a/b", "a/b/c", "/a", "/", "a"])
    addDistinct("28", "repeated slashes are kept", ["foo//bar///baz", "foo/bar/baz", "foo//bar/baz", "//", "///"])
    addDistinct(
      "29", "dots are not path components",
      ["../foo/../bar/../../baz../", "..", ".", "../", "./a", "a/../b", "b", "../../x", ".hidden"])
    addDistinct(
      "30", "backslashes are ordinary bytes", ["\\", "\\\\", "a\\b", "a/b", "..\\..\\a", "\\..\\..\\b", "C:\\x"])
    addDistinct("31", "quotes are ordinary bytes", ["\"", "'", "\"a\"", "'a'", "a\"b'c", "\\\"", "`a`"])
    addDistinct(
      "32", "spaces and punctuation are ordinary bytes",
      [
        " ", "  ", " a", "a ", "a", " !@#$%^&()_+-=;',", "%20", "%2F", "a?x", "a#x", "{\"a\":1}", "[1]", "*", "<>|",
      ])
    addDistinct(
      "33", "all ASCII bytes, including control bytes, are ordinary",
      bytes: (0..<8).map { chunk in (chunk * 16..<chunk * 16 + 16).map { UInt8($0) } }
        + (0..<128).map { [0x6B, UInt8($0), 0x6B] })
    addDistinct(
      "34", "letters outside ASCII are ordinary",
      ["☺☺☺", "🐄", "a🐄", "äöü", "日本語", "👩‍👩‍👧", "\u{FEFF}a", "\u{202E}a"])
    addDistinct("35", "a key may begin with a digit", ["1", "1a", "01", "1.0", "1e0", "0x1", "-1"])
    addDistinct("37", "every unusual key is listed once and unchanged", UnusualKeys.all)
    addDistinct(
      "38", "bytes that are not UTF-8 are ordinary",
      bytes: [
        [0xFF], [0xFE, 0xFF], [0xC3], [0xC3, 0x28], [0xED, 0xA0, 0x80], [0xF8, 0x88, 0x80, 0x80, 0x80], [0x61, 0x80],
        [0xEF, 0xBF, 0xBD],
      ])
    addDistinct(
      "39", "a key and a longer key that continues it after a slash can coexist",
      ["foo", "foo/bar", "foo/bar/baz", "foo/"])
    addDistinct(
      "40", "keys with different separators are distinct",
      ["a:b", "a/b", "a\\b", "a::b", "a?x", "a.b", "a_b", "a b", "a-b", "a"])
    addDistinct(
      "41", "composed and decomposed letters, and upper and lower case, are distinct",
      ["\u{E9}", "e\u{301}", "e", "E", "a", "A", "ß", "ss", "SS", "ﬁ", "fi", "\u{212B}", "\u{C5}"])
    addDistinct(
      "42", "keys with joined or escaped parts are distinct",
      ["a_b_c", "a_b", "b_c", "a%5Fb", "a%5fb", "a%", "a%25", "a=", "a=3D"])
    addDistinct(
      "43", "keys that look like a store's internal names are ordinary",
      [
        ".tmp", "a.tmp", ".lock", "key$", "__OVERLAY_REMOVED__", "base64:YQ==", "$bytes", "larder", "entries", "null",
        "\\u0000", "store.json", "store.json.journal", "~", "0x80", "hex:80", "bytes:80", "__proto__", "keyBytes",
      ])
    addDistinct("44", "a trailing slash is an ordinary byte", ["a", "a/", "a//", "b/"])
  }
}
