import Larder
import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct EntryParserTests {
  private func parse(_ line: String, key: String? = nil) throws -> StoreEntry<JSONText> {
    try EntryParser(keyField: key).entry(of: Array(line.utf8)[...])
  }

  @Test func `a line consists of a key and a value`() throws {
    #expect(try parse(#" {"key":"a","value":[1, 2.50]} "#) == StoreEntry(key: "a", value: JSONText("[1,2.50]")))
    #expect(try parse(#"{"value":null,"key":"\u00e9\/"}"#) == StoreEntry(key: "é/", value: JSONText("null")))
    #expect(
      try parse(#"{"keyBytes":"80C0","value":0}"#)
        == StoreEntry(key: StoreKey(bytes: [0x80, 0xC0] as [UInt8]), value: JSONText("0")))
  }

  @Test func `a field becomes the key and the object the value`() throws {
    let line = #"{"id":"x","n":9007199254740993}"#
    #expect(try parse(line, key: "id") == StoreEntry(key: "x", value: JSONText(line)))
    #expect(try parse(line, key: "n").key == "9007199254740993")
    #expect(try parse(#"{"n":-12}"#, key: "n").key == "-12")
    // Composed and decomposed é are different fields.
    #expect(try parse("{\"e\u{301}\":\"two\",\"\u{E9}\":\"one\"}", key: "\u{E9}").key == "one")
  }

  @Test(arguments: [
    ("foo", "it is not JSON: column 1: expected a value"), ("[1]", "it is not a JSON object"),
    (#"{"value":1}"#, "it has no key"), (#"{"key":"a"}"#, "it has no value"),
    (#"{"key":1,"value":1}"#, "its key is not a string"),
    (#"{"key":"a","keyBytes":"61","value":1}"#, "it has both key and keyBytes"),
    (#"{"keyBytes":"6","value":1}"#, "its keyBytes is not a string of pairs of hexadecimal digits"),
    (#"{"keyBytes":6,"value":1}"#, "its keyBytes is not a string of pairs of hexadecimal digits"),
    (#"{"key":"a","key":"b","value":1}"#, "it has the field 'key' twice"),
    (#"{"key":"a","value":1,"value":2}"#, "it has the field 'value' twice"),
    (
      #"{"key":"a","value":1,"ttl":2}"#,
      "it has an unknown field 'ttl'; to import whole objects, give --key FIELD"
    ),
    (#"{"key":"","value":1}"#, "its key is empty"),
    ("{\"key\":\"\(String(repeating: "k", count: 512))\",\"value\":1}", "its key has 512 bytes; the maximum is 511"),
  ])
  func `a line that is not an entry is bad`(line: String, reason: String) {
    #expect(throws: BadLine(reason)) { try parse(line) }
  }

  @Test(arguments: [
    (#"{"b":"x"}"#, "it has no field 'id'"), (#"{"id":1.5}"#, "its field 'id' is neither a string nor an integer"),
    (#"{"id":1e3}"#, "its field 'id' is neither a string nor an integer"),
    (#"{"id":null}"#, "its field 'id' is neither a string nor an integer"),
    (#"{"id":["a"]}"#, "its field 'id' is neither a string nor an integer"),
    (#"{"id":"a","id":"b"}"#, "it has the field 'id' twice"), (#"{"id":""}"#, "its key is empty"),
    ("[]", "it is not a JSON object"),
  ])
  func `an object without a usable field is bad`(line: String, reason: String) {
    #expect(throws: BadLine(reason)) { try parse(line, key: "id") }
  }

  @Test func `printed lines are parsed again`() throws {
    for key: StoreKey in ["a", "\"\\\n\0\u{7F}é", StoreKey(bytes: [0x80, 0x00] as [UInt8]), "k/../x", "🦦"] {
      let value = try JSONText(#"{"a":[-0.0,1e308,9007199254740993,null,"\u0000"]}"#)
      var line: [UInt8] = []
      EntryLine.append(key: key, value: value, to: &line)
      #expect(try EntryParser().entry(of: line[...]) == StoreEntry(key: key, value: value))
    }
  }
}
