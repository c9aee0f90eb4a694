import Foundation
import Larder
import Testing

@testable import LarderCommand
@testable import StoreAccess

/// Tests `larder edit` with shell commands in place of an editor.
@Suite struct EditTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  /// Edits the value of `k`, with the folder for temporary files in the folder of the test.
  private func edit(_ url: String, with editor: String, _ arguments: String = "") async throws -> ToolRun {
    try await Tool.shell(
      "export TMPDIR=\"$1\" EDITOR=\"$2\" VISUAL=; larder edit \"$3\" k $4", folder.path, editor, url, arguments)
  }

  /// The files with texts that were not stored.
  private func texts() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix("larder-") }
  }

  @Test(arguments: StoreKind.allCases) func `the edited text is stored`(kind: StoreKind) async throws {
    let url = kind.url(in: folder)
    #expect(try await Tool.larder("set", url, "k", #"{"a":[1,{"b":"x,{\"}"}],"c":{},"d":1.50}"#).status == 0)
    let stored = try await Tool.larder("get", url, "k").output
    let seen = folder.file("seen")
    let editor = "sh -c 'cp -p \"$1\" \"\(seen)\"; sed -i.old s/x,/y,/ \"$1\"; rm \"$1.old\"' sh"
    #expect(try await edit(url, with: editor) == .done())
    let text = try String(contentsOfFile: seen, encoding: .utf8)
    #expect(text.hasPrefix("{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x,{\\\"}\"\n    }\n  ],\n  \"c\": {},\n"))
    let mode = try FileManager.default.attributesOfItem(atPath: seen)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    #expect(try await Tool.larder("get", url, "k").output == stored.replacing("x,", with: "y,"))
    #expect(try texts().isEmpty)
  }

  @Test func `an unchanged or empty text is not stored`() async throws {
    let url = StoreKind.json.url(in: folder)
    #expect(try await Tool.larder("set", url, "k", "1").status == 0)
    #expect(try await edit(url, with: "true") == .done())
    #expect(try await edit(url, with: ": >") == .done())
    #expect(try await Tool.larder("get", url, "k").output == "1\n")
    #expect(try texts().isEmpty)
  }

  @Test func `a missing entry is created in an existing store`() async throws {
    let url = StoreKind.json.url(in: folder)
    #expect(try await edit(url, with: "echo 1 >").status == 66)
    #expect(try await Tool.larder("set", url, "other", "1").status == 0)
    #expect(try await edit(url, with: "echo 2 >") == .done())
    #expect(try await Tool.larder("get", url, "k").output == "2\n")
  }

  @Test func `a text that is not stored is kept`() async throws {
    let url = StoreKind.json.url(in: folder)
    #expect(try await Tool.larder("set", url, "k", "1").status == 0)
    let invalid = try await edit(url, with: "echo '{' >")
    let kept = try #require(try texts().first)
    #expect(invalid.status == 65)
    #expect(
      invalid.errors.hasSuffix("Nothing was changed. Your text is in \(folder.file(kept)).\n"), "\(invalid.errors)")
    #expect(try String(contentsOfFile: folder.file(kept), encoding: .utf8) == "{\n")
    let failed = try await edit(url, with: "false")
    #expect(failed.status == 70 && failed.errors.contains("the editor failed"))
    #expect(try await Tool.larder("get", url, "k").output == "1\n")
  }

  @Test(arguments: StoreKind.allCases) func `a change in the meantime is a conflict`(kind: StoreKind) async throws {
    let url = kind.url(in: folder)
    #expect(try await Tool.larder("set", url, "k", "1").status == 0)
    // The store is not open while the editor runs.
    let run = try await edit(url, with: "'\(Tool.path)' set '\(url)' k 2; echo 3 >")
    #expect(run.status == 75)
    #expect(run.errors.contains("another program has changed the value since it was read. Your text is in "))
    #expect(try await Tool.larder("get", url, "k").output == "2\n")
  }

  @Test func `deadlines stay and interrupts reach only the editor`() async throws {
    let url = StoreKind.json.url(in: folder)
    let path = String(url.dropFirst("json:".count))
    func storedEntry() throws -> String {
      let text = try String(contentsOfFile: path, encoding: .utf8)
      return try String(#require(text.split(separator: "\n").first { $0.hasPrefix("\"k\"") }))
    }
    #expect(try await Tool.larder("set", url, "k", "1", "--ttl", "1h").status == 0)
    let entry = try storedEntry()
    #expect(try await edit(url, with: "kill -INT $PPID; echo 2 >") == .done())
    #expect(try storedEntry() == entry.replacing("\"value\":1", with: "\"value\":2"))
  }

  @Test func `the path may have quotes`() async throws {
    let url = StoreKind.json.url(in: folder)
    #expect(try await Tool.larder("set", url, "k", "1").status == 0)
    let quoted = folder.file("it's $HOME")
    try FileManager.default.createDirectory(atPath: quoted, withIntermediateDirectories: false)
    let run = try await Tool.shell(
      "export TMPDIR=\"$1\" EDITOR='echo 2 >'; larder edit \"$2\" k", quoted, url)
    #expect(run == .done())
    #expect(try await Tool.larder("get", url, "k").output == "2\n")
  }
}
