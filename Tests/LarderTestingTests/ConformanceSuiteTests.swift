import Foundation
import Larder
import LarderTesting
import Testing

@Suite struct ConformanceSuiteTests {
  private func suite(lacking: StoreCapabilities, seed: UInt64 = 7) -> ConformanceSuite {
    ConformanceSuite(
      named: "memory", codec: .json(), lacking: lacking, seed: seed, child: { _ in },
      open: { _, _ in MemoryStore<SampleValue?>() })
  }

  @Test func `identities are unique and in order`() {
    let cases = suite(lacking: []).cases
    #expect(Set(cases.map(\.id)).count == cases.count)
    #expect(Set(cases.map(\.description)).count == cases.count)
    #expect(cases.map(\.number) == cases.map(\.number).sorted())
    #expect(cases.allSatisfy { !$0.name.isEmpty })
  }

  @Test func `every group and promise has a case`() {
    let cases = suite(lacking: []).cases
    // `QueueConformanceSuite` has the cases about queues.
    #expect(Set(cases.map(\.group)) == Set(ConformanceGroup.allCases).subtracting([.queues]))
    #expect(Set(cases.map(\.promise)) == Set(ConformancePromise.allCases).subtracting([.deliveries]))
  }

  @Test func `skipped cases are listed with their reason`() {
    let all = suite(lacking: [])
    let some = suite(lacking: [.persistence, .encoding, .observation])
    #expect(all.skipped.isEmpty)
    #expect(some.cases.count + some.skipped.count == all.cases.count)
    #expect(some.skipped.allSatisfy { !$0.lacking.isEmpty && !$0.reason.isEmpty })
    #expect(some.skipped.contains { $0.conformanceCase.id == "118a" && $0.reason == "keeps no data after closing" })
    #expect(
      some.skipped.contains { $0.conformanceCase.id == "50" && $0.description.contains("does not encode values") })
    #expect(Set(some.skipped.map(\.conformanceCase.group)).isSuperset(of: [.reopening, .damage, .observation]))
  }

  @Test func `random histories compact the store`() async throws {
    final class Counter: Sendable {
      let count = Locked(0)
    }
    let compactions = Counter()
    let suite = ConformanceSuite(named: "records", rounds: 20) { location in
      try RecordStore<SampleValue?>(disk: location.object { RecordDisk() }, access: location.access) {
        compactions.count.withLock { $0 += 1 }
      }
    }
    try await #require(suite.cases.first { $0.id == "240" }).run()
    #expect(compactions.count.withLock { $0 } > 0)
  }

  @Test func `cases of other processes are skipped without a child`() throws {
    let suite = ConformanceSuite(named: "memory") { _ in MemoryStore<SampleValue?>() }
    let skipped = suite.skipped.filter { $0.lacking == .otherProcesses }
    #expect(skipped.map(\.conformanceCase.id) == ["251", "252", "252a"])
    #expect(try #require(skipped.first).reason.contains("the suite has no child"))
  }

  @Test(
    arguments: [.persistence, .acknowledgedPersistence, .encoding, .readOnlyAccess, .observation] as [StoreCapabilities]
  )
  func `a store stated to lack a promise that it keeps fails`(_ lacking: StoreCapabilities) async throws {
    let suite = ConformanceSuite(named: "records", lacking: lacking) { location in
      let records = try RecordStore<SampleValue?>(disk: location.object { RecordDisk() }, access: location.access)
      return MutantStore(records, fault: nil)
    }
    await #expect(throws: ConformanceFailure.self) { try await run("201", of: suite) }
  }

  @Test func `a store with an unstated lack fails`() async throws {
    await #expect(throws: ConformanceFailure.self) { try await run("201", of: suite(lacking: .encoding)) }
    await #expect(throws: ConformanceFailure.self) { try await run("50", of: suite(lacking: .persistence)) }
    await #expect(throws: ConformanceFailure.self) {
      try await run("201", of: suite(lacking: [.persistence, .encoding]))
    }
    try await run("201", of: suite(lacking: [.persistence, .encoding, .observation]))
  }

  private func run(_ id: String, of suite: ConformanceSuite) async throws {
    try await #require(suite.cases.first { $0.id == id }).run()
  }

  @Test func `a failure names the broken promise and how to repeat it`() async throws {
    let suite = ConformanceSuite(named: "idle", seed: 42) { _ in IdleStore(durability: .synced) }
    let conformanceCase = try #require(suite.cases.first { $0.id == "2" })
    let failure = try await #require(throws: ConformanceFailure.self) { try await conformanceCase.run() }
    #expect(failure.conformanceCase.promise == .values)
    for part in [
      "idle", "2 (points): a value that was set can be read", "Values round-trip", "missing", #"SampleValue("a")"#,
      "LARDER_SEED=42",
    ] {
      #expect(failure.description.contains(part), "\(failure)")
    }
  }

  @Test func `an unexpected error is a failure`() async throws {
    let suite = ConformanceSuite(named: "unopenable") { _ -> MemoryStore<SampleValue?> in
      throw StoreError(.notPermitted, during: .open, message: "no")
    }
    let report = try await suite.run()
    #expect(report.passed.isEmpty)
    #expect(report.failures.allSatisfy { $0.description.contains("notPermitted") })
  }

  @Test func `locations are removed`() async throws {
    let folders = Locked<[String]>([])
    let suite = ConformanceSuite(named: "memory", lacking: [.persistence, .encoding, .observation]) { location in
      folders.withLock { $0.append(location.folder) }
      try Data("x".utf8).write(to: URL(filePath: location.path("file")))
      return MemoryStore<SampleValue?>()
    }
    for conformanceCase in suite.cases.prefix(20) {
      try await conformanceCase.run()
    }
    let used = folders.withLock { $0 }
    #expect(used.count >= 20)
    #expect(!used.contains { FileManager.default.fileExists(atPath: $0) })
  }

  @Test func `a location retains objects`() throws {
    let location = try ConformanceLocation()
    let disk = location.object { RecordDisk() }
    #expect(location.object { RecordDisk() } === disk)
    #expect(location.object(named: "other") { RecordDisk() } !== disk)
    try location.remove()
    #expect(location.object { RecordDisk() } !== disk)
    try location.remove()
  }

  @Test func `a cancelled run is not a failure`() async {
    let suite = suite(lacking: [])
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await suite.run()
    }
    await #expect(throws: CancellationError.self) { try await task.value }
  }
}
