#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import Larder

extension CaseList {
  mutating func addKeyCases() {
    addRefusedKeyCases()
    addLongKeyCases()
    addUnusualKeyCases()
    addPlaceCases()
  }

  private mutating func addRefusedKeyCases() {
    addRefusal(23, "", "an empty key is refused by every operation", key: "")
    addRefusal(
      36, "a", "a key of 512 bytes is refused by every operation",
      key: StoreKey(bytes: Array(repeating: 0x61, count: 512)))
    addRefusal(
      36, "b", "a key of 100,000 bytes is refused by every operation",
      key: StoreKey(bytes: Array(repeating: 0x61, count: 100_000)))
  }

  private mutating func addRefusal(_ number: Int, _ variant: String, _ name: String, key: StoreKey) {
    add(number, variant, name, in: .keys, checks: .keys) { trial in
      let store = try await trial.open(withKeys: ["a", "b"])
      for call in StoreCall<Store>.taking(key) {
        try await expect(call.name, throws: .invalidKey, key: key) { try await call.run(store) }
        try await expect(
          "the contents after \(call.name)", store,
          holds: [("a", SampleValue(key: "a")), ("b", SampleValue(key: "b"))])
      }
    }
  }

  private mutating func addLongKeyCases() {
    let maximum = maximumKeyLength
    add(36, "c", "a key of 105 bytes works like any other", in: .keys, checks: .keys) { trial in
      try await expect(trial, keepsApart: [StoreKey(bytes: (0..<105).map { UInt8($0) })])
    }
    add(36, "d", "a key of the maximum length works like any other", in: .keys, checks: .keys) {
      trial in
      let longest = StoreKey(bytes: Array(repeating: 0xFF, count: maximum))
      try await expect(trial, keepsApart: [longest, StoreKey(bytes: Array(repeating: 0xFF, count: maximum - 1))])
      let store = try await trial.open(withKeys: ["a", longest])
      for call in StoreCall<Store>.taking(longest) {
        try await call.run(store)
      }
      try await expect("the value of the key at the end", store.value(forKey: longest), equals: SampleValue("new"))
    }
    add(36, "e", "keys that differ only in their last bytes are distinct, at every length", in: .keys, checks: .keys) {
      trial in
      // Lengths around the limits at which implementations change their representation.
      let keys = [1, 7, 8, 9, 15, 16, 17, 22, 23, 24, 25, 31, 32, 33, 127, 128, 255, 256, maximum - 1].flatMap {
        length in
        let bytes = Array(repeating: UInt8(ascii: "k"), count: length)
        return [StoreKey(bytes: bytes), StoreKey(bytes: bytes.dropLast() + [0]), StoreKey(bytes: bytes + [0])]
      }
      try await expect(trial, keepsApart: keys)
    }
    add(36, "f", "every single byte is a valid key", in: .keys, checks: .keys) { trial in
      try await expect(trial, keepsApart: (0...UInt8.max).map { StoreKey(bytes: [$0]) })
    }
  }

