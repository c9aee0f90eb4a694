import Synchronization
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
