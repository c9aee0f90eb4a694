import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@Suite struct JSONScannerTests {
  /// Returns whether the scanner accepts a text as one JSON value.
  ///
  /// `value()`, `string()` and `forEachMember` must agree.
  private static func accepts(_ text: [UInt8]) -> Bool {
    do {
      var scanner = JSONScanner(text[...])
      let value = try scanner.value()
      try scanner.expectEnd()
      return !value.isEmpty
    } catch {
      return false
    }
  }

  private static func bytes(_ hexadecimal: String) -> [UInt8] {
    Hexadecimal.bytes(of: hexadecimal.utf8) ?? []
  }

  // MARK: Valid and invalid JSON

  /// Valid texts, in the manner of "Parsing JSON is a minefield" by Nicolas Seriot.
  private static let accepted = [
    "0", "-0", "1", "-1", "10", "-10", "0.0", "-0.0", "0e0", "0E+1", "0e-1", "1.5", "1e1", "1E1", "1e+1", "1e-1",
    "1.5e300", "1e308", "1e400", "-1e-400", "123456789012345678901234567890", "0.1000000000000000055511151231257827",
    "20e1", "123.456e78", "9007199254740993", "18446744073709551616", "1e00001", "true", "false", "null", " true ",
    "\t\n\r null\r\n", "\"\"", "\"a\"", " \"a\" ", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\u0000\"", "\"\\u000A\"",
    "\"\\uFFFF\"", "\"\\uffFE\"", "\"\\uD834\\uDD1E\"", "\"\\udbff\\udfff\"", "\"\\ud800\\udc00\"",
    "\"\\u0061\\u30af\\u30EA\\u30b9\"", "\"/\"", "\"\u{7F}\"", "\"é\"", "\"e\u{301}\"", "\"🐄\"", "\"\u{FEFF}\"",
    "\"\u{2028}\u{2029}\"", "\"\u{FFFE}\"", "\"\u{10FFFF}\"", "\"\\\\u0000\"", "\"\\\\\\\"\"", "\"a/*b*/c\"",
    "\"\\u002c\"", "[]", "[ ]", "[\n]", "[1]", "[1,2]", "[ 1 , 2 ]", "[null,1,\"1\",{}]", "[[]]", "[[[]],[]]",
    "[\"\"]", "[true\n]", "[1\n,\n2]", "[[1],[2],[3]]", "[1e1,2E-2,-3]", "[{\"a\":[]}]", "[\"[\",\"]\"]", "{}", "{ }",
    "{\"\":0}", "{\"a\":1}", "{\"a\":1,\"b\":2}", "{ \"a\" : 1 , \"b\" : 2 }", "{\"a\":{}}", "{\"a\":{\"b\":[]}}",
    "{\"a\":1,\"a\":2}", "{\"\\u0061\":1,\"a\":2}", "{\"a\\\"b\":1}", "{\"\\u0000\":null}", "{\"a\":\n1}",
    "{\"{\":\"}\"}", "{\"é\":1,\"e\u{301}\":2}", "{\"a\":[{\"b\":null},true,false]}",
  ]

  private static let refused = [
    "", " ", "\n", "+1", "++1", "-", "--1", "- 1", "01", "-01", "00", "1.", "-1.", ".1", "-.1", "1.e1", "1e", "1E",
    "1e+", "1e-", "1ee1", "1e1.5", "1e1e1", "1.2.3", "0x1", "0x42", "1_000", "1,000", "1 000", "1a", "1f", "0b1",
    "0.1.2", "1+2", "Infinity", "-Infinity", "NaN", "nan", "inf", "-inf", "٣", "１", "tru", "truex", "True", "TRUE",
    "fals", "falsey", "nul", "nulll", "None", "undefined", "t", "n", "f", "a", "true false", "nullnull", "*", "@",
    "#", "&", "^", "/", "//", "/**/1", "1//x", "1/**/", "#1\n1", "\u{FEFF}1", "\u{A0}1", "\u{2028}1", "\u{2003}1",
    "\u{B}1", "\u{C}1", "\u{0}1", "1\u{0}", "\u{85}1", "1;", "1,", ",1", ",", ":", "\\n1", "`1`", "(1)", "\"", "\"a",
    "a\"", "'a'", "\"a\"b", "\"\\\"", "\"\\\\\\\"", "\"\\a\"", "\"\\v\"", "\"\\'\"", "\"\\0\"", "\"\\x00\"",
    "\"\\ \"", "\"\\\n\"", "\"\\U0041\"", "\"\\u\"", "\"\\u0\"", "\"\\u00\"", "\"\\u004\"", "\"\\u00G0\"",
    "\"\\u{41}\"", "\"\\u-041\"", "\"\\u+041\"", "\"\\u 041\"", "\"\\u0x41\"", "\"\\é\"", "\"\\🐄\"", "\"\\",
    "\"\\u004", "\"\n\"", "\"\t\"", "\"\r\"", "\"\u{0}\"", "\"\u{1}\"", "\"\u{1F}\"", "\"\u{8}\"", "\"\" \"\"", "“a”",
    "«»", "\"\\uD800\"", "\"\\uDC00\"", "\"\\uDBFF\"", "\"\\uDFFF\"", "\"\\uD800a\"", "\"\\uD800\\n\"",
    "\"\\uD800\\u0041\"", "\"\\uD800\\uD800\"", "\"\\uDC00\\uD800\"", "\"\\uD800\\uD800\\uDC00\"",
    "\"\\uD800\\uE000\"", "\"\\uD800\\\"", "\"\\uD800\\u\"", "\"\\uD800\\uDC0\"", "\"\\uD800\\uDC0G\"",
    "\"\\uD800\\\\uDC00\"", "[", "]", "[[", "[]]", "[[]", "[1", "[1,", "[1,]", "[,1]", "[,]", "[1,,2]", "[1 2]",
    "[1;2]", "[1:2]", "[\"a\":1]", "[1}", "[}", "[1][2]", "[1],", "[]1", "[a]", "[\"a\"", "[\"a", "[\"a\",",
    "[\"\"a]", "[1\u{A0}]", "[1\u{C}]", "[\u{FEFF}]", "[-]", "[.]", "[+]", "[1.]", "[nul]", "[true", "[tru]", "<1>",
    "[<null>]", "[1,\n1\n,1", "[{}", "[\\u0020]", "[*]", "[${x}]", "{", "}", "{}}", "{{}", "{{}}", "{]", "{\"a\"",
    "{\"a\"}", "{\"a\":", "{\"a\":}", "{\"a\" 1}", "{\"a\",1}", "{\"a\"::1}", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}",
    "{,\"a\":1}", "{,}", "{\"a\":1,,\"b\":2}", "{\"a\":1 \"b\":2}", "{\"a\":1;\"b\":2}", "{a:1}", "{'a':1}", "{1:1}",
    "{null:1}", "{true:1}", "{[]:1}", "{{}:1}", "{\"a\":1}#", "{\"a\":1}/**/", "{\"a\":1}{", "{\"a\":a}", "{\"a\"=1}",
    "{\"a\":'b'}", "{\"a\":\"b}", "{\"a:1}", "{\"a\":1]", "{\"a\":[}", "{\"a\":[1}]", "{\"a\":\"b\",\"c\"}", "{:1}",
    "{\"a\":/*x*/1}", "{\"a\\uD800\":1}", "{\"\n\":1}", "{\"a\":1,\"b\"}", "{\"a\":1,1}", "{\"a\":01}", "{\"a\":+1}",
    "{\"a\":.5}",
  ]

  @Test func `accepts valid JSON`() {
    for text in JSONScannerTests.accepted {
      #expect(JSONScannerTests.accepts(Array(text.utf8)), "\(text.debugDescription) is JSON")
    }
    #expect(Set(JSONScannerTests.accepted).count > 80)
  }

  @Test func `refuses invalid JSON`() {
    for text in JSONScannerTests.refused {
      #expect(!JSONScannerTests.accepts(Array(text.utf8)), "\(text.debugDescription) is not JSON")
    }
    #expect(Set(JSONScannerTests.refused).count > 200)
  }

  @Test func `invalid text is refused within other text`() {
    for text in JSONScannerTests.refused where !["", " ", "\n"].contains(text) {
      #expect(!JSONScannerTests.accepts(Array("{\"a\":\(text)}".utf8)), "\(text.debugDescription) in an object")
      #expect(!JSONScannerTests.accepts(Array("[0,\(text)]".utf8)), "\(text.debugDescription) in an array")
    }
    for text in JSONScannerTests.accepted {
      #expect(JSONScannerTests.accepts(Array("[0, \(text) ,{\"a\": \(text) }]".utf8)), "\(text.debugDescription)")
    }
  }

  @Test func `reads only its slice`() {
    let text = Array("[12345]".utf8)
    for (range, expected) in [(0..<7, "[12345]"), (1..<6, "12345"), (2..<4, "23")] {
      var scanner = JSONScanner(text[range])
      #expect((try? scanner.value()).map { String(decoding: $0, as: UTF8.self) } == expected)
      #expect(throws: Never.self) { try scanner.expectEnd() }
    }
    // No byte after the slice completes a truncated text.
    for cut in ["true", "\"ab\"", "\"\\u0041\"", "\"\\ud834\\udd1e\"", "\"é\"", "\"🐄\"", "[1]", "-1", "1.5", "1e5"] {
      var scanner = JSONScanner(Array(cut.utf8).dropLast())
      #expect(throws: JSONSyntaxError.self, "\(cut.debugDescription)") { try scanner.value() }
    }
  }

  @Test func `starts at an offset`() throws {
    let text = Array("xx[1,\n2] y".utf8)
    var scanner = JSONScanner(text[1...], from: 2)
    #expect(String(decoding: try scanner.value(), as: UTF8.self) == "[1,\n2]")
    // Offsets count from the beginning of the text, not from the start of the scan.
    let error = #expect(throws: JSONSyntaxError.self) { try scanner.expectEnd() }
    #expect(error?.line == 2)
    #expect(error?.column == 4)
    #expect(error?.offset == 8)
  }

  // MARK: UTF-8

  private static let refusedUTF8 = [
    // Table 3-7 of the Unicode Standard: sequences just outside of each row.
    "7f80", "80", "bf", "c0", "c080", "c0af", "c1bf", "c27f", "c2c0", "c2", "df7f", "dfc0", "e0", "e080", "e09fbf",
    "e08080", "e0a07f", "e0a0c0", "e0c080", "e17f80", "e1c080", "e1807f", "e180c0", "e180", "ec7fbf", "ed7f80",
    "eda080", "edbfbf", "edb080", "ed80c0", "ee7f80", "eec080", "efbf7f", "efbfc0", "f0", "f08080", "f08f8080",
    "f08fbfbf", "f0907f80", "f090807f", "f09080c0", "f0c08080", "f0908080f0", "f17f8080", "f1c08080", "f1808080c2",
    "f3bfbfc0", "f47f8080", "f4908080", "f4bfbfbf", "f48fbf7f", "f5808080", "f7bfbfbf", "f888808080", "fc8480808080",
    "fe", "ff", "fffe",
    "fe ff".replacingOccurrences(of: " ", with: ""),
    "eda0bdedb880", "61e2", "61e282", "61f09f90",
  ]

  private static let acceptedUTF8 = [
    "7f", "c280", "dfbf", "e0a080", "e0bfbf", "e18080", "ecbfbf", "ed8080", "ed9fbf", "ee8080", "efbfbf", "efbfbd",
    "f0908080", "f0bfbfbf", "f1808080", "f3bfbfbf", "f4808080", "f48fbfbf", "61c3a962", "f09f9084f09f9084",
  ]

  @Test func `strings must be UTF8`() {
    for hexadecimal in JSONScannerTests.acceptedUTF8 {
      let content = JSONScannerTests.bytes(hexadecimal)
      let text = [0x22] + content + [0x22]
      var scanner = JSONScanner(text[...])
      #expect((try? scanner.string()) == content, "\(hexadecimal)")
      #expect(JSONScannerTests.accepts(text), "\(hexadecimal)")
    }
    for hexadecimal in JSONScannerTests.refusedUTF8 {
      let content = JSONScannerTests.bytes(hexadecimal)
      #expect(!content.isEmpty)
      for text in [[0x22] + content + [0x22], [0x22] + content, [0x22, 0x61] + content + [0x62, 0x63, 0x64, 0x22]] {
        var scanner = JSONScanner(text[...])
        #expect(throws: JSONSyntaxError.self, "\(hexadecimal)") { try scanner.string() }
        #expect(!JSONScannerTests.accepts(text), "\(hexadecimal)")
      }
    }
  }

  @Test func `every pair of bytes is judged as by Swift`() {
    for first in UInt8(0x80)...UInt8.max {
      for second in UInt8.min...UInt8.max where second != 0x22 && second != 0x5C && second >= 0x20 {
        for tail: [UInt8] in [[], [0x80], [0xBF], [0x80, 0x80], [0xBF, 0xBF]] {
          let content = [first, second] + tail
          let isUTF8 = String(validating: content, as: UTF8.self) != nil
          guard JSONScannerTests.accepts([0x22] + content + [0x22]) == isUTF8 else {
            Issue.record("\(Hexadecimal.text(of: content)) is judged differently")
            return
          }
        }
      }
    }
  }

  @Test func `escapes are decoded`() throws {
    var scanner = JSONScanner(
      Array(#"  "\"\\\/\b\f\n\r\t\u0000\u00e9\u20AC\ud834\uDD1E\uFFFF\uD7ff\ue000é" "#.utf8)[...])
    let expected = "\"\\/\u{8}\u{C}\n\r\t\0\u{E9}\u{20AC}\u{1D11E}\u{FFFF}\u{D7FF}\u{E000}\u{E9}"
    #expect(try scanner.string() == Array(expected.utf8))
    try scanner.expectEnd()
  }

  // MARK: Depth and damage

  private static func nested(_ depth: Int, open: String, close: String, inner: String = "") -> [UInt8] {
    Array((String(repeating: open, count: depth) + inner + String(repeating: close, count: depth)).utf8)
  }

  @Test func `nests 512 levels and no more`() {
    #expect(JSONScanner.maximumDepth == 512)
    for (open, close, inner) in [("[", "]", ""), ("[", "]", "1"), ("{\"a\":", "}", "1"), ("[{\"a\":", "}]", "1")] {
      let levels = open.hasPrefix("[{") ? 256 : 512
      #expect(JSONScannerTests.accepts(JSONScannerTests.nested(levels, open: open, close: close, inner: inner)))
      let tooDeep = JSONScannerTests.nested(levels + 1, open: open, close: close, inner: inner)
      var scanner = JSONScanner(tooDeep[...])
      let error = #expect(throws: JSONSyntaxError.self) { try scanner.value() }
      #expect(error?.message.contains("512") == true)
    }
    // Sibling levels do not add up.
    #expect(JSONScannerTests.accepts(Array(("[" + String(repeating: "[[]],", count: 2_000) + "[]]").utf8)))
  }

  @Test func `a million brackets are handled safely`() {
    for text in [
      JSONScannerTests.nested(1_000_000, open: "[", close: ""),
      JSONScannerTests.nested(1_000_000, open: "[", close: "]"),
      JSONScannerTests.nested(1_000_000, open: "{\"\":", close: ""),
      JSONScannerTests.nested(1_000_000, open: "[{\"a\":", close: ""),
    ] {
      #expect(!JSONScannerTests.accepts(text))
    }
  }

  private static let richDocument = """
    {"larder": 1, "entries": {"a": [1, -2.5e+10, true, false, null, {}], "\\u00e9\\ud834\\udd1e": "é🐄\\n\\"",
     "deep": [[[{"x": [{}]}]]], "": "", "last": 0.125}} 
    """

  @Test func `every truncated document is refused`() {
    let document = Array(JSONScannerTests.richDocument.utf8)
    #expect(JSONScannerTests.accepts(document))
    let end = document.lastIndex(of: UInt8(ascii: "}")) ?? 0
    for length in 0...end {
      #expect(!JSONScannerTests.accepts(Array(document[..<length])), "cut at \(length)")
    }
    #expect(JSONScannerTests.accepts(Array(document[...end])))
  }

  @Test func `the members of a truncated document are refused`() {
    let document = Array(JSONScannerTests.richDocument.utf8)
    let end = document.lastIndex(of: UInt8(ascii: "}")) ?? 0
    for length in 0...end {
      var scanner = JSONScanner(document[..<length])
      #expect(throws: JSONSyntaxError.self, "cut at \(length)") {
        try scanner.forEachMember { _, _, scanner in _ = try scanner.value() }
      }
    }
  }

  // MARK: Members

  @Test func `visits the members`() throws {
    let text = #" { "a" : 1 , "é\n" :[ 2 , 3 ], "a":{"b":4} ,"":null } "#
    var scanner = JSONScanner(Array(text.utf8)[...])
    var seen: [String] = []
    var places: [Int] = []
    try scanner.forEachMember { place, name, scanner in
      places.append(place)
      seen.append(String(decoding: name, as: UTF8.self) + "=" + String(decoding: try scanner.value(), as: UTF8.self))
    }
    try scanner.expectEnd()
    #expect(seen == ["a=1", "é\n=[ 2 , 3 ]", "a={\"b\":4}", "=null"])
    #expect(places.map { text.utf8[text.utf8.index(text.startIndex, offsetBy: $0)] } == [0x22, 0x22, 0x22, 0x22])
    #expect(places == places.sorted())
  }

  @Test(arguments: [
    "", "[]", "1", "{", "{a:1}", "{\"a\"}", "{\"a\":1,}", "{,}", "{\"a\":1 \"b\":2}", "{\"a\":1", "{1:2}", "{\"a\"1}",
  ])
  func `invalid objects have no members`(_ text: String) {
    var scanner = JSONScanner(Array(text.utf8)[...])
    #expect(throws: JSONSyntaxError.self) {
      try scanner.forEachMember { _, _, scanner in _ = try scanner.value() }
    }
  }

  @Test func `errors of a members reader pass through`() {
    var scanner = JSONScanner(Array("{\"a\":1}".utf8)[...])
    #expect(throws: CancellationError.self) {
      try scanner.forEachMember { _, _, _ in throw CancellationError() }
    }
  }

  // MARK: Places

  @Test(arguments: [
    ("", 1, 1), ("x", 1, 1), ("  x", 1, 3), ("\n\nx", 3, 1), ("[1,\n 2,\n x]", 3, 2), ("[1,\r\n x]", 2, 2),
    ("{\"a\":1,\n\"b\":tru}", 2, 5), ("{\"é\":x}", 1, 7), ("[1] x", 1, 5), ("\"a\\q\"", 1, 3), ("\"\\ud800\"", 1, 2),
    ("\"ab\ncd\"", 1, 4), ("[1 2]", 1, 4), ("{\"a\" 1}", 1, 6), ("{1:2}", 1, 2), ("-x", 1, 2), ("1.x", 1, 3),
    ("1ex", 1, 3),
    ("[1,\n", 2, 1), ("\"\\u12\"", 1, 2), ("{\"a\":1,\n}", 2, 1), ("[\"é\", \"\\x\"]", 1, 9),
  ])
  func `an error names its place`(_ text: String, _ line: Int, _ column: Int) {
    // The line and column are the same, whatever precedes the slice.
    for padding in ["", "[\n\n  "] {
      let bytes = Array((padding + text).utf8)
      var scanner = JSONScanner(bytes[padding.utf8.count...])
      let error = #expect(throws: JSONSyntaxError.self) {
        _ = try scanner.value()
        try scanner.expectEnd()
      }
      #expect(error?.line == line)
      #expect(error?.column == column)
      #expect(error?.description.hasPrefix("line \(line), column \(column): ") == true)
      let before = text.utf8.prefix(error?.offset ?? 0)
      #expect(before.count { $0 == UInt8(ascii: "\n") } == line - 1)
    }
  }

  @Test func `the error names the first invalid byte`() {
    let text = Array("[\"ab".utf8) + [0xFF] + Array("\"]".utf8)
    var scanner = JSONScanner(text[...])
    let error = #expect(throws: JSONSyntaxError.self) { try scanner.value() }
    #expect(error?.offset == 4)
    #expect(error?.column == 5)
  }

  // MARK: Comparison with another parser

  /// Returns which documents Python's `json` accepts, or `nil` if there is no Python.
  ///
  /// Each document is a line of hexadecimal digits.
  private static func judgedByPython(_ documents: [[UInt8]]) throws -> [Bool]? {
    let script = """
      import json, sys
      def refuse(name): raise ValueError(name)
      def check(value):
          if isinstance(value, str): value.encode("utf-8")
          elif isinstance(value, list): [check(item) for item in value]
          elif isinstance(value, tuple): [check(item) for item in value]
          return value
      def judge(text):
          try:
              check(json.loads(text.decode("utf-8"), parse_constant=refuse, object_pairs_hook=tuple,
                  parse_int=float, parse_float=float))
              return "1"
          except (ValueError, RecursionError):
              return "0"
      print("".join(judge(bytes.fromhex(line)) for line in sys.stdin))
      """
    let run = try CommandRun(
      ["python3", "-c", script], input: documents.map { Hexadecimal.text(of: $0) + "\n" }.joined())
    // `env` exits with 127 if it finds no python3.
    guard run.status != 127 else { return nil }
    #expect(run.status == 0)
    return run.output.utf8.filter { $0 != UInt8(ascii: "\n") }.map { $0 == UInt8(ascii: "1") }
  }

  @Test func `mutated documents are judged as by Python`() throws {
    var random = SeededGenerator()
    let sources = (JSONScannerTests.accepted + JSONScannerTests.refused + [JSONScannerTests.richDocument]).map {
      Array($0.utf8)
    }
    let fragments =
      [
        "\"", "\\", "{", "}", "[", "]", ",", ":", "0", "1", "-", "+", ".", "e", "E", " ", "\n", "\t", "true", "null",
        "\\u", "\\ud800", "\\udc00", "a", "é", "🐄", "\u{0}", "\u{1F}", "/",
      ].map { Array($0.utf8) } + [[0x80], [0xC3], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xFF]]
    var documents: [[UInt8]] = sources
    while documents.count < 6_000 {
      var document = Array(
        random.element(of: random.integer(in: 0...3) > 0 ? JSONScannerTests.accepted : JSONScannerTests.refused).utf8)
      if random.integer(in: 0...5) == 0 { document = Array(JSONScannerTests.richDocument.utf8) }
      for _ in 0..<random.integer(in: 1...2) {
        let index = random.integer(in: 0...document.count)
        let stop = min(document.count, index + random.integer(in: 0...2))
        switch random.integer(in: 0...4) {
        case 0: document.removeSubrange(index..<stop)
        case 1: document.replaceSubrange(index..<stop, with: random.element(of: fragments))
        case 2: document.insert(contentsOf: random.element(of: fragments), at: index)
        case 3: document.insert(contentsOf: random.element(of: sources), at: index)
        default: if index < document.count { document[index] ^= 1 << UInt8(random.integer(in: 0...7)) }
        }
      }
      documents.append(document)
    }
    guard let expected = try JSONScannerTests.judgedByPython(documents) else { return }
    #expect(expected.count == documents.count)
    for (document, isJSON) in zip(documents, expected) where JSONScannerTests.accepts(document) != isJSON {
      Issue.record(
        "Python \(isJSON ? "accepts" : "refuses") \(String(decoding: document, as: UTF8.self).debugDescription)")
    }
    #expect(expected.count { $0 } > 500)
    #expect(expected.count { !$0 } > 500)
  }

  @Test func `foundation reads every accepted text`() throws {
    for text in JSONScannerTests.accepted where !["1e400", "-1e-400"].contains(text) {
      #expect(throws: Never.self, "\(text.debugDescription)") {
        try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
      }
    }
    let deepest = JSONScannerTests.nested(JSONScanner.maximumDepth, open: "[", close: "]")
    #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(deepest)) }
  }
}