  private mutating func addUnusualKeyCases() {
    addUnusual(25, "", "0x80 and 0xC0 are distinct keys", [[0x80], [0xC0], [0x80, 0xC0], [0xC0, 0x80]])
    add(26, "", "a key from a slice has only the bytes of the slice", in: .keys, checks: .keys) { trial in
      let bytes = Data("before-key-after".utf8)
      let store = try await trial.open()
      try await store.setValue(SampleValue("a"), forKey: StoreKey(bytes: bytes[7..<10]))
      try await expect("the contents", store, holds: [("key", SampleValue("a"))])
    }
    addUnusual(27, "", "slashes are ordinary bytes", ["a/b", "a/b/c", "/a", "/", "a"])
    addUnusual(28, "", "repeated slashes are kept", ["foo//bar///baz", "foo/bar/baz", "foo//bar/baz", "//", "///"])
    addUnusual(
      29, "", "dots are not path components",
      [
        "../foo/../bar/../../baz../", "..", ".", "../", "./a", "a/../b", "b", "../../x", ".hidden",
      ])
    addUnusual(
      30, "", "backslashes are ordinary bytes", ["\\", "\\\\", "a\\b", "a/b", "..\\..\\a", "\\..\\..\\b", "C:\\x"])
    addUnusual(31, "", "quotes are ordinary bytes", ["\"", "'", "\"a\"", "'a'", "a\"b'c", "\\\"", "`a`"])
    addUnusual(
      32, "", "spaces and punctuation are ordinary bytes",
      [
        " ", "  ", " a", "a ", "a", " !@#$%^&()_+-=;',", "%20", "%2F", "a?x", "a#x", "{\"a\":1}", "[1]", "*", "<>|",
      ])
    add(33, "", "all ASCII bytes, including control bytes, are ordinary", in: .keys, checks: .keys) { trial in
      let chunks = (0..<8).map { chunk in StoreKey(bytes: (chunk * 16..<chunk * 16 + 16).map { UInt8($0) }) }
      let singles = (0..<128).map { StoreKey(bytes: [0x6B, UInt8($0), 0x6B]) }
      try await expect(trial, keepsApart: chunks + singles)
    }
    addUnusual(
      34, "", "letters outside ASCII are ordinary", ["☺☺☺", "🐄", "a🐄", "äöü", "日本語", "👩‍👩‍👧", "\u{FEFF}a", "\u{202E}a"])
    addUnusual(35, "", "a key may begin with a digit", ["1", "1a", "01", "1.0", "1e0", "0x1", "-1"])
    add(37, "", "every unusual key is listed once and unchanged", in: .keys, checks: .keys) { trial in
      try await expect(trial, keepsApart: UnusualKeys.all)
    }
    addUnusual(
      38, "", "bytes that are not UTF-8 are ordinary",
      [
        [0xFF], [0xFE, 0xFF], [0xC3], [0xC3, 0x28], [0xED, 0xA0, 0x80], [0xF8, 0x88, 0x80, 0x80, 0x80], [0x61, 0x80],
        [0xEF, 0xBF, 0xBD],
      ])
    addUnusual(
      39, "", "a key and a longer key that continues it after a slash can coexist",
      ["foo", "foo/bar", "foo/bar/baz", "foo/"])
    addUnusual(
      40, "", "keys with different separators are distinct",
      ["a:b", "a/b", "a\\b", "a::b", "a?x", "a.b", "a_b", "a b", "a-b", "a"])
    addUnusual(
      41, "", "composed and decomposed letters, and upper and lower case, are distinct",
      ["\u{E9}", "e\u{301}", "e", "E", "a", "A", "ß", "ss", "SS", "ﬁ", "fi", "\u{212B}", "\u{C5}"])
    addUnusual(
      42, "", "keys with joined or escaped parts are distinct",
      ["a_b_c", "a_b", "b_c", "a%5Fb", "a%5fb", "a%", "a%25", "a=", "a=3D"])
    addUnusual(
      43, "", "keys that look like a store's internal names are ordinary",
      [
        ".tmp", "a.tmp", ".lock", "key$", "__OVERLAY_REMOVED__", "base64:YQ==", "$bytes", "larder", "entries", "null",
        "\\u0000", "store.json", "store.json.journal", "~", "0x80", "hex:80", "bytes:80", "__proto__", "keyBytes",
      ])
    addUnusual(44, "", "a trailing slash is an ordinary byte", ["a", "a/", "a//", "b/"])
  }

  private mutating func addUnusual(_ number: Int, _ variant: String, _ name: String, _ keys: [StoreKey]) {
    add(number, variant, name, in: .keys, checks: .keys) { trial in
      try await expect(trial, keepsApart: keys)
    }
  }

  private mutating func addUnusual(_ number: Int, _ variant: String, _ name: String, _ keys: [[UInt8]]) {
    addUnusual(number, variant, name, keys.map { StoreKey(bytes: $0) })
  }

  private mutating func addPlaceCases() {
    let maximum = maximumKeyLength
    add(200, "", "the bound of a range may be empty, or longer than any key", in: .keys, checks: .keys) { trial in
      let longest = StoreKey(bytes: Array(repeating: 0x61, count: maximum))
      let long = StoreKey(bytes: Array(repeating: 0x61, count: maximum + 1))
      let veryLong = StoreKey(bytes: Array(repeating: 0x61, count: 5_000))
      let keys: [StoreKey] = ["a", longest, "b"]
      let store = try await trial.open(withKeys: keys)
      let model = ScanModel(keys)
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
}

/// Throws a ``Mismatch`` unless a fresh store treats all given keys as distinct.
private func expect<Store>(_ trial: Trial<Store>, keepsApart keys: [StoreKey]) async throws {
  let keys = Set(keys).sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
  var store = try await trial.open()
  for key in keys.reversed() {
    try await expect("whether the fresh store contains \(key)", store.contains(key), equals: false)
  }
  try await store.apply(ChangeBatch(keys.reversed().map { .set($0, SampleValue(key: $0)) }))
  let entries = keys.map { ($0, SampleValue(key: $0)) as (StoreKey, SampleValue?) }
  try await expect("the contents", store, holds: entries)
  for key in keys {
    try await expect("the value of \(key)", store.value(forKey: key), equals: SampleValue(key: key))
    try await expect("whether it contains \(key)", store.contains(key), equals: true)
  }
  store = try await trial.settled(store)
  try await expect("the contents, reopened if persistent", store, holds: entries)
  for (offset, key) in keys.enumerated() where offset.isMultiple(of: 2) {
    try await store.removeValue(forKey: key)
  }
  let rest = entries.enumerated().filter { !$0.offset.isMultiple(of: 2) }.map(\.element)
  try await expect("the contents after removing every other key", store, holds: rest)
  try await store.close()
}
