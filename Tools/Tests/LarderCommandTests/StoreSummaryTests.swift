import Larder
import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct StoreSummaryTests {
  private func json(_ summary: StoreSummary) -> String {
    var bytes: [UInt8] = []
    summary.appendJSON(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  private func summary(
    _ name: String = "x", _ durability: Durability = .synced,
    _ sharing: StoreInformation.Sharing = .exclusive
  ) -> StoreSummary {
    StoreSummary(
      information: StoreInformation(name: name, durability: durability, sharing: sharing),
      statistics: StoreStatistics(entryCount: 1))
  }

  @Test func `a store without maintenance is counted`() async throws {
    let store = WatchedStore()
    try store.apply([.set("a", JSONText(string: "")), .set("b", JSONText(string: ""))])
    let summary = try await StoreSummary(of: store)
    #expect(
      json(summary)
        == #"{"name":"watched","durability":"volatile","sharing":"exclusive","entryCount":2,"#
        + #""bytesOnDisk":null,"details":{}}"#)
    #expect(
      summary.table() == [
        "name        watched", "durability  volatile", "sharing     exclusive", "entries     2",
      ])
  }

  @Test func `names are those of the API`() {
    for (durability, name) in zip(Durability.allCases, ["synced", "buffered", "accepted", "volatile"]) {
      #expect(json(summary("x", durability)).contains("\"durability\":\"\(name)\""))
    }
    let shared = summary("x", .synced, .betweenProcesses)
    #expect(json(shared).contains(#""sharing":"betweenProcesses""#))
    #expect(shared.table().contains("sharing     between processes"))
  }

  @Test func `any name fits on one line and in one string`() throws {
    let summary = summary("a\n\"b\"")
    #expect(summary.table().first == "name        a \"b\"")
    #expect(try JSONText(json(summary)).members()?.first?.value.string() == "a\n\"b\"")
  }

  @Test func `details keep their order`() {
    let summary = StoreSummary(
      information: StoreInformation(name: "x", durability: .synced, sharing: .exclusive),
      statistics: StoreStatistics(
        entryCount: 0, bytesOnDisk: 9,
        details: [StoreStatistics.Detail(name: "zBytes", value: 1), StoreStatistics.Detail(name: "aBytes", value: -2)]))
    #expect(json(summary).hasSuffix(#""bytesOnDisk":9,"details":{"zBytes":1,"aBytes":-2}}"#))
    #expect(summary.table().suffix(3) == ["bytes on disk  9", "z bytes        1", "a bytes        -2"])
  }

  @Test(arguments: [(0, "no damage"), (1, "1 finding"), (2, "2 findings")])
  func `the summary of a verification counts its findings`(count: Int, text: String) {
    var report = VerificationReport(entryCount: 10)
    report.findings = (0..<count).map { VerificationReport.Finding(key: nil, place: "\($0)", message: "damaged") }
    #expect(VerifyCommand.summary(of: report) == "10 entries, \(text)")
  }

  @Test func `a store without compaction is refused`() async throws {
    let error = await #expect(throws: StoreError.self) { try await AnyDataStore(WatchedStore()).compact() }
    #expect(error?.code == .unsupported)
    #expect(
      error.map { CommandFailure($0) }
        == CommandFailure(
          .usage, "watched: compact is unsupported: this kind of store has no space to reclaim"))
  }

  @Test func `sizes are counted by powers of two`() {
    var summary = summary()
    var sizes = SizeCounts()
    for length in [0, 16, 17, 32, 33, 1_000_000] { sizes.add(length) }
    summary.sizes = sizes
    #expect(
      json(summary).hasSuffix(
        #""sizes":[{"upTo":16,"count":2},{"upTo":32,"count":2},{"upTo":64,"count":1},{"upTo":1048576,"count":1}]}"#))
    #expect(summary.table().suffix(2) == ["up to 64 bytes       1", "up to 1048576 bytes  1"])
  }
}
