import Foundation
import Testing

/// The behavior of verbs that is specific to `compressed:` stores.
@Suite struct CompressedTests {
  private let folder: TemporaryFolder
  private let store: String
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    store = StoreKind.compressed.url(in: folder)
    path = folder.file(StoreKind.compressed.fileName())
  }

  private func importEntries(_ count: Int, value: String) async throws {
    let lines = (0..<count).map { "{\"key\":\"\(10_000 + $0)\",\"value\":\"\(value) \($0)\"}\n" }.joined()
    #expect(try await Tool.larder("import", store, "--batch", "10", input: lines).status == 0)
  }

  private func size() throws -> Int {
    try Data(contentsOf: URL(fileURLWithPath: path)).count
  }

  @Test func `compact reclaims overwritten entries`() async throws {
    for round in 0..<3 { try await importEntries(300, value: "round \(round)") }
    let before = try size()
    let expected = try await Tool.larder("export", store).output
    #expect(try await Tool.larder("compact", store) == .done())
    #expect(try size() < before / 3)
    #expect(try await Tool.larder("export", store) == .done(expected))
    let stat = try await Tool.larder("stat", store, "--json").output
    let details = try #require(
      (JSONSerialization.jsonObject(with: Data(stat.utf8)) as? [String: Any])?["details"] as? [String: Int])
    #expect(details["deadTextBytes"] == 0 && details["tornBytes"] == 0)
    #expect((details["percentOfText"] ?? 100) < 60)
    let lines = try await Tool.shell("command -v zcat >/dev/null || exit 0; zcat < \"$1\" | grep -c '^{\"set\"'", path)
    #expect(lines.output.trimmingCharacters(in: .whitespaces) == "300\n")
  }

  @Test func `verify names damaged entries and others are readable`() async throws {
    for key in ["a", "b", "c"] { #expect(try await Tool.larder("set", store, key, "\"value of \(key)\"") == .done()) }
    var content = try Data(contentsOf: URL(fileURLWithPath: path))
    let place = try #require(content.range(of: Data("value of b".utf8)))
    content[place.lowerBound] ^= 1
    try content.write(to: URL(fileURLWithPath: path))
    let verify = try await Tool.larder("verify", store)
    #expect(verify.status == 2 && verify.output.hasPrefix("{\"key\":\"b\",\"place\":\"\(path), byte "))
    #expect(verify.output.split(separator: "\n").count == 1)
    #expect(try await Tool.larder("get", store, "a") == .done("\"value of a\"\n"))
    #expect(try await Tool.larder("get", store, "b").failed(65, "is damaged at byte"))
    #expect(try await Tool.larder("get", store, "c") == .done("\"value of c\"\n"))
    #expect(try await Tool.larder("compact", store).failed(65, "and the loss would become permanent"))
    #expect(try await Tool.larder("set", store, "b", "1") == .done())
    #expect(try await Tool.larder("compact", store) == .done())
    #expect(try await Tool.larder("verify", store).status == 0)
  }
}
