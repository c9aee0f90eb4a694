import Foundation
import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite("JSON for people")
struct JSONStyleTests {
  private func text(_ json: String, _ style: JSONStyle) -> String {
    var bytes: [UInt8] = []
    style.append(Array(json.utf8), to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test(
    arguments: [
      (true, [:], JSONStyle.terminal), (true, ["NO_COLOR": ""], .terminal), (true, ["NO_COLOR": "1"], .plain),
      (true, ["TERM": "dumb"], .plain), (false, [:], .plain), (false, ["TERM": "xterm"], .plain),
    ] as [(Bool, [String: String], JSONStyle)])
  func `only a terminal with colors has them`(isTerminal: Bool, environment: [String: String], style: JSONStyle) {
    #expect(JSONStyle(isTerminal: isTerminal, environment: environment) == style)
  }

  @Test func `plain JSON is unchanged`() {
    let line = #"{"key":"a","value":[1.50,"\u{9B}"]}"#
    #expect(text(line, .plain) == line)
  }

  @Test func `at a terminal JSON is indented and colored`() {
    let expected = """
      {
        \u{1B}[34;1m"a"\u{1B}[0m: [
          \u{1B}[33m1.50\u{1B}[0m,
          \u{1B}[32m"x"\u{1B}[0m
        ]
      }
      """
    #expect(text(#"{"a":[1.50,"x"]}"#, .terminal) == expected)
  }

  /// A value must not move the cursor or turn the text around.
  @Test func `control characters are escaped at a terminal`() {
    #expect(text("\"\u{9B}2J\u{202E}\u{7F}\"", .terminal) == "\u{1B}[32m\"\\u009b2J\\u202e\\u007f\"\u{1B}[0m")
  }

  @Test func `sizes are readable`() {
    #expect(ReadableSize.text(999) == nil)
    #expect(
      [1000, 1234, 9_960, 12_345, 999_600, 5_000_000_000].map { ReadableSize.text($0) } == [
        "1.0 kB", "1.2 kB", "10 kB", "12 kB", "1.0 MB", "5.0 GB",
      ])
  }

  @Test func `the overview fits a screen and names every verb`() async throws {
    let lines = Overview.text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count < 24)
    #expect(lines.allSatisfy { $0.count <= 80 })
    #expect(Overview.groups.flatMap(\.verbs).sorted() == LarderCommand.verbs.sorted())
    #expect(try await Tool.larder() == ToolRun(status: 0, output: Overview.text + "\n", errors: ""))
  }
}
