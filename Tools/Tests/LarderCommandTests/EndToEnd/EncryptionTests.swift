import Foundation
import Larder
import Testing

@testable import LarderCommand
@testable import StoreAccess

/// Encrypted stores and key rings.
@Suite struct EncryptionTests {
  private let folder: TemporaryFolder
  private let ring: String
  private let keys: [String]

  init() throws {
    folder = try TemporaryFolder()
    ring = "file:\(folder.path)/keys.json"
    keys = ["--key-ring", ring, "--purpose", "users"]
  }

  /// Runs `larder` with the key ring.
  private func larder(_ arguments: String..., input: String = "") async throws -> ToolRun {
    try await ToolRun.run(Tool.path, arguments + keys, input: input)
  }

  private func createRing() async throws -> String {
    let run = try await Tool.larder("keyring", "create", ring)
    #expect(run.status == 0, "\(run)")
    return run.output.trimmingCharacters(in: .newlines)
  }

  @Test(arguments: StoreKind.allCases)
  func `encrypted values need the ring`(kind: StoreKind) async throws {
    let url = kind.url(in: folder)
    _ = try await createRing()
    #expect(try await larder("set", url, "ada", "{\"name\":\"marked-value\"}") == .done())
    #expect(try await larder("get", url, "ada") == .done("{\"name\":\"marked-value\"}\n"))
    #expect(try await Tool.larder("count", url) == .done("1\n"))
    #expect(try await Tool.larder("stat", url).output.contains("+cose\n"))
    #expect(try await Tool.larder("list", url, "--keys") == .done("{\"key\":\"ada\"}\n"))
    #expect(
      try await Tool.larder("get", url, "ada").failed(
        77, "Give the key ring of the values with --key-ring and --purpose"))
    #expect(try await Tool.larder("set", url, "bob", "1").failed(77, "--key-ring"))
    let other = try await Tool.larder("get", url, "ada", "--key-ring", ring, "--purpose", "guests")
    #expect(other.failed(65, "another entry or purpose"), "\(other)")
    for file in try FileManager.default.subpathsOfDirectory(atPath: folder.path) {
      let data = FileManager.default.contents(atPath: "\(folder.path)/\(file)") ?? Data()
      #expect(data.range(of: Data("marked-value".utf8)) == nil, "\(file)")
    }
    // A ring that another one has replaced does not have the key.
    try FileManager.default.moveItem(atPath: "\(folder.path)/keys.json", toPath: "\(folder.path)/old.json")
    _ = try await createRing()
    #expect(try await larder("get", url, "ada").failed(77, "which the key ring does not have"))
    let old = try await Tool.larder(
      "get", url, "ada", "--key-ring", "file:\(folder.path)/old.json", "--purpose", "users")
    #expect(old == .done("{\"name\":\"marked-value\"}\n"))
  }

  @Test func `a ring of encrypted values is neither ignored nor guessed`() async throws {
    let url = StoreKind.json.url(in: folder)
    #expect(try await larder("set", url, "a", "1").failed(66, "no key ring"))
    _ = try await createRing()
    #expect(try await Tool.larder("keyring", "create", ring).failed(64, "is a key ring already"))
    #expect(try await Tool.larder("set", url, "a", "1") == .done())
    #expect(try await larder("set", url, "a", "2").failed(64, "are not encrypted"))
    #expect(try await larder("get", url, "a") == .done("1\n"))
    #expect(try await Tool.larder("get", url, "a", "--key-ring", ring).failed(64, "--purpose"))
    #expect(try await Tool.larder("get", url, "a", "--purpose", "x").failed(64, "--key-ring"))
    #expect(
      try await Tool.larder("get", url, "a", "--key-ring", "keys.json", "--purpose", "x").failed(64, "--key-ring"))
    // A copy encrypts, with deadlines inside.
    let sessions = "json:\(folder.path)/sessions.json"
    let secret = "json:\(folder.path)/secret.json"
    #expect(try await Tool.larder("set", sessions, "a", "1", "--ttl", "1h") == .done())
    #expect(try await larder("copy", sessions, secret).status == 0)
    #expect(try await larder("get", secret, "a") == .done("1\n"))
    #expect(try await Tool.shell("grep -c 'json+expiring+cose' \"$1\"", "\(folder.path)/secret.json").output == "1\n")
  }

  @Test func `values are encrypted again after a rotation`() async throws {
    let url = StoreKind.lmdb.url(in: folder)
    let first = try await createRing()
    let lines = (0..<600).map { "{\"key\":\"\($0)\",\"value\":\($0)}\n" }.joined()
    #expect(try await larder("import", url, input: lines).status == 0)
    let rotation = try await Tool.larder("keyring", "rotate", ring)
    let second = rotation.output.trimmingCharacters(in: .newlines)
    #expect(try await larder("set", url, "new", "1") == .done())
    let list = try await Tool.shell("larder keyring list $1 $2 | jq -c '[.key, .isPrimary, .stores[]]'", ring, url)
    #expect(list.output == "[\"\(first)\",false,600]\n[\"\(second)\",true,1]\n", "\(list)")
    let removal = try await Tool.larder("keyring", "remove", ring, first, url)
    #expect(removal.failed(65, "600 entries of"), "\(removal)")
    let run = try await larder("reencrypt", url, "--progress", "--metrics")
    #expect(run.status == 0 && run.output.split(separator: "\n").count == 4, "\(run)")
    #expect(run.errors.contains("update"), "\(run)")
    #expect(run.output.hasSuffix("}\n") && run.output.contains("{\"examined\":601,\"failed\":0,\"cursor\":"))
    #expect(try await Tool.larder("keyring", "remove", ring, first, url) == .done())
    #expect(try await larder("get", url, "17") == .done("17\n"))
    #expect(try await Tool.larder("keyring", "remove", ring, second, url).failed(65, "need the key"))
    #expect(try await Tool.larder("keyring", "remove", ring, second, "--no-stores").failed(64, "primary key"))
    #expect(try await Tool.larder("reencrypt", url).failed(64, "--key-ring"))
  }

  @Test(arguments: StoreKind.allCases)
  func `a writer with another purpose or ring is refused`(kind: StoreKind) async throws {
    let url = kind.url(in: folder)
    _ = try await createRing()
    #expect(try await larder("set", url, "ada", "1") == .done())
    let guests = try await Tool.larder("set", url, "bob", "2", "--key-ring", ring, "--purpose", "guests")
    #expect(guests.failed(65, "another entry or purpose"), "\(guests)")
    let other = "file:\(folder.path)/other.json"
    #expect(try await Tool.larder("keyring", "create", other).status == 0)
    let line = "{\"key\":\"bob\",\"value\":2}\n"
    let imported = try await Tool.larder("import", url, "--key-ring", other, "--purpose", "users", input: line)
    #expect(imported.failed(77, "which the key ring does not have"), "\(imported)")
    #expect(try await larder("list", url) == .done("{\"key\":\"ada\",\"value\":1}\n"))
  }

  @Test func `values whose key is lost are listed`() async throws {
    let url = StoreKind.lmdb.url(in: folder)
    _ = try await createRing()
    #expect(try await larder("set", url, "ada", "1") == .done())
    #expect(try await larder("verify", url) == ToolRun(status: 0, output: "", errors: "1 entry, no damage\n"))
    #expect(try await Tool.larder("keyring", "rotate", ring).status == 0)
    #expect(try await larder("set", url, "bob", "2") == .done())
    let first = try await Tool.shell("larder keyring list $1 | jq -r 'select(.isPrimary | not).key'", ring).output
    let lost = first.trimmingCharacters(in: .newlines)
    #expect(try await Tool.larder("keyring", "remove", ring, lost, "--no-stores") == .done())
    let run = try await larder("verify", url)
    #expect(run.status == 2 && run.output.contains("its encryption key is not available"), "\(run)")
  }

  private static let notExamined = "the values are encrypted and were not examined\n"

  /// Without their keys, encrypted values are moved as they are stored.
  @Test(arguments: StoreKind.pairs(for: "encryptedValuesAreMovedWithoutTheirKeys"))
  func encryptedValuesAreMovedWithoutTheirKeys(from kind: StoreKind, to other: StoreKind) async throws {
    let url = kind.url(in: folder)
    _ = try await createRing()
    #expect(try await larder("set", url, "ada", "1.5") == .done())
    #expect(try await larder("set", url, "bob", "[2]") == .done())
    let before = try await larder("export", url)
    let verified = try await Tool.larder("verify", url)
    #expect(verified == ToolRun(status: 0, output: "", errors: "2 entries, no damage; " + Self.notExamined))
    for verb in ["copy", "salvage"] {
      let moved = other.url(verb, in: folder)
      let run = try await Tool.larder(verb, url, moved)
      #expect(run.status == 0 && run.errors.hasSuffix("; " + Self.notExamined), "\(run)")
      #expect(try await larder("export", moved) == before)
      #expect(try await larder("verify", moved).errors == "2 entries, no damage\n")
    }
    // Nothing can be converted without keys, and nothing is created.
    let converted = try await Tool.larder("copy", url, other.url("converted", in: folder), "--codec", "json")
    #expect(converted.failed(77, "--key-ring"), "\(converted)")
    #expect(try folder.names().filter { $0.hasPrefix("converted") } == [])
    // With the ring, values are encrypted with its primary key.
    let rotated = try await Tool.larder("keyring", "rotate", ring).output.trimmingCharacters(in: .newlines)
    let again = other.url("again", in: folder)
    #expect(try await larder("copy", url, again).status == 0)
    let used = try await Tool.shell("larder keyring list $1 $2 | jq -r 'select(.stores[] == 2).key'", ring, again)
    #expect(used == .done("\(rotated)\n"))
  }

  @Test func `damage is found without the keys`() async throws {
    let (url, rescued) = (StoreKind.json.url(in: folder), StoreKind.json.url("rescued", in: folder))
    _ = try await createRing()
    for key in ["ada", "bob", "eve"] { #expect(try await larder("set", url, key, "1") == .done()) }
    #expect(try await larder("compact", url) == .done())
    let path = folder.file("store.json")
    let text = try String(contentsOfFile: path, encoding: .utf8)
    try text.replacing("\"bob\"", with: "\"bob").write(toFile: path, atomically: true, encoding: .utf8)
    let run = try await Tool.larder("verify", url)
    #expect(run.status == 2 && run.output.contains("damaged"), "\(run)")
    #expect(try await Tool.larder("salvage", url, rescued).status == 2)
    #expect(try await larder("get", rescued, "ada") == .done("1\n"))
  }

  @Test func `deadlines inside the encryption are moved unseen`() async throws {
    let (url, moved) = (StoreKind.lmdb.url(in: folder), StoreKind.sqlite.url("moved", in: folder))
    _ = try await createRing()
    #expect(try await larder("set", url, "ada", "1", "--ttl", "1h") == .done())
    #expect(try await larder("set", url, "bob", "2", "--ttl", "1ms") == .done())
    #expect(try await Tool.larder("copy", url, moved).errors.hasPrefix("copied 2 entries"))
    #expect(try await larder("list", moved) == .done("{\"key\":\"ada\",\"value\":1}\n"))
    #expect(try await larder("stat", moved).output.firstMatch(of: /expired entries +1\n/) != nil)
  }

  @Test func `keys of a backup are added back`() async throws {
    let url = StoreKind.json.url(in: folder)
    let first = try await createRing()
    let backup = "file:\(folder.path)/backup.json"
    #expect(try await larder("set", url, "ada", "1") == .done())
    try FileManager.default.copyItem(atPath: folder.file("keys.json"), toPath: folder.file("backup.json"))
    #expect(try await Tool.larder("keyring", "rotate", ring).status == 0)
    #expect(try await Tool.larder("keyring", "remove", ring, first, "--no-stores") == .done())
    #expect(try await larder("get", url, "ada").failed(77, "which the key ring does not have"))
    #expect(try await Tool.larder("keyring", "add", ring, backup) == .done("\(first)\n"))
    #expect(try await Tool.larder("keyring", "add", ring, backup) == .done())
    #expect(try await larder("get", url, "ada") == .done("1\n"))
    // A container mounts a ring that others can read.
    try FileManager.default.setAttributes([.posixPermissions: 0o444], ofItemAtPath: folder.file("backup.json"))
    #expect(try await Tool.larder("keyring", "list", backup).failed(77, "mounted secret"))
    let secret = "mounted-secret:\(folder.path)/backup.json"
    #expect(try await Tool.larder("keyring", "list", secret).output.contains(first))
    #expect(try await Tool.larder("keyring", "rotate", secret).failed(64, "cannot be changed"))
  }

  @Test func `encrypting again keeps versions and deadlines`() async throws {
    let url = "json:\(folder.path)/sessions.json"
    _ = try await createRing()
    #expect(try await larder("set", url, "ada", "{\"n\":1.50}", "--ttl", "1h") == .done())
    let before = try await larder("export", url)
    #expect(before.output.contains("1.50"))
    #expect(try await Tool.larder("keyring", "rotate", ring).status == 0)
    let run = try await larder("reencrypt", url)
    #expect(run.status == 0 && run.output.contains("{\"examined\":1,\"failed\":0"), "\(run)")
    #expect(try await larder("export", url) == before)
    let counts = try await Tool.shell("larder keyring list $1 $2 | jq -c '.stores[]'", ring, url)
    #expect(counts == .done("0\n1\n"), "\(counts)")
  }

  @Test func `dead letters keep their key`() async throws {
    let url = "queue:\(folder.path)/mail"
    let first = try await createRing()
    #expect(try await larder("queue", "enqueue", url, "{\"to\":\"ada\"}", "--id", "a").status == 0)
    #expect(try await larder("queue", "receive", url).output.contains("{\"to\":\"ada\"}"))
    // A consumer without the keys takes nothing.
    #expect(try await Tool.larder("queue", "enqueue", url, "1").failed(77, "--key-ring"))
    _ = try await Tool.larder("keyring", "rotate", ring)
    let removal = try await Tool.larder("keyring", "remove", ring, first, url)
    #expect(removal.failed(65, "1 entry of"), "\(removal)")
  }

  @Test func `a queue in an encrypted store is encrypted`() async throws {
    let url = StoreKind.lmdb.url("queues", in: folder)
    let first = try await createRing()
    #expect(try await larder("queue", "enqueue", url, "\"marked-value\"", "--prefix", "q/").status == 0)
    #expect(try await larder("queue", "receive", url, "--prefix", "q/").output.contains("\"marked-value\""))
    #expect(try await Tool.larder("queue", "receive", url, "--prefix", "q/").failed(77, "--key-ring"))
    #expect(try await Tool.larder("stat", url).output.contains("raw+cose\n"))
    let data = try Data(contentsOf: URL(fileURLWithPath: folder.file("queues.lmdb/data.mdb")))
    #expect(data.firstRange(of: Data("marked-value".utf8)) == nil)
    _ = try await Tool.larder("keyring", "rotate", ring)
    #expect(try await Tool.larder("keyring", "remove", ring, first, url).failed(65, "entries of"))
  }

  @Test func `a password comes from a file and never from an argument`() async throws {
    let url = StoreKind.json.url(in: folder)
    let password = try folder.write("correct horse\n", to: "password")
    let wrong = try folder.write("wrong horse\n", to: "wrong")
    let place = "password-file:\(folder.path)/keys.jwe"
    #expect(try await Tool.larder("keyring", "create", place, "--password-file", password).status == 0)
    let options = ["--key-ring", place, "--purpose", "users"]
    let set = try await ToolRun.run(
      Tool.path, ["set", url, "a", "1", "--password-file", password] + options)
    #expect(set == .done())
    let get = try await ToolRun.run(Tool.path, ["get", url, "a", "--password-file", wrong] + options)
    #expect(get.failed(77, "password"), "\(get)")
    // An editor of another system has saved the password.
    let crlf = try folder.write("correct horse\r\n", to: "crlf")
    #expect(try await ToolRun.run(Tool.path, ["get", url, "a", "--password-file", crlf] + options) == .done("1\n"))
    // There is no terminal to ask.
    let asked = try await Tool.shell(
      "setsid \"$1\" get \"$2\" a --key-ring \"$3\" --purpose users", Tool.path, url, place)
    #expect(asked.failed(64, "--password-file"), "\(asked)")
    #expect(try await larder("get", url, "a", "--password-file", password).failed(64, "only for a password-file:"))
    #expect(try await Tool.larder("get", url, "a", "--password-file", password).failed(64, "needs --key-ring"))
  }
}
