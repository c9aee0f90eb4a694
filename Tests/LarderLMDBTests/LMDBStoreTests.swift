#if LMDB
import Larder
import LarderLMDB
import LarderTesting
import Testing

@Suite struct LMDBStoreTests {
  @Test func `a batch has the same effect as its changes in sequence`() async throws {
    let location = try ConformanceLocation()
    let store = try await LMDBStore<String>(path: location.path("environment"), codec: .json())
    try await store.apply([
      .set("c", "1"), .set("a", "2"), .set("c", "3"), .remove("a"), .set("b", "4"), .removeAll("b"..<"c"),
      .set("a", "5"),
    ])
    let entries = try await store.entries(in: .all, limit: .max, order: .ascending)
    #expect(entries.map(\.key) == ["a", "c"])
    #expect(entries.map(\.value) == ["5", "3"])
    try await store.close()
    try location.remove()
  }

  @Test func `an update that changes no byte commits nothing`() async throws {
    let location = try ConformanceLocation()
    let environment = try await LMDBEnvironment(path: location.path("environment"))
    let store = try await LMDBStore<[UInt8]>(in: environment, codec: .raw)
    try await store.apply([.set("a", [1, 2]), .set("empty", [])])
    let before = try await environment.statistics().lastTransaction
    #expect(try await store.update("a") { $0 } == [1, 2])
    try await store.update(["a", "empty", "missing"]) { $0.assign([[1, 2], [], nil]) }
    #expect(try await environment.statistics().lastTransaction == before)
    let changes: [[[UInt8]?]] = [[[1, 3], [], nil], [[1, 3], [0], nil], [[1, 3], [0], []], [nil, [0], []]]
    for (count, slots) in changes.enumerated() {
      try await store.update(["a", "empty", "missing"]) { $0.assign(slots) }
      #expect(try await environment.statistics().lastTransaction == before + count + 1)
      #expect(try await store.values(forKeys: ["a", "empty", "missing"]) == slots)
    }
    try await environment.close()
    try location.remove()
  }

  @Test func `an update with descending keys exchanges values`() async throws {
    let location = try ConformanceLocation()
    let store = try await LMDBStore<[UInt8]>(path: location.path("environment"), codec: .raw)
    try await store.apply([.set("a", [1]), .set("b", [2])])
    try await store.update(["b", "missing", "a"]) { $0.assign([[1], nil, [2]]) }
    #expect(try await store.values(forKeys: ["a", "b", "missing"]) == [[2], [1], nil])
    try await store.close()
    try location.remove()
  }

  @Test func `stores of an environment change together`() async throws {
    let location = try ConformanceLocation()
    let environment = try await LMDBEnvironment(path: location.path("environment"))
    let names = try await LMDBStore<String>(in: environment, name: "names", codec: .json())
    let ages = try await LMDBStore<Int>(in: environment, name: "ages", codec: .json())
    try await environment.write { transaction in
      try transaction.setValue("Ada", forKey: "1", in: names)
      try transaction.setValue(36, forKey: "1", in: ages)
    }
    struct Stop: Error {}
    await #expect(throws: Stop.self) {
      try await environment.write { transaction in
        try transaction.setValue("Bob", forKey: "1", in: names)
        try transaction.removeAll(of: ages)
        throw Stop()
      }
    }
    let (name, age, length) = try environment.read { transaction in
      (
        try transaction.value(forKey: "1", in: names), try transaction.value(forKey: "1", in: ages),
        try transaction.withBytes(forKey: "1", in: names) { $0?.byteCount }
      )
    }
    #expect(name == "Ada")
    #expect(age == 36)
    #expect(length == 5)
    #expect(try await environment.storeNames() == ["ages", "names"])
    try await environment.close()
    #expect(throws: StoreError.self) { try names.value(forKey: "1") }
    try location.remove()
  }
}
#endif
