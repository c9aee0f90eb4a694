#if Metrics
import Foundation
import Larder
import LarderMetrics
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Decorators/LarderMetrics/LarderMetrics.docc/Metrics.md`.
///
/// `Scripts/guide-code` writes it into the guide.
@Suite struct MetricsGuideTests {
  private let data = Data("[\"Ada\"]".utf8)

  private func fetch() async throws -> Int { 42 }

  @Test func `stores and blocks`() async throws {
    // snippet.overview
    let backend = MemoryStore<String>().metered(as: "backend")
    let store = backend.metered(as: "store")

    try await store.setValue("Ada", forKey: "user:1")
    _ = try await store.value(forKey: "user:1")

    print(store.report())
    print(backend.report())
    // snippet.end
    // snippet.the-report-2
    if let reads = store.report()["value"] {
      print(reads.count, reads.errorCount, reads.percentile99)
    }
    let json = try store.report().json()
    // snippet.end
    #expect(json.contains("\"name\":\"value\""))
    #expect(store.report()["value"]?.count == 1)
    #expect(backend.report()["value"]?.count == 1)

    // snippet.the-report
    let photos = MemoryStore<[UInt8]>().metered(as: "photos", size: { $0.count })
    // snippet.end
    try await photos.setValue([1, 2, 3], forKey: "7")
    #expect(photos.report()["apply"]?.bytes == 3)

    // snippet.your-own-blocks
    let names = try store.meter.measure("decode") { try JSONDecoder().decode([String].self, from: data) }
    let answer = try await store.meter.measure("fetch") { try await fetch() }
    // snippet.end
    #expect(names == ["Ada"] && answer == 42)
    #expect(store.report().operations.map(\.name) == ["value", "apply", "decode", "fetch"])
  }

  @Test func `names of OpenTelemetry`() async throws {
    let base = MemoryStore<String>()

    // snippet.names-of-opentelemetry
    let meter = StoreMeter(name: "users", names: .openTelemetry(system: "sqlite"))
    let users = base.metered(by: meter)
    // snippet.end

    try await users.setValue("Ada", forKey: "user:1")
    #expect(meter.report()["apply"]?.count == 1)
  }

  @Test func `two meters`() async throws {
    let base = MemoryStore<String>()
    // snippet.finding-a-slow-operation
    let backend = base.metered(as: "backend")
    let store = backend.metered(as: "store", slowThreshold: .milliseconds(20))
    // snippet.end

    try await store.setValue("Ada", forKey: "user:1")
    #expect(store.meter.slowThreshold == .milliseconds(20))
    #expect(store.report()["apply"]?.count == 1 && backend.report()["apply"]?.count == 1)
  }
}
#endif
