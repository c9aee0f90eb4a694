import Larder
import Testing

@Suite struct JSONTextTests {
  @Test(arguments: [
    "9007199254740993", "18446744073709551616", "-0.0", "-0", "1e308", "1E+308", "1e400", "0.10",
    "1.0000000000000000001", "123456789012345678901234567890", "1e-400", "true", "null", "\"a  b\"", "\"\\u0041\\/\"",
    "{}", "[]",
  ])
  func `compact text stays unchanged`(_ text: String) throws {
    #expect(try JSONText(text).description == text)
    #expect(try JSONText("[\(text)]").description == "[\(text)]")
    #expect(try JSONText("{\"a\":\(text)}").description == "{\"a\":\(text)}")
  }

  @Test func `removes whitespace between tokens`() throws {
    let text = " {\t\"a b\" :\r\n [ 1 , \" x \\\" y \\\\\" , { } ] ,\n\"c\" : null } \n"
    #expect(try JSONText(text).description == #"{"a b":[1," x \" y \\",{}],"c":null}"#)
    #expect(try JSONText("  1  ").bytes == Array("1".utf8))
    #expect(try JSONText("\" \\\\\" ").description == "\" \\\\\"")
    #expect(try JSONText(#"[ "\\" , "\"" , " " ]"#).description == #"["\\","\""," "]"#)
  }

  @Test func `compacted text is stable`() throws {
    let text = try JSONText("[ 1, {\"a\": [ ] } ]")
    #expect(try JSONText(text.bytes) == text)
    #expect(try JSONText(text.description) == text)
  }

  @Test(arguments: ["", " ", "{", "1 2", "nul", "\"\\ud800\"", "[1,]", "{\"a\":1}x", "\u{FEFF}1"])
  func `refuses text other than one value`(_ text: String) {
    #expect(throws: JSONSyntaxError.self) { try JSONText(text) }
  }

  @Test func `refuses bytes that are not UTF8`() {
    #expect(throws: JSONSyntaxError.self) { try JSONText([0x22, 0xFF, 0x22]) }
    #expect(throws: JSONSyntaxError.self) { try JSONText([0xEF, 0xBB, 0xBF, 0x31]) }
  }

  @Test func `strings are written and read`() throws {
    let texts = [
      "", "a", "\"\\/", "\u{0}\u{1F}\n\r\t\u{7F}", "é", "e\u{301}", "🐄", "\u{2028}",
      String(repeating: "x", count: 100_000),
    ]
    for text in texts {
      let json = JSONText(string: text)
      let read = try json.string()
      #expect(read.map { Array($0.utf8) } == Array(text.utf8))
      #expect(try JSONText(json.bytes) == json)
    }
    #expect(try JSONText("\"\\u00e9\"").string() == "é")
    for other in ["1", "null", "[\"a\"]", "{\"a\":1}"] {
      #expect(try JSONText(other).string() == nil)
    }
  }

  @Test func `returns the members of an object`() throws {
    let members = try JSONText(#"{ "b" : [ 1 ] , "a" : {"x" : 2} , "b" : null, "\u00e9":"" }"#).members()
    #expect(members?.map(\.name) == ["b", "a", "b", "é"])
    #expect(members?.map(\.value.description) == ["[1]", "{\"x\":2}", "null", "\"\""])
    #expect(try members?[1].value.members()?.map(\.name) == ["x"])
    #expect(try JSONText("{}").members()?.isEmpty == true)
    for other in ["1", "null", "[]", "\"{}\""] {
      #expect(try JSONText(other).members() == nil)
    }
  }

  @Test func `equal means the same bytes`() throws {
    #expect(try JSONText("1.0") != JSONText("1"))
    #expect(try JSONText("\"\u{E9}\"") != JSONText("\"e\u{301}\""))
    #expect(try JSONText("[ 1 ]") == JSONText("[1]"))
    #expect(try JSONText("[ 1 ]").hashValue == JSONText("[1]").hashValue)
  }
}
