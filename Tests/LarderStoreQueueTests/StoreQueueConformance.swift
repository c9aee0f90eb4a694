#if LMDB
import Larder
import LarderCBOR
import LarderJSON
import LarderLMDB
import LarderQueue
import LarderStoreQueue
import LarderTesting
import TestSupport
import Testing

/// The promises of queues, over each kind of base.
@Suite(.limitedParallelism) struct StoreQueueDeliveries {
  static func open<Base: DataStore>(
    _ base: Base, _ location: QueueLocation
  ) async throws -> StoreQueue<Base, SampleValue?> where Base.Value == [UInt8] {
    try await StoreQueue(
      base, prefix: "queue/", codec: .cbor(),
      configuration: StoreQueueConfiguration(policy: location.policy),
      environment: .manual(location.clock))
  }

  static let overMemory = QueueConformanceSuite(named: "StoreQueue over MemoryStore", lacking: .persistence) {
    location in
    try await open(MemoryStore<[UInt8]>(), location)
  }

  static let overJSON = QueueConformanceSuite(named: "StoreQueue over JSONFileStore", rounds: 3) { location in
    try await open(
      JSONFileStore<[UInt8]>(path: location.files.path("store.json"), codec: .raw, durability: .buffered), location)
  }

  static let overLMDB = QueueConformanceSuite(named: "StoreQueue over LMDBStore", isShared: true, rounds: 5) {
    location in
    try await open(
      LMDBStore<[UInt8]>(path: location.files.path("lmdb"), codec: .raw, durability: .buffered), location)
  }

  @Test(arguments: overMemory.cases) func `conforms over memory`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: overJSON.cases) func `conforms over JSON`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: overLMDB.cases) func `conforms over LMDB`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }
}

/// The promises of queues, of the queue in a folder.
@Suite(.limitedParallelism) struct QueueStoreDeliveries {
  static let suite = QueueConformanceSuite(named: "QueueStore", rounds: 10) { location in
    try await QueueStore<SampleValue?>(
      path: location.files.path("queue"), codec: .cbor(),
      configuration: QueueConfiguration(policy: location.policy),
      durability: .buffered, environment: .manual(location.clock))
  }

  @Test(arguments: suite.cases) func conforms(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }
}

/// The promises of stores, of a queue as a store.
@Suite(.limitedParallelism) struct StoreQueueConformance {
  static let overMemory = ConformanceSuite(
    named: "StoreQueue over MemoryStore",
    lacking: [.persistence, .observation], rounds: 5, maximumKeyLength: StoreKey.maximumLength - 25
  ) { _ in
    try await MemoryStore<[UInt8]>().queue(of: SampleValue?.self, prefix: "queue/", codec: .cbor())
  }

  static let overLMDB = ConformanceSuite(
    named: "StoreQueue over LMDBStore", rounds: 5, maximumKeyLength: StoreKey.maximumLength - 25
  ) { location in
    try await LMDBStore<[UInt8]>(path: location.path("lmdb"), codec: .raw, access: location.access)
      .queue(of: SampleValue?.self, prefix: "queue/", codec: .cbor())
  }

  @Test(arguments: overMemory.cases) func `conforms over memory`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: overLMDB.cases) func `conforms over LMDB`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }
}
#endif
