import Larder

/// Keys of all the kinds that stores have been seen to confuse.
enum UnusualKeys {
  static let all: [StoreKey] =
    [
      "a", "A", "a/b", "a//b", "a\\b", "a:b", "a::b", "a b", " a", "a ", "/", "//", ".", "..", "../x", "a/", "a\0b",
      "\0",
      "\n", "\t", "\r\n", "\u{7F}", "\"", "'", "\\", "%", "%00", "\u{E9}", "e\u{301}", "🐄", "☺", "日本", "$", "__proto__",
      "null", "0", "-0", "1e3", ".tmp", "{}", "[]", "\u{2028}", "\u{FEFF}",
    ]
    + [[0x80], [0xC0], [0xFF], [0xFF, 0xFF], [0xC3, 0x28], [0xED, 0xA0, 0x80], [0x61, 0x00], [0x61, 0xFF]].map {
      StoreKey(bytes: $0)
    }
}
