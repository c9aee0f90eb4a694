import Foundation
import Synchronization
import TestSupport
import Testing

@testable import LarderCache

@Suite struct MemoryPressureTests {
  private static func text(some: String, full: String?) -> String {
    "some avg10=\(some) avg60=1.00 avg300=2.00 total=12345\n"
      + (full.map { "full avg10=\($0) avg60=0.50 avg300=1.00 total=678\n" } ?? "")
  }

  @Test func readsWhatLinuxTells() throws {
    let stall = try #require(PressureStall(MemoryPressureTests.text(some: "12.34", full: "5.60")))
    #expect(stall.some == 12.34)
    #expect(stall.full == 5.6)
    #expect(PressureStall(MemoryPressureTests.text(some: "3.00", full: nil))?.full == 0)
  }

  @Test(arguments: ["", "\n", "some", "some total=3", "some avg10=x avg60=0.00", "full avg10=1.00 total=1"])
  func takesNothingElse(_ text: String) {
    #expect(PressureStall(text) == nil)
  }

  @Test(
    arguments: [
      ("0.00", "0.00", MemoryPressure.none), ("9.99", "9.99", .none), ("10.00", "0.00", .warning),
      ("99.00", "9.99", .warning), ("10.00", "10.00", .critical),
    ])
  func isGradedByTheTimeLost(_ some: String, _ full: String, _ expected: MemoryPressure) {
    #expect(PressureStall(MemoryPressureTests.text(some: some, full: full))?.pressure == expected)
  }

  @Test func findsTheControlGroup() {
    #expect(ControlGroup.path(in: "0::/user.slice/a:b\n") == "/user.slice/a:b")
    #expect(ControlGroup.path(in: "12:memory:/old\n0::/\n") == "/")
    #expect(ControlGroup.path(in: "12:memory:/old\n") == nil)
  }

  @Test func theFileIsThatOfTheControlGroupOrElseThatOfTheSystem() throws {
    let folder = try TemporaryFolder()
    let paths = { PressureFile.paths(groups: folder.path("cgroup"), root: folder.path("groups"), system: "/system") }
    #expect(paths() == ["/system"])
    try Data("1:cpu:/\n0::/user.slice\n".utf8).write(to: URL(filePath: folder.path("cgroup")))
    #expect(paths() == [folder.path("groups/user.slice/memory.pressure"), "/system"])
    try Data("1:cpu:/\n".utf8).write(to: URL(filePath: folder.path("cgroup")))
    #expect(paths() == ["/system"])
  }

  @Test func theFileIsReadAnewEachTime() throws {
    let folder = try TemporaryFolder()
    let (group, system) = (folder.path("group"), folder.path("system"))
    #expect(PressureFile(firstOf: [group, system]) == nil)
    try MemoryPressureTests.write(some: "0.00", full: "0.00", to: system)
    #expect(PressureFile(firstOf: [group, system])?.path == system)
    try Data("not told\n".utf8).write(to: URL(filePath: group))
    #expect(PressureFile(firstOf: [group, system])?.path == system)
    try MemoryPressureTests.write(some: "10.00", full: "0.00", to: group)
    let file = try #require(PressureFile(firstOf: [group, system]))
    #expect(file.path == group)
    #expect(file.pressure == .warning)
    try MemoryPressureTests.write(some: "80.00", full: "40.00", to: group)
    #expect(file.pressure == .critical)
    try FileManager.default.removeItem(atPath: group)
    #expect(file.pressure == .none)
  }

  private static func write(some: String, full: String, to path: String) throws {
    try Data(text(some: some, full: full).utf8).write(to: URL(filePath: path), options: .atomic)
  }

  #if !canImport(Darwin)
  @Test func nobodyIsToldWhereTheSystemDoesNotTell() throws {
    let folder = try TemporaryFolder()
    #expect(SystemMemoryPressure(paths: [folder.path("none")]) { _ in } == nil)
  }

