#if Compression && LMDB && SQLite
import Foundation
import Larder
import LarderBounded
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Decorators/LarderBounded/LarderBounded.docc/BoundingStores.md`.
///
/// `Scripts/guide-code` writes it into the guide.
@Suite struct BoundedGuideTests {
  private struct User: Codable, Equatable {
    var name: String
  }

  @Test func `a cache of images`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    let data = [UInt8](repeating: 1, count: 1000)

    // snippet.bounding-stores
    let bytes = try await LMDBStore(path: folder + "/images", codec: .raw)
    let images = try await bytes.bounded(bytes: 100_000_000)
    try await images.setValue(data, forKey: "https://example.com/1.png")
    // snippet.end

    #expect(try await images.usage() == BoundedUsage(bytes: 1025, entries: 1))

    // snippet.verification-and-repair
    let report = try await images.verifyAccounting()
    for finding in report.findings { print(finding.place, finding.message) }
    if !report.findings.isEmpty { try await images.repairAccounting() }
    // snippet.end
    #expect(report == VerificationReport(entryCount: 1))
    try await bytes.close()
  }

  @Test func `values of a type`() async throws {
    let bytes = MemoryStore<[UInt8]>()

    // snippet.values-of-a-type
    let users = try await bytes.bounded(bytes: 10_000_000).typed(User.self, codec: .json())
    try await users.setValue(User(name: "Ada"), forKey: "ada")
    // snippet.end

    #expect(try await users.value(forKey: "ada") == User(name: "Ada"))
  }

  @Test func evictions() async throws {
    let bytes = MemoryStore<[UInt8]>()

    // snippet.evictions
    var configuration = BoundedStoreConfiguration()
    configuration.maximumShare = 0.1
    configuration.onEviction = { eviction in print("evicted", eviction.byteCount, "bytes") }
    let thumbnails = try await bytes.bounded(bytes: 20_000_000, entries: 10_000, configuration: configuration)

    let usage = try await thumbnails.usage()
    print(usage.bytes, "bytes,", usage.entries, "entries,", thumbnails.statistics().evictedCount, "evicted")
    // snippet.end
    #expect(usage == BoundedUsage(bytes: 0, entries: 0))
  }
}
#endif
