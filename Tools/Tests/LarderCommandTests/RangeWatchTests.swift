import Foundation
import Larder
import Testing

@testable import LarderCommand
@testable import StoreAccess

/// The comparison of two readings, with an injected limit and time.
@Suite struct RangeWatchTests {
  private let folder: TemporaryFolder
  private let url: String
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    url = StoreKind.lmdb.url(in: folder)
    path = try folder.write("", to: "output")
  }

  private func open() async throws -> EncodedStore {
    try await EncodedStore(StoreTarget(url: url, timeout: .zero, meter: nil), access: .readWrite)
  }

  /// Reads a range, and returns the lines that were printed.
  private func lines(_ watch: inout RangeWatch, now: Date = .now) async throws -> [String] {
    let before = try Data(contentsOf: URL(fileURLWithPath: path)).count
    try await watch.read(now: now)
    let after = try Data(contentsOf: URL(fileURLWithPath: path))
    return String(decoding: after.dropFirst(before), as: UTF8.self).split(separator: "\n").map { String($0) }
  }

  @Test(arguments: [false, true]) func `a range of too many entries is not compared`(printsFirst: Bool) async throws {
    #expect(try await Tool.larder("set", url, "k0", "0") == .done())
    let store = try await open()
    let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    let output = ByteOutput(to: Descriptor(number: handle.fileDescriptor))
    var watch = RangeWatch(
      of: .prefix("k"), in: store, output: output, printsFirst: printsFirst, maximumCount: 3)
    let changed = [#"{"from":"k","upTo":"l","change":"range changed"}"#]
    #expect(try await lines(&watch) == (printsFirst ? [#"{"key":"k0","change":"set","value":0}"#] : []))
    try await store.store.setValue([1], forKey: "k1")
    try await store.store.setValue([2], forKey: "k2")
    #expect(try await lines(&watch).count == 2)
    try await store.store.setValue([3], forKey: "k3")
    #expect(try await lines(&watch) == changed)
    try await store.store.setValue([4], forKey: "k4")
    #expect(try await lines(&watch) == changed)
    // The range fits again, but what changed is unknown.
    try await store.store.removeAll(in: .prefix("k4"))
    try await store.store.removeValue(forKey: "k0")
    #expect(try await lines(&watch) == changed)
    try await store.store.removeValue(forKey: "k2")
    #expect(try await lines(&watch) == [#"{"key":"k2","change":"removed"}"#])
    // A watch that begins with too many entries.
    for key in ["k5", "k6"] { try await store.store.setValue([5], forKey: StoreKey(key)) }
    var other = RangeWatch(of: .prefix("k"), in: store, output: output, printsFirst: printsFirst, maximumCount: 3)
    #expect(try await lines(&other) == (printsFirst ? changed : []))
    #expect(try await lines(&other) == changed)
    try await store.store.close()
    try handle.close()
  }

  @Test func `entries expire at their deadlines`() async throws {
    #expect(try await Tool.larder("set", url, "a", "1", "--ttl", "1h") == .done())
    #expect(try await Tool.larder("set", url, "b", "2", "--ttl", "2h") == .done())
    #expect(try await Tool.larder("set", url, "c", "3") == .done())
    let store = try await open()
    let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    var watch = RangeWatch(
      of: .all, in: store, output: ByteOutput(to: Descriptor(number: handle.fileDescriptor)), printsFirst: false)
    let now = Date.now
    func isIn(_ hours: Double) -> Bool {
      watch.nextExpiry.map { abs($0.timeIntervalSince(now) - 3600 * hours) < 600 } ?? false
    }
    #expect(try await lines(&watch) == [])
    #expect(isIn(1))
    // A deadline that moves is no change.
    #expect(try await Tool.larder("get", url, "a", "--slide", "--ttl", "3h") == .done("1\n"))
    #expect(try await lines(&watch) == [])
    #expect(isIn(2))
    #expect(try await lines(&watch, now: now + 2.5 * 3600) == [#"{"key":"b","change":"removed"}"#])
    #expect(isIn(3))
    #expect(try await lines(&watch, now: now + 4 * 3600) == [#"{"key":"a","change":"removed"}"#])
    #expect(watch.nextExpiry == nil)
    // A purge of what has expired is no further change.
    try await store.store.removeValue(forKey: "a")
    #expect(try await lines(&watch, now: now + 4 * 3600) == [])
    // A new deadline makes the entry appear again.
    #expect(try await Tool.larder("set", url, "b", "2", "--ttl", "9h") == .done())
    #expect(try await lines(&watch, now: now + 5 * 3600) == [#"{"key":"b","change":"set","value":2}"#])
    try await store.store.close()
    try handle.close()
  }
}
