import Larder
import TestSupport
import Testing

@Suite struct StoreURLTests {
  @Test func `splits at the first colon and keeps the rest`() throws {
    for (text, scheme, location) in [
      ("json:users.json", "json", "users.json"), ("memory:", "memory", ""), ("json::x", "json", ":x"),
      ("json:C:\\a b%20c?d#e", "json", "C:\\a b%20c?d#e"), ("json:///tmp/x", "json", "///tmp/x"),
      ("json:../../x", "json", "../../x"),
      ("json: x ", "json", " x "), ("json:\u{301}x", "json", "\u{301}x"), ("json:\r\nx", "json", "\r\nx"),
      ("json:🐄", "json", "🐄"),
      ("json:e\u{301}", "json", "e\u{301}"),
    ] {
      let url = try StoreURL(text)
      #expect(url.scheme == scheme)
      #expect(url.location.utf8.elementsEqual(location.utf8))
      #expect(url.description.utf8.elementsEqual(text.utf8))
      #expect(url == StoreURL(scheme: scheme, location: location))
    }
  }

  @Test func `similar URLs are not equal`() {
    let composed = StoreURL(scheme: "json", location: "\u{E9}")
    let decomposed = StoreURL(scheme: "json", location: "e\u{301}")
    #expect(composed != decomposed)
    #expect(Set([composed, decomposed, composed]).count == 2)
    #expect(StoreURL(scheme: "a", location: "b:c") != StoreURL(scheme: "a:b", location: "c"))
  }

  @Test(arguments: ["", ":", ":x", "json", "users.json", "/tmp/x"]) func `text without a scheme is refused`(
    _ text: String
  ) {
    let error = expectStoreError(.invalidArgument) { try StoreURL(text) }
    #expect(error?.operation == .open)
  }
}