  /// All the way from the file to the entries.
  @Test func aCacheGivesUpItsEntriesWhenTheFileTellsOfPressure() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("memory.pressure")
    try MemoryPressureTests.write(some: "9.00", full: "9.00", to: path)
    let told = Mutex(0)
    let monitor = MemoryPressureMonitor { handler in
      SystemMemoryPressure(paths: [path], interval: 0.001) { pressure in
        told.withLock { $0 += 1 }
        handler(pressure)
      }
    }
    let cache = MemoryPressureTests.cache(monitor)
    while told.withLock({ $0 }) < 3 { await Task.yield() }
    #expect(cache.count == 100)
    try MemoryPressureTests.write(some: "90.00", full: "30.00", to: path)
    while cache.count > 0 { await Task.yield() }
    #expect(cache.statistics.trims == 100)
    withExtendedLifetime(monitor) {}
  }
  #endif

  /// Pressure that a test makes.
  private final class Source: MemoryPressureSource {
    let handler: MemoryPressureMonitor.Handler
    let isCancelled = Mutex(false)

    init(_ handler: @escaping MemoryPressureMonitor.Handler) {
      self.handler = handler
    }

    func cancel() {
      isCancelled.withLock { $0 = true }
    }
  }

  private final class Sources: Sendable {
    private let made = Mutex<[Source]>([])

    func make(_ handler: @escaping MemoryPressureMonitor.Handler) -> Source {
      let source = Source(handler)
      made.withLock { $0.append(source) }
      return source
    }

    var all: [Source] { made.withLock { $0 } }
  }

  private static func cache(_ monitor: MemoryPressureMonitor) -> MemoryCache<Int, Int> {
    let cache = MemoryCache<Int, Int>(
      entryLimit: 100, costLimit: nil, order: .policy(.adaptive), expiry: .never, clock: ContinuousClock(),
      memoryPressure: monitor, cost: nil, onRemoval: nil)
    for number in 0..<100 { cache.setValue(number, forKey: number) }
    return cache
  }

  @Test func cachesGiveUpEntries() throws {
    let sources = Sources()
    let monitor = MemoryPressureMonitor { sources.make($0) }
    let one = MemoryPressureTests.cache(monitor)
    let other = MemoryPressureTests.cache(monitor)
    #expect(sources.all.count == 1)
    let source = try #require(sources.all.first)
    source.handler(.none)
    #expect(one.count == 100)
    source.handler(.warning)
    #expect(one.count == 50)
    #expect(other.count == 50)
    #expect(one.statistics.trims == 50)
    source.handler(.critical)
    #expect(one.count == 0)
  }

  @Test func inTheWorstCaseNothingStaysThatCostsNothing() throws {
    let sources = Sources()
    let monitor = MemoryPressureMonitor { sources.make($0) }
    let cache = MemoryCache<Int, Int>(
      entryLimit: 100, costLimit: nil, order: .policy(.adaptive), expiry: .never, clock: ContinuousClock(),
      memoryPressure: monitor, cost: { _, _ in 0 }, onRemoval: nil)
    for number in 0..<100 { cache.setValue(number, forKey: number) }
    try #require(sources.all.first).handler(.critical)
    #expect(cache.count == 0)
    withExtendedLifetime(monitor) {}
  }

  @Test func nobodyIsAskedForCachesThatAreGone() throws {
    let sources = Sources()
    let monitor = MemoryPressureMonitor { sources.make($0) }
    var cache: MemoryCache<Int, Int>? = MemoryPressureTests.cache(monitor)
    #expect(cache?.count == 100)
    let source = try #require(sources.all.first)
    source.handler(.none)
    #expect(!source.isCancelled.withLock { $0 })
    cache = nil
    source.handler(.warning)
    #expect(source.isCancelled.withLock { $0 })
    // Another one begins anew.
    let next = MemoryPressureTests.cache(monitor)
    #expect(sources.all.count == 2)
    sources.all[1].handler(.critical)
    #expect(next.count == 0)
  }
}
