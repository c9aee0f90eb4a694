import Larder
import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct BenchTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  @Test(arguments: StoreKind.allCases) func `it prints a table and removes its entries`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("set", store, "ada", "1") == .done())
    let run = try await Tool.larder(
      "bench", store, "--entries", "250", "--value-size", "10", "--readers", "2", "--writers", "5")
    #expect(run.status == 0)
    let lines = run.output.split(separator: "\n")
    #expect(lines.first?.hasSuffix(": synced, 250 entries of 10 bytes, 5 writers, 2 readers") == true)
    let names = ["write ", "write, batched ", "read ", "page of 100 "]
    #expect(zip(lines.dropFirst(2), names).allSatisfy { $0.hasPrefix($1) } && lines.count == 6)
    // The columns are aligned.
    #expect(Set(lines.dropFirst().map(\.count)).count == 1)
    #expect(try await Tool.larder("export", store) == .done("{\"key\":\"ada\",\"value\":1}\n"))
  }

  @Test func `it prints one object`() async throws {
    let run = try await Tool.larder("bench", "memory:", "--entries", "30", "--json")
    #expect(run.status == 0)
    let members = try #require(try JSONText(String(run.output.dropLast())).members())
    #expect(
      members.map(\.name)
        == ["name", "durability", "entries", "valueBytes", "readers", "writers", "results"])
    #expect(run.output.contains("\"what\":\"page of 100\",\"operations\":1,"))
    #expect(run.output.contains("\"what\":\"write, batched\",\"operations\":30,"))
  }

  @Test func `it keeps existing keys`() async throws {
    let store = StoreKind.json.url(in: folder)
    #expect(try await Tool.larder("set", store, "larder-bench:7", "1") == .done())
    #expect(try await Tool.larder("bench", store, "--entries", "3").failed(64, "already has keys that begin with"))
    #expect(try await Tool.larder("count", store) == .done("1\n"))
  }

  @Test(arguments: ["--entries", "--readers", "--writers"]) func `it refuses zero`(option: String) async throws {
    #expect(try await Tool.larder("bench", "memory:", option, "0").failed(64, "\(option) must be at least 1"))
  }

  @Test func `more tasks than entries are allowed and huge values refused`() async throws {
    let most = "\(Int.max)"
    let run = try await Tool.larder("bench", "memory:", "--entries", "3", "--writers", most, "--readers", most)
    #expect(run.status == 0)
    #expect(try await Tool.larder("bench", "memory:", "--value-size", most).failed(64, "--value-size must be at most"))
  }

  @Test func `percentiles are those of the sorted times`() {
    let result = BenchResult(what: "x", times: (1...200).reversed().map { .milliseconds($0) }, elapsed: .seconds(4))
    #expect(
      [50, 99, 100].map(result.time(ofPercent:)) == [.milliseconds(100), .milliseconds(198), .milliseconds(200)])
    #expect(result.perSecond == 50)
    let none = BenchResult(what: "x", times: [], elapsed: .zero)
    #expect(none.time(ofPercent: 99) == .zero && none.perSecond == 0)
    let texts = [Duration.seconds(12), .milliseconds(1), .microseconds(1500), .nanoseconds(870), .zero]
    #expect(texts.map(BenchReport.text) == ["12 s", "1 ms", "1.5 ms", "870 ns", "0 ns"])
  }
}
