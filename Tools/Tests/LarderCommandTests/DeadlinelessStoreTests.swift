import Foundation
import Larder
import LarderExpiry
import Testing

@testable import LarderCommand

@Suite struct DeadlinelessStoreTests {
  private let base = MemoryStore<Expiring<Int>>()

  @Test func valuesPassThroughWithoutDeadlines() async throws {
    let store = DeadlinelessStore(base)
    try await store.apply([.set("a", 1), .set("b", 2), .set("c", 3), .remove("a"), .removeAll("c"..<"d")])
    try await store.setValue(4, forKey: "d")
    #expect(try base.entries(in: .all, limit: 9, order: .ascending).map(\.value) == [Expiring(2), Expiring(4)])
    let sum = try await store.update(["b", "d", "e"]) { slots in
      defer { slots = [nil, 5, 6] }
      return slots.compactMap(\.self).reduce(0, +)
    }
    #expect(sum == 6)
    #expect(try await store.values(forKeys: ["b", "d", "e"]) == [nil, 5, 6])
    #expect(try await store.value(forKey: "d") == 5)
    #expect(try await store.entries(in: .all, limit: 1, order: .descending).map(\.value) == [6])
    #expect(try await store.keys(in: .all, limit: 9) == ["d", "e"])
    #expect(try await store.count() == 2)
    #expect(store.information.name == "memory")
    try await store.synchronize()
    try await store.close()
    await #expect(throws: StoreError.self) { try await store.count() }
  }

  @Test func theCodecKeepsPlainValuesAndRefusesDeadlines() throws {
    let codec = DeadlinelessCodec(JSONTextCodec())
    #expect(codec.name == "json")
    #expect(codec.format == .json)
    var bytes: [UInt8] = []
    try codec.encode(Expiring(JSONText("[1]")), into: &bytes)
    #expect(bytes == Array("[1]".utf8))
    #expect(try bytes.withUnsafeBytes { try codec.decode($0.bytes) } == Expiring(JSONText("[1]")))
    #expect(throws: DeadlinelessCodec<JSONTextCodec>.DeadlineError.self) {
      try codec.encode(Expiring(JSONText("[1]"), deadline: Deadline(.distantFuture)), into: &bytes)
    }
  }
}
