#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderCBOR
import LarderJSON
import LarderLMDB
import LarderObservation
import LarderTesting
import TestSupport
import Testing

@Suite(.limitedParallelism) struct TypedViewConformance {
  /// Two types side by side in one LMDB store, among keys that belong to neither.
  static let besideAnother = ConformanceSuite(
    named: "TypedView of LMDBStore, beside another", maximumKeyLength: 511 - 2
  ) { location in
    let bytes = try await LMDBStore(path: location.path("environment"), codec: .raw, access: location.access)
    guard location.access == .readWrite else { return bytes.typed(SampleValue?.self, prefix: "m/") }
    try await bytes.apply([.set("m", [1]), .set("m.", [2]), .set("m/", [3]), .set("m0", [4])])
    let numbers = bytes.typed(Int.self, prefix: "n/")
    try await numbers.setValue(7, forKey: "a")
    return bytes.typed(SampleValue?.self, prefix: "m/")
  }

  static let json = ConformanceSuite(
    named: "TypedView of JSONFileStore", codec: .json(), lacking: .recordedCodecs, maximumKeyLength: 511 - 3
  ) {
    location, codec in
    try await JSONFileStore(path: location.path("bytes.json"), codec: .raw, access: location.access).observable()
      .typed(SampleValue?.self, prefix: StoreKey(bytes: [0xFF, 0xFF, 0xFF]), codec: codec)
  }

  static let whole = ConformanceSuite(named: "TypedView of all of a MemoryStore", lacking: .persistence) { _ in
    MemoryStore<[UInt8]>().observable().typed(SampleValue?.self, codec: .json())
  }

  @Test func `views of a store are separate`() async throws {
    let bytes = MemoryStore<[UInt8]>()
    let names = bytes.typed(String.self, prefix: "n/")
    let ages = bytes.typed(Int.self, prefix: "a/")
    try await names.setValue("Ada", forKey: "1")
    try await ages.setValue(36, forKey: "1")
    try await names.setValue("Bob", forKey: "2")
    #expect(try bytes.keys(in: .all, limit: .max, order: .ascending) == ["a/1", "n/1", "n/2"])
    try await names.removeAll()
    #expect(try await names.count() == 0)
    #expect(try await ages["1"] == 36)
    // A value of another type is damage when it is read as this one. The error names the key as the view sees it.
    try await bytes.setValue([0xFF], forKey: "a/2")
    let error = await #expect(throws: StoreError.self) { try await ages.value(forKey: "2") }
    #expect(error?.code == .corrupted)
    #expect(error?.key == "2")
    #expect(error?.store == "memory")
    let tooLong = StoreKey(bytes: Array(repeating: 0x61, count: 510))
    #expect(await #expect(throws: StoreError.self) { try await ages.value(forKey: tooLong) }?.code == .invalidKey)
  }

  @Test(arguments: besideAnother.cases) func `conforms beside another`(_ conformanceCase: ConformanceCase) async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: json.casesOfCombinations) func `conforms over JSON`(_ conformanceCase: ConformanceCase) async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: whole.cases) func `conforms over memory`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }
}
#endif
