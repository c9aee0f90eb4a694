import Foundation
import Testing

/// Tests of the entries that `larder salvage` copies, and of its report on the others.
@Suite struct SalvageTests {
  private let folder: TemporaryFolder
  private let target: String

  init() throws {
    folder = try TemporaryFolder()
    target = "json:\(folder.file("rescued.json"))"
  }

  private func line(_ number: Int) -> String {
    "{\"key\":\"\(10_000 + number)\",\"value\":\"value \(number)\"}\n"
  }

  private func makeStore(_ kind: StoreKind, _ count: Int) async throws -> String {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("import", store, input: (0..<count).map(line).joined()).status == 0)
    return store
  }

  /// Changes one byte of the file of a store.
  private func damage(_ kind: StoreKind, at text: String) throws {
    let url = URL(filePath: folder.file(kind.fileName()))
    var content = try Data(contentsOf: url)
    let place = try #require(content.range(of: Data(text.utf8)))
    content[place.lowerBound] ^= 1
    try content.write(to: url)
  }

  @Test(arguments: StoreKind.allCases) func anUndamagedStoreIsCopiedCompletely(kind: StoreKind) async throws {
    let store = try await makeStore(kind, 2500)
    let run = try await Tool.larder("salvage", store, target)
    #expect(run.status == 0 && run.output.isEmpty)
    #expect(run.errors == "copied 2500 entries, everything could be read\n")
    #expect(try await Tool.larder("export", target) == .done((0..<2500).map(line).joined()))
  }

  @Test func aDamagedLineOfADocumentIsReportedAsARange() async throws {
    let store = try await makeStore(.json, 3000)
    try damage(.json, at: "\"10700\"")
    let run = try await Tool.larder("salvage", store, target)
    #expect(run.status == 2)
    #expect(run.errors == "copied 2999 entries, 1 key or range could not be read\n")
    let message = "the requested entries are in a damaged part of the files; run verify to locate the damage"
    #expect(run.output == "{\"from\":\"10699\\u0000\",\"upTo\":\"10701\",\"message\":\"\(message)\"}\n")
    #expect(try await Tool.larder("export", target) == .done((0..<3000).filter { $0 != 700 }.map(line).joined()))
    #expect(try await Tool.larder("get", store, "10000", "--read-write").status == 65)
  }

  @Test func damagedEntriesOfACompressedStoreAreNamed() async throws {
    let store = StoreKind.compressed.url(in: folder)
    for number in 0..<10 {
      #expect(try await Tool.larder("set", store, "\(10_000 + number)", "\"value \(number)\"") == .done())
    }
    try damage(.compressed, at: "value 4")
    let run = try await Tool.larder("salvage", store, target)
    #expect(run.status == 2 && run.output.hasPrefix("{\"key\":\"10004\",\"message\":\""))
    #expect(run.output.split(separator: "\n").count == 1)
    #expect(run.errors == "copied 9 entries, 1 key or range could not be read\n")
    #expect(try await Tool.larder("export", target) == .done((0..<10).filter { $0 != 4 }.map(line).joined()))
  }

  @Test func deadlinesAreCopied() async throws {
    let store = StoreKind.json.url(in: folder)
    #expect(try await Tool.larder("set", store, "a", "1", "--ttl", "1h") == .done())
    #expect(try await Tool.larder("salvage", store, target).status == 0)
    #expect(try await Tool.larder("get", target, "a") == .done("1\n"))
    #expect(try await Tool.larder("get", target, "a", "--slide", "--ttl", "2h") == .done("1\n"))
  }

  @Test func aTargetWithEntriesAndTheSourceItselfAreRefused() async throws {
    let store = try await makeStore(.json, 3)
    #expect(try await Tool.larder("salvage", store, store).failed(64, "cannot be salvaged into itself"))
    #expect(try await Tool.larder("set", target, "mine", "1") == .done())
    #expect(try await Tool.larder("salvage", store, target).failed(64, "already has entries"))
    #expect(try await Tool.larder("list", target, "--keys") == .done("{\"key\":\"mine\"}\n"))
    #expect(try await Tool.larder("salvage", "json:\(folder.file("none.json"))", target).status == 66)
  }
}
