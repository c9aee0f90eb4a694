// The public suites over stores, decorators and queues in a release build, as a program of a user contains them: with other
// inlining than a build for tests, which lets tests see internal declarations. `Scripts/prove-isolation` builds and runs it.

import Larder
import LarderBatching
import LarderBounded
import LarderCBOR
import LarderCache
import LarderExpiry
import LarderIndexes
import LarderJSON
import LarderMirror
import LarderObservation
import LarderQueue
import LarderStoreQueue
import LarderTesting

/// A base that repeatedly yields to other tasks, so operations interleave.
func yielding<Value: Sendable>(_ type: Value.Type) -> FaultyStore<MemoryStore<Value>> {
  var plan = FaultPlan()
  plan.schedule(.yields(upTo: 3), probability: 1)
  return MemoryStore<Value>().faulty(plan: plan)
}

let inMemory: StoreCapabilities = [.persistence, .encoding]
let day = TimeToLive.after(.seconds(86_400))

let stores = [
  ConformanceSuite(named: "a stack over JSONFileStore", lacking: .keysWithoutValues, rounds: 4) { location in
    try await JSONFileStore(
      path: location.path("store.json"), codec: .json(SampleValue?.self).expiring(), durability: .buffered,
      access: location.access
    ).batched().cached().expiring(day).observable()
  },
  ConformanceSuite(
    named: "a stack with write-behind", lacking: inMemory.union([.keysWithoutValues, .acknowledgedPersistence]),
    rounds: 4
  ) { _ in
    yielding(Expiring<SampleValue?>.self).observable().cached().writeBehind(maximumAge: .microseconds(200)).expiring(
      day)
  },
  ConformanceSuite(
    named: "BoundedStore", lacking: .persistence, rounds: 4, maximumKeyLength: StoreKey.maximumLength - 3
  ) { _ in
    try await yielding([UInt8].self).observable().bounded(bytes: .max).typed(SampleValue?.self, codec: .json())
  },
  ConformanceSuite(
    named: "IndexedStore", lacking: .persistence, rounds: 4, maximumKeyLength: StoreKey.maximumLength - 3
  ) { _ in
    let byInteger = StoreIndex<SampleValue?>("integer") { key, value in key.count <= 200 ? [[value?.integer]] : [] }
    return try await yielding([UInt8].self).observable().indexed(by: [byInteger], codec: .cbor(SampleValue?.self))
  },
  ConformanceSuite(named: "MirroredStore", lacking: inMemory, rounds: 4) { _ in
    try MirroredStore(primary: yielding(SampleValue?.self), secondary: yielding(SampleValue?.self)).observable()
  },
]

let queues = [
  QueueConformanceSuite(named: "QueueStore", rounds: 4) { location in
    try await QueueStore<SampleValue?>(
      path: location.files.path("queue"), codec: .cbor(),
      configuration: QueueConfiguration(policy: location.policy),
      durability: .buffered, environment: .manual(location.clock))
  },
  QueueConformanceSuite(named: "StoreQueue", lacking: .persistence, rounds: 4) { location in
    try await StoreQueue(
      yielding([UInt8].self), prefix: "queue/", codec: .cbor(SampleValue?.self),
      configuration: StoreQueueConfiguration(policy: location.policy),
      environment: .manual(location.clock))
  },
]

// All suites run at the same time.
await withTaskGroup { group in
  for suite in stores { group.addTask { (suite.name, try? await suite.run()) } }
  for suite in queues { group.addTask { (suite.name, try? await suite.run()) } }
  for await (name, report) in group where report?.failures.isEmpty != true {
    print("\(name): \(report?.description ?? "cancelled")")
  }
}
print("\(stores.count + queues.count) suites")
