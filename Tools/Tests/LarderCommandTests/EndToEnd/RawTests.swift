import Foundation
import Larder
import LarderCBOR
import Testing

@testable import LarderCommand
@testable import StoreAccess

/// Tests of `--raw`, for text and bytes without JSON.
@Suite struct RawTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  @Test(arguments: StoreKind.allCases) func `raw text has no quotes`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("set", store, "k", "say \"hi\" 🦦\n", "--raw") == .done())
    #expect(try await Tool.larder("get", store, "k") == .done(#""say \"hi\" 🦦\n""# + "\n"))
    #expect(try await Tool.larder("get", store, "k", "--raw") == .done("say \"hi\" 🦦\n"))
    #expect(try await Tool.larder("set", store, "n", "[1]") == .done())
    #expect(try await Tool.larder("get", store, "n", "--raw") == .done("[1]"))
  }

  @Test func `raw bytes round trip`() async throws {
    let store = "lmdb:\(folder.file("raw"))"
    let program = try await Stores.registry.open(store, codec: .raw)
    try await program.close()
    let line =
      #"head -c 3000 /dev/urandom >"$1"; larder set "$2" k - --raw <"$1" && larder get "$2" k --raw | cmp - "$1""#
    #expect(try await Tool.shell(line, folder.file("bytes"), store) == .done())
    let text = "json:\(folder.file("text.json"))"
    #expect(try await Tool.shell(#"printf '\377' | larder set "$1" k - --raw"#, text).failed(65, "is not UTF-8"))
  }

  @Test func `raw byte strings of CBOR round trip`() async throws {
    let store = "lmdb:\(folder.file("raw"))"
    // For a new key, bytes that are not UTF-8 become a byte string.
    let line = #"printf '\377\0' | larder set "$1" new - --raw && larder get "$1" new --raw | od -An -tx1 | tr -d ' '"#
    #expect(try await Tool.shell(line, store) == .done("ff00\n"))
    #expect(try await Tool.larder("get", store, "new") == .done("{\"$base64\":\"/wA=\"}\n"))
    // Values that a program wrote as Data and [UInt8] stay byte strings, even if they are UTF-8.
    let program = try await Stores.registry.open(store, codec: .cbor(Data.self))
    try await program.setValue(Data("data".utf8), forKey: "data")
    try await program.close()
    let array = try await Stores.registry.open(store, codec: .cbor([UInt8].self))
    try await array.setValue(Array("array".utf8), forKey: "array")
    try await array.close()
    for key in ["data", "array"] {
      #expect(try await Tool.larder("get", store, key, "--raw") == .done(key))
      let edit = #"larder get "$1" "$2" --raw | tr a A | larder set "$1" "$2" - --raw"#
      #expect(try await Tool.shell(edit, store, key) == .done())
      #expect(try await Tool.larder("get", store, key, "--raw") == .done(key.replacing("a", with: "A")))
    }
    #expect(try await Tool.larder("get", store, "data") == .done("{\"$base64\":\"ZEF0QQ==\"}\n"))
    #expect(
      try await Tool.larder("get", store, "array") == .done("{\"$tag\":64,\"$value\":{\"$base64\":\"QXJyQXk=\"}}\n"))
    // Any other value becomes text, and other tags stay JSON.
    #expect(try await Tool.larder("set", store, "text", "1") == .done())
    #expect(try await Tool.larder("set", store, "text", "hi", "--raw") == .done())
    #expect(try await Tool.larder("get", store, "text") == .done("\"hi\"\n"))
    let tagged = "{\"$tag\":37,\"$value\":{\"$base64\":\"AQID\"}}"
    #expect(try await Tool.larder("set", store, "tagged", tagged) == .done())
    #expect(try await Tool.larder("get", store, "tagged", "--raw") == .done(tagged))
    // In a store with the codec json, the tagged object is a plain object.
    let text = "json:\(folder.file("text.json"))"
    #expect(try await Tool.larder("set", text, "k", "{\"$base64\":\"AQID\"}") == .done())
    #expect(try await Tool.larder("get", text, "k", "--raw") == .done("{\"$base64\":\"AQID\"}"))
  }
}
