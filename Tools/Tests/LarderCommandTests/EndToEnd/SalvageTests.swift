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

  @Test(arguments: StoreKind.allCases) func `an undamaged store is copied completely`(kind: StoreKind) async throws {
    let store = try await makeStore(kind, 2500)
    let run = try await Tool.larder("salvage", store, target)
    #expect(run.status == 0 && run.output.isEmpty)
    #expect(run.errors == "copied 2500 entries, everything could be read\n")
    #expect(try await Tool.larder("export", target) == .done((0..<2500).map(line).joined()))
  }

  @Test func `a damaged line of a document is reported as a range`() async throws {
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

  @Test func `damaged entries of a compressed store are named`() async throws {
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

  /// Returns a store whose damage may have replaced any entry before it, and the number of its entries.
  private func makeStoreWithUnknownChanges() async throws -> (url: String, count: Int) {
    let (store, count) = (StoreKind.compressed.url(in: folder), 2000)
    let lines = (0..<count).map { number in
      "{\"key\":\"\(10_000 + number)\",\"value\":\"value \(number) \(String(repeating: "x", count: 80))\"}\n"
    }
    #expect(try await Tool.larder("import", store, "--batch", "10", input: lines.joined()).status == 0)
    let url = URL(filePath: folder.file(StoreKind.compressed.fileName()))
    var content = try Data(contentsOf: url)
    let middle = content.count / 2
    content.replaceSubrange(middle..<(middle + 16 << 10), with: Data(count: 16 << 10))
    try content.write(to: url)
    return (store, count)
  }

  @Test func `unknown changes are one finding`() async throws {
    let (store, count) = try await makeStoreWithUnknownChanges()
    let verified = try await Tool.larder("verify", store)
    #expect(verified.status == 2, "\(verified.errors)")
    let unknown = verified.output.split(separator: "\n").filter { $0.contains("its changes are unknown") }
    #expect(unknown.count == 1 && verified.output.split(separator: "\n").count < 10, "\(verified.output)")
    let run = try await Tool.larder("salvage", store, target)
    #expect(run.status == 2 && run.output.split(separator: "\n").count == 1, "\(run.output)")
    #expect(run.output.contains("entries before it, which --possibly-older copies, too"))
    #expect(run.output.hasPrefix("{\"from\":null,\"upTo\":null,\"message\":"))
    #expect(run.errors.hasSuffix(" entries, 1 key or range could not be read\n"), "\(run.errors)")
    let certain = try #require(Int(run.errors.split(separator: " ")[1]))
    #expect((count / 4..<count * 3 / 4).contains(certain))

    let all = "json:\(folder.file("all.json"))"
    let older = try await Tool.larder("salvage", store, all, "--possibly-older")
    #expect(older.status == 2)
    let marked = older.output.split(separator: "\n").filter { $0.hasSuffix(",\"isPossiblyOlder\":true}") }
    #expect(older.output.split(separator: "\n").count == marked.count + 1)
    #expect((count / 4..<count * 3 / 4).contains(marked.count))
    #expect(
      older.errors
        == "copied \(certain) entries, \(marked.count) entries possibly older, 1 key or range could not be read\n"
    )
    #expect(unknown.first?.contains("replaced or removed \(marked.count) entries before it") == true)
    #expect(try await Tool.larder("count", all) == .done("\(certain + marked.count)\n"))
    // Each entry has its value, and only entries of the damaged part are missing.
    #expect(certain + marked.count > count * 4 / 5)
    let export = try await Tool.larder("export", all).output
    for line in export.split(separator: "\n") {
      let number = try #require(line.firstMatch(of: /"key":"1(\d{4})"/).flatMap { Int($0.output.1) })
      #expect(line.contains("\"value \(number) x"), "\(line)")
    }
  }

  @Test func `a store that has no possibly older entries refuses the option`() async throws {
    let store = try await makeStore(.json, 3)
    let refused = try await Tool.larder("salvage", store, target, "--possibly-older")
    #expect(refused.failed(64, "Omit --possibly-older"), "\(refused)")
    #expect(try folder.names().contains("rescued.json") == false)
    let sound = try await makeStore(.compressed, 3)
    let run = try await Tool.larder("salvage", sound, target, "--possibly-older")
    #expect(run == ToolRun(status: 0, output: "", errors: "copied 3 entries, everything could be read\n"))
  }

  @Test func `deadlines are copied`() async throws {
    let store = StoreKind.json.url(in: folder)
    #expect(try await Tool.larder("set", store, "a", "1", "--ttl", "1h") == .done())
    #expect(try await Tool.larder("salvage", store, target).status == 0)
    #expect(try await Tool.larder("get", target, "a") == .done("1\n"))
    #expect(try await Tool.larder("get", target, "a", "--slide", "--ttl", "2h") == .done("1\n"))
  }

  @Test func `a target with entries and the source itself are refused`() async throws {
    let store = try await makeStore(.json, 3)
    #expect(try await Tool.larder("salvage", store, store).failed(64, "cannot be salvaged into itself"))
    #expect(try await Tool.larder("set", target, "mine", "1") == .done())
    #expect(try await Tool.larder("salvage", store, target).failed(64, "already has entries"))
    #expect(try await Tool.larder("list", target, "--keys") == .done("{\"key\":\"mine\"}\n"))
    #expect(try await Tool.larder("salvage", "json:\(folder.file("none.json"))", target).status == 66)
  }
}
