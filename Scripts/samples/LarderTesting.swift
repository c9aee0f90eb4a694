import Foundation
import LarderBatching
import LarderCBOR
import LarderFiles
import LarderJSON
import LarderObservation
import LarderQueue
import LarderSQLite
import LarderStoreQueue
import Testing

/// A store that a test checks.
struct MyStore<Value: Codable & Sendable>: ForwardingStore {
  let base: MemoryStore<Value>
  var information: StoreInformation { base.information }

  init(path: String, access: StoreAccess = .readWrite) async throws { self.base = MemoryStore() }
  init(path: String, fileSystem: SimulatedFileSystem) async throws { self.base = MemoryStore() }

  func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: nonisolated(nonsending) () async throws -> Result
  ) async throws -> Result {
    try await body()
  }
}

struct SomeDecorator<Base: DataStore>: ForwardingStore {
  let base: Base
  var information: StoreInformation { base.information }

  func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: nonisolated(nonsending) () async throws -> Result
  ) async throws -> Result {
    try await body()
  }
}

var store: FaultyStore<MemoryStore<Int>> { standIn() }
var clock: ManualClock { standIn() }
var disk: SimulatedFileSystem { standIn() }
var suite: ConformanceSuite { standIn() }
var plan: FaultPlan { standIn() }
var operations: [ConcurrentOperation] { standIn() }
var trial: ScheduledTrial { standIn() }
var schedule: Schedule { standIn() }
var context: ScheduledContext { standIn() }
var before: [UInt8]? { standIn() }

extension ConformanceChildSamples {
  typealias MyStore = Samples.MyStore
  enum MyStoreTests {
    static func open(_ location: ConformanceLocation) async throws -> Samples.MyStore<SampleValue?> { standIn() }
  }
}

extension SampleValueSamples {
  static var store: AnyDataStore<SampleValue> { standIn() }
}

extension ScheduledTrialSamples {
  struct Overdrawn: Error {}

  actor Account {
    init(balance: Int) {}
    func withdraw(_ amount: Int) -> Bool { true }
  }
}

extension SimulatedFileSystemSamples {
  static var store: AnyDataStore<Int> { standIn() }
  static func write(to store: JSONFileStore<Int>) async throws {}
}
