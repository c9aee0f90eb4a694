import Larder
import LarderTesting
import TestSupport
import Testing

@Suite struct JSONIndentingTests {
  @Test(
    "JSON is indented by two spaces for each level",
    arguments: [
      (
        #"{"a":[1,{"b":null}],"c":"x, {y}","d":{},"e":[]}"#,
        """
        {
          "a": [
            1,
            {
              "b": null
            }
          ],
          "c": "x, {y}",
          "d": {},
          "e": []
        }
        """
      ),
      (#""\"\\""#, #""\"\\""#), ("-1.50e+07", "-1.50e+07"), ("[]", "[]"), ("true", "true"),
    ])
  func indenting(json: String, expected: String) throws {
    #expect(try JSONText(json).indented == expected)
  }

  @Test func `parts have their kinds`() throws {
    var parts: [(JSONText.Part, String)] = []
    try JSONText(#"{"a":"b","c":[1,true]}"#).forEachPart { parts.append(($0, String(decoding: $1, as: UTF8.self))) }
    func texts(_ kind: JSONText.Part) -> [String] { parts.filter { $0.0 == kind }.map(\.1) }
    #expect(texts(.name) == [#""a""#, #""c""#])
    #expect(texts(.string) == [#""b""#])
    #expect(texts(.number) == ["1"])
    #expect(texts(.literal) == ["true"])
    #expect(texts(.punctuation).joined() == "{:,:[,]}")
  }

  @Test func `deep text is indented and stays the same value`() throws {
    for json in [String(repeating: "[", count: 500) + String(repeating: "]", count: 500), #"["\u0022]",{"\\":[[]]}]"#] {
      let text = try JSONText(json)
      #expect(try JSONText(text.indented) == text)
    }
  }
}
