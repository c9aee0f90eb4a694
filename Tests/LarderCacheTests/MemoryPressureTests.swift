import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderCache

@Suite struct MemoryPressureTests {
  private static func text(some: String, full: String?) -> String {
    "some avg10=99.00 avg60=1.00 avg300=2.00 total=\(some)\n"
      + (full.map { "full avg10=99.00 avg60=0.50 avg300=1.00 total=\($0)\n" } ?? "")
  }

  private static func stall(_ some: UInt64, _ full: UInt64) throws -> PressureStall {
    try #require(PressureStall(text(some: "\(some)", full: "\(full)")))
  }

  @Test func `reads Linux pressure files`() throws {
    let stall = try #require(PressureStall(MemoryPressureTests.text(some: "12345", full: "678")))
    #expect(stall.some == 12345)
    #expect(stall.full == 678)
    #expect(PressureStall(MemoryPressureTests.text(some: "3", full: nil))?.full == 0)
  }

  @Test(arguments: ["", "\n", "some", "some avg10=0.00", "some avg10=0.00 total=x", "full avg10=1.00 total=1"])
  func `rejects anything else`(_ text: String) {
    #expect(PressureStall(text) == nil)
  }

  @Test(
    arguments: [
      (0, 0, MemoryPressure.none), (199_999, 199_999, .none), (200_000, 0, .warning), (2_000_000, 199_999, .warning),
      (200_000, 200_000, .critical),
    ] as [(UInt64, UInt64, MemoryPressure)])
  func `is graded by the time lost since the last reading`(_ some: UInt64, _ full: UInt64, _ expected: MemoryPressure)
    throws
  {
    var gauge = PressureGauge()
    #expect(gauge.pressure(of: try Self.stall(5_000_000, 5_000_000), at: .zero) == .none)
    let later = try Self.stall(5_000_000 + some, 5_000_000 + full)
    #expect(gauge.pressure(of: later, at: .seconds(2)) == expected)
    // No time is lost any more, whatever the averages are.
    for second in 3...30 { #expect(gauge.pressure(of: later, at: .seconds(second)) == .none) }
  }

  @Test func `is reported again after a delay or if it increases`() throws {
    var gauge = PressureGauge()
    var told: [MemoryPressure] = []
    // Some tasks stall all the time, and all tasks stall from the 15th second on.
    for second in 0...30 as ClosedRange<UInt64> {
      let stall = try Self.stall(second * 1_000_000, second < 15 ? 0 : (second - 15) * 1_000_000)
      told.append(gauge.pressure(of: stall, at: .seconds(Int(second))))
    }
    #expect(told.indices.filter { told[$0] == .warning } == [1, 11])
    #expect(told.indices.filter { told[$0] == .critical } == [16, 26])
  }

  @Test func `a temporarily missing file means no pressure`() throws {
    var gauge = PressureGauge()
    #expect(gauge.pressure(of: try Self.stall(0, 0), at: .zero) == .none)
    #expect(gauge.pressure(of: nil, at: .seconds(2)) == .none)
    #expect(gauge.pressure(of: try Self.stall(9_000_000, 9_000_000), at: .seconds(4)) == .none)
    // A new group of the same name counts from zero.
    #expect(gauge.pressure(of: try Self.stall(10, 10), at: .seconds(6)) == .none)
  }

  /// The pressure files of a system, and the file that describes the process there.
  struct System: Sendable {
    var name: String
    var groups: String?
    var isInitialNamespace = true
    var mounts = ["/ /sys/fs/cgroup rw - cgroup2 cgroup2 rw"]
    var file: String?
  }

  static let systems: [System] = [
    System(name: "no control groups", groups: nil, file: "/system"),
    System(name: "no group", groups: "0::/\n", file: "/system"),
    System(name: "a group", groups: "0::/user.slice/a:b\n", file: "/sys/fs/cgroup/user.slice/a:b/memory.pressure"),
    System(
      name: "a container", groups: "0::/\n", isInitialNamespace: false, file: "/sys/fs/cgroup/memory.pressure"),
    System(
      name: "a container that sees its group alone, and its name outside", groups: "0::/docker/x\n",
      mounts: ["/docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw"], file: "/sys/fs/cgroup/memory.pressure"),
    System(
      name: "both hierarchies, the group in the old one", groups: "4:memory:/docker/x\n0::/\n",
      mounts: [
        "/ /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory", "/ /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
      ],
      file: nil),
    System(
      name: "both hierarchies, a group in either", groups: "4:memory:/system.slice\n0::/system.slice\n",
      mounts: [
        "/ /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory", "/ /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
      ],
      file: "/sys/fs/cgroup/unified/system.slice/memory.pressure"),
    System(
      name: "the old hierarchies alone", groups: "4:memory:/docker/x\n",
      mounts: ["/ /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"], file: nil),
    System(
      name: "the old hierarchies in a container", groups: "4:memory:/\n", isInitialNamespace: false,
      mounts: ["/ /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"], file: nil),
    System(name: "the unified hierarchy not mounted", groups: "0::/user.slice\n", mounts: [], file: nil),
  ]

  @Test(arguments: systems.indices) func `only the file of the control group is used`(_ index: Int) throws {
    let system = Self.systems[index]
    let folder = try TemporaryFolder()
    let places = PressureFile.Places(
      groups: folder.path("cgroup"), namespace: folder.path("namespace"), mounts: folder.path("mounts"),
      system: "/system")
    if let groups = system.groups { try Data(groups.utf8).write(to: URL(filePath: places.groups)) }
    try FileManager.default.createSymbolicLink(
      atPath: places.namespace,
      withDestinationPath: system.isInitialNamespace ? "cgroup:[4026531835]" : "cgroup:[4026532000]")
    let mounts = ["22 1 8:1 / / rw - ext4 /dev/sda1 rw"] + system.mounts.map { "31 23 0:28 \($0)" }
    try Data(mounts.joined(separator: "\n").utf8).write(to: URL(filePath: places.mounts))
    #expect(PressureFile.path(places) == system.file, "\(system.name)")
  }

  @Test func `the file is read each time`() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("memory.pressure")
    #expect(PressureFile(path: path) == nil)
    try Data("not told\n".utf8).write(to: URL(filePath: path))
    #expect(PressureFile(path: path) == nil)
    try MemoryPressureTests.write(some: "10", full: "0", to: path)
    let file = try #require(PressureFile(path: path))
    #expect(try file.stall == Self.stall(10, 0))
    try MemoryPressureTests.write(some: "80", full: "40", to: path)
    #expect(try file.stall == Self.stall(80, 40))
    try FileManager.default.removeItem(atPath: path)
    #expect(file.stall == nil)
  }

