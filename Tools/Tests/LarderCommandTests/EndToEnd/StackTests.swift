import Foundation
import Testing

@testable import LarderCommand
@testable import StoreAccess

/// Stores by the names of a configuration.
@Suite struct StackTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func write(_ text: String, to name: String) throws -> String {
    let path = folder.file(name)
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    return path
  }

  @Test(arguments: ["json", "yaml"]) func `a name stands for a URL`(_ form: String) async throws {
    let url = "json:\(folder.file("s.json"))"
    let text =
      form == "json"
      ? #"{"stores": {"people": {"url": "\#(url)", "cached": {"entries": 5}}}}"#
      : "stores:\n  people:\n    url: \"\(url)\"\n    cached: {entries: 5}\n"
    let config = try write(text, to: "app.\(form)")
    #expect(try await Tool.larder("--config", config, "set", "people", "ada", "1") == .done())
    #expect(try await Tool.larder("get", "people", "ada", "--config=\(config)") == .done("1\n"))
    #expect(try await Tool.larder("get", url, "ada") == .done("1\n"))
    #expect(
      try await Tool.larder("--config", config, "stack", "people")
        == .done("people: a store of the kind json:\n  cached: entries = 5\n  at \(url)\n"))
    // A key is not a name, and neither is what follows `--`.
    #expect(try await Tool.larder("--config", config, "set", "people", "people", "2") == .done())
    #expect(try await Tool.larder("get", url, "people") == .done("2\n"))
  }

  @Test func `mistakes are named`() async throws {
    let config = try write(
      #"{"stores": {"people": {"url": "json:s.json", "cachd": true}, "others": {"url": "what:"}}}"#, to: "app.json")
    for (arguments, text) in [
      (["--config", config, "list", "people"], "stores.people.cachd"),
      (["--config", config, "list", "none"], "stores.none.url is missing"),
      (["--config", config, "list", "others"], "the scheme what:"), (["stack", "people"], "needs --config"),
      (["--config", folder.file("missing.json"), "list", "people"], "cannot be read"),
      (["list", "people", "--config"], "--config needs the path"),
      (["--config", config, "--config", config, "list", "people"], "once"), (["list", "people"], "invalid store URL"),
    ] {
      let run = try await ToolRun.run(Tool.path, arguments, input: "")
      #expect(run.status == 64 && run.errors.contains(text), "\(arguments): \(run)")
    }
  }

  @Test func `the access of a stack and its limit are kept`() async throws {
    let url = "json:\(folder.file("s.json"))"
    let config = try write(
      #"""
      {"stores": {
        "readers": {"url": "\#(url)", "access": "readOnly"}, "existing": {"url": "\#(url)", "create": false},
        "limited": {"url": "\#(url)", "bounded": {"bytes": "1MB"}},
        "copied": {"url": "\#(url)", "tiered": {"cache": "others", "ttl": "1h"}},
        "moved": {"url": "\#(url)", "mirrored": {"secondary": "others"}}, "others": {"url": "json:others.json"}
      }}
      """#, to: "app.json")
    let missing = try await Tool.larder("--config", config, "set", "existing", "ada", "1")
    #expect(missing.status == 66 && !FileManager.default.fileExists(atPath: folder.file("s.json")), "\(missing)")
    #expect(try await Tool.larder("set", url, "ada", "1") == .done())
    #expect(try await Tool.larder("--config", config, "set", "existing", "ada", "2") == .done())
    for (name, text) in [
      ("readers", "only read"), ("limited", "the layer bounded"), ("copied", "the layer tiered"),
      ("moved", "the layer mirrored"),
    ] {
      let run = try await Tool.larder("--config", config, "set", name, "ada", "3")
      #expect(run.status == 64 && run.errors.contains(text), "\(run)")
      #expect(try await Tool.larder("--config", config, "get", name, "ada") == .done("2\n"))
    }
  }

  @Test func `without a name all is listed`() async throws {
    let run = try await Tool.larder("stack")
    #expect(run.status == 0)
    for text in ["sqlite:", "cached.entries: the most entries in memory; required", "queue.prefix", "encrypted.ring"] {
      #expect(run.output.contains(text), "\(run.output)")
    }
  }
}
