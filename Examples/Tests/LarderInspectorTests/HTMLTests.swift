import Testing

@testable import LarderInspector

@Suite("Markup")
struct HTMLTests {
  @Test func `text is escaped and literals are not`() {
    let text = "<script>alert(\"1\" & '2')</script>"
    let markup: HTML = "<p title=\"\(text)\">\(text)</p>"
    let escaped = "&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;"
    #expect(markup.text == "<p title=\"\(escaped)\">\(escaped)</p>")
  }

  @Test func `markup within markup is not escaped again`() {
    let parts: [HTML] = ["<b>\("<")</b>", "<i>\(1)</i>"]
    let nothing: HTML? = nil
    let markup: HTML = "<p>\(parts)\(nothing)</p>"
    #expect(markup.text == "<p><b>&lt;</b><i>1</i></p>")
  }

  @Test(
    "Characters that a page would not show are visible",
    arguments: [
      ("\u{0}", "\\u{0}"), ("\u{1B}", "\\u{1B}"), ("\u{202E}", "\\u{202E}"), ("\u{200B}", "\\u{200B}"),
      ("\u{FEFF}", "\\u{FEFF}"),
      ("\u{2066}", "\\u{2066}"), ("\r", "\\u{D}"), ("\u{85}", "\\u{85}"), ("\u{E0041}", "\\u{E0041}"),
      ("\u{FFFE}", "\\u{FFFE}"),
      ("é", "é"), ("😀", "😀"), ("\n", "\n"), ("\u{D7FF}", "\u{D7FF}"),
    ])
  func invisible(character: String, expected: String) {
    let markup: HTML = "\(character)"
    #expect(markup.text == expected)
  }
}