  private static func write(some: String, full: String, to path: String) throws {
    try Data(text(some: some, full: full).utf8).write(to: URL(filePath: path), options: .atomic)
  }

  #if !canImport(Darwin)
  @Test func `no pressure is reported if the system reports none`() throws {
    let folder = try TemporaryFolder()
    #expect(systemMemoryPressure(file: PressureFile(path: folder.path("none"))) { _ in } == nil)
  }

  /// The whole path from the file to the entries.
  @Test func `a cache evicts entries if the file reports pressure`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("memory.pressure")
    try MemoryPressureTests.write(some: "900", full: "900", to: path)
    let told = Locked(0)
    let monitor = MemoryPressureMonitor { handler in
      systemMemoryPressure(file: PressureFile(path: path), interval: 0.001) { pressure in
        told.withLock { $0 += 1 }
        handler(pressure)
      }
    }
    let cache = MemoryPressureTests.cache(monitor)
    while told.withLock({ $0 }) < 3 { await Task.yield() }
    #expect(cache.count == 100)
    try MemoryPressureTests.write(some: "9000000000", full: "9000000000", to: path)
    while cache.count > 0 { await Task.yield() }
    #expect(cache.statistics().trims == 100)
    withExtendedLifetime(monitor) {}
  }
  #endif

  /// Pressure that a test generates.
  private final class Source: Sendable {
    let handler: MemoryPressureMonitor.Handler
    let isCancelled = Locked(false)

    init(_ handler: @escaping MemoryPressureMonitor.Handler) {
      self.handler = handler
    }

    func cancel() {
      isCancelled.withLock { $0 = true }
    }
  }

  private final class Sources: Sendable {
    private let made = Locked<[Source]>([])

    func make(_ handler: @escaping MemoryPressureMonitor.Handler) -> @Sendable () -> Void {
      let source = Source(handler)
      made.withLock { $0.append(source) }
      return { source.cancel() }
    }

    var all: [Source] { made.withLock { $0 } }
  }

  private static func cache(_ monitor: MemoryPressureMonitor) -> MemoryCache<Int, Int> {
    let cache = MemoryCache<Int, Int>(entryLimit: 100, trimsUnderMemoryPressure: false)
    cache.trim(by: monitor)
    for number in 0..<100 { cache.setValue(number, forKey: number) }
    return cache
  }

  @Test func `caches evict entries`() throws {
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
    #expect(one.statistics().trims == 50)
    source.handler(.critical)
    #expect(one.count == 0)
  }

  @Test func `critical pressure also evicts free entries`() throws {
    let sources = Sources()
    let monitor = MemoryPressureMonitor { sources.make($0) }
    let cache = MemoryCache<Int, Int>(entryLimit: 100, trimsUnderMemoryPressure: false) { _, _ in 0 }
    cache.trim(by: monitor)
    for number in 0..<100 { cache.setValue(number, forKey: number) }
    try #require(sources.all.first).handler(.critical)
    #expect(cache.count == 0)
    withExtendedLifetime(monitor) {}
  }

  @Test func `released caches are not trimmed`() throws {
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
    // A new cache starts again.
    let next = MemoryPressureTests.cache(monitor)
    #expect(sources.all.count == 2)
    sources.all[1].handler(.critical)
    #expect(next.count == 0)
  }
}
