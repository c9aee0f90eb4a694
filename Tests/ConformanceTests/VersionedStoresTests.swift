#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderCBOR
import LarderCache
import LarderCompressedFile
import LarderCompression
import LarderExpiry
import LarderFiles
import LarderIndexes
import LarderJSON
import LarderLMDB
import LarderQueue
import LarderStoreQueue
import LarderTesting
import TestSupport
import Testing

/// Stores of values without versions, which a program with versions takes over.
@Suite(.limitedParallelism) struct VersionedStoresTests {
  struct Old: Codable, Sendable {
    var name: String
  }

  struct New: Codable, Sendable, Equatable {
    var name: String
    var visits: Int

    init(name: String, visits: Int = 0) {
      self.name = name
      self.visits = visits
    }
  }

  /// A kind of store whose files can be on a simulated disk.
  enum Kind: String, CaseIterable {
    case json, compressed, queue

    func open<Value: Sendable>(
      _ codec: some Codec<Value>, on disk: SimulatedFileSystem, access: StoreAccess = .readWrite
    ) async throws -> AnyDataStore<Value> {
      switch self {
      case .json:
        AnyDataStore(try await JSONFileStore(path: "/s", codec: codec, access: access, fileSystem: disk))
      case .compressed:
        AnyDataStore(try await CompressedFileStore(path: "/s", codec: codec, access: access, fileSystem: disk))
      case .queue: AnyDataStore(try await QueueStore(path: "/s", codec: codec, access: access, fileSystem: disk))
      }
    }
  }

  private static func versioned() throws -> VersionedCodec<JSONCodec<New>> {
    try JSONCodec<New>().versioned(1, ValueMigration(from: 0, .json(Old.self)) { New(name: $0.name) })
  }

  private static func versionedCBOR(_ version: Int = 1) throws -> VersionedCodec<CBORCodec<New>> {
    let first = ValueMigration(from: 0, .cbor(Old.self)) { New(name: $0.name) }
    return try CBORCodec<New>().versioned(
      version, version == 1 ? first : first.then(from: 1, .cbor()) { New(name: $0.name, visits: $0.visits) })
  }

  private static let keys = (0..<20).map { StoreKey("key\($0 + 10)") }

  private static func fill(_ store: some DataStore<Old>) async throws {
    try await store.apply(ChangeBatch(keys.map { .set($0, Old(name: $0.description)) }))
  }

  /// Opens a store with a codec, checks all values, and closes it.
  private func checkAll(_ store: some DataStore<New>, except key: StoreKey? = nil) async throws {
    #expect(try await store.count(in: .all) == Self.keys.count)
    for found in Self.keys where found != key {
      #expect(try await store.value(forKey: found) == New(name: found.description))
    }
  }

  // MARK: Adoption

  @Test(arguments: Kind.allCases) func `a store is taken over by the first write`(kind: Kind) async throws {
    let disk = SimulatedFileSystem(seed: 1)
    let old = try await kind.open(.json(Old.self), on: disk)
    try await Self.fill(old)
    try await old.close()

    for access in [StoreAccess.readOnly, .readWrite] {
      let reader = try await kind.open(Self.versioned(), on: disk, access: access)
      try await checkAll(reader)
      // An update that changes nothing is not a write. In a queue, it is.
      if kind != .queue, access == .readWrite { try await reader.update("key99") { _ in } }
      try await reader.close()
    }
    try await kind.open(.json(Old.self), on: disk).close()

    let key = Self.keys[3]
    let writer = try await kind.open(Self.versioned(), on: disk)
    try await writer.update(key) { $0?.visits = 7 }
    // Also if the program dies now.
    disk.killProcess()
    await expectStoreError(.versionMismatch) { try await kind.open(.json(Old.self), on: disk) }
    let again = try await kind.open(Self.versioned(), on: disk)
    try await checkAll(again, except: key)
    #expect(try await again.value(forKey: key) == New(name: key.description, visits: 7))
    try await again.close()
    let error = await expectStoreError(.versionMismatch) { try await kind.open(.json(Old.self), on: disk) }
    #expect(error?.message.contains("json+v1") == true)
  }

  @Test(arguments: Kind.allCases) func `a store without migration from version zero is not taken over`(kind: Kind)
    async throws
  {
    let disk = SimulatedFileSystem(seed: 1)
    let old = try await kind.open(.json(Old.self), on: disk)
    try await Self.fill(old)
    try await old.close()
    await expectStoreError(.versionMismatch) { try await kind.open(JSONCodec<New>().versioned(1), on: disk) }
    await expectStoreError(.versionMismatch) { try await kind.open(Self.versionedCBOR(), on: disk) }
    try await kind.open(.json(Old.self), on: disk).close()
  }

  /// After any interruption of the first write, the store is readable.
  ///
  /// A program without versions never meets a value with one.
  @Test(arguments: Kind.allCases, [SimulatedFault.powerLoss, .error(EIO), .errorAfterwards(EIO), .error(ENOSPC)])
  func `an interrupted first write leaves a consistent store`(kind: Kind, fault: SimulatedFault) async throws {
    let seed = SeededGenerator.seedOfProcess
    let key = Self.keys[3]
    var operation = 0
    var wasReached = true
    while wasReached {
      operation += 1
      let disk = SimulatedFileSystem(seed: seed &+ UInt64(operation))
      let context: Comment = "seed \(seed), \(kind), \(fault) at \(operation)"
      let old = try await kind.open(.json(Old.self), on: disk)
      try await Self.fill(old)
      if operation.isMultiple(of: 2) { try await old.close() } else { disk.killProcess() }

      let writer = try await kind.open(Self.versioned(), on: disk)
      let first = disk.operationCount
      disk.schedule(fault, atOperation: first + operation)
      var isAcknowledged = false
      do {
        try await writer.setValue(New(name: "x", visits: 7), forKey: key)
        isAcknowledged = true
        try await writer.close()
      } catch {
        // The fault decides how the write ends.
      }
      wasReached = disk.operationCount >= first + operation
      disk.restart()
      disk.killProcess()

      let store = try await kind.open(Self.versioned(), on: disk, access: .readOnly)
      try await checkAll(store, except: key)
      let value = try await store.value(forKey: key)
      #expect(value == New(name: "x", visits: 7) || !isAcknowledged && value == New(name: key.description), context)
      try await store.close()
      do {
        let old = try await kind.open(.json(Old.self), on: disk, access: .readOnly)
        #expect(!isAcknowledged, context)
        #expect(try await old.value(forKey: key)?.name == key.description, context)
      } catch let error as StoreError {
        #expect(error.code == .versionMismatch, context)
      }
    }
    #expect(operation > 4)
  }

  @Test func `a compaction that runs during the first write keeps the new name`() async throws {
    let folder = try TemporaryFolder()
    let old = try await CompressedFileStore<Old>(path: folder.path("s"), codec: .json(), durability: .buffered)
    for round in 0..<3 {
      try await old.apply(ChangeBatch((0..<20_000).map { .set(StoreKey(integer: $0), Old(name: "\(round) \($0)")) }))
    }
    try await old.close()
    let store = try await CompressedFileStore<New>(
      path: folder.path("s"), codec: Self.versioned(), durability: .buffered)
    async let compaction: Void = store.compact()
    for number in 0..<200 {
      try await store.setValue(New(name: "new", visits: number), forKey: StoreKey(integer: number))
    }
    try await compaction
    #expect(try await store.verify().findings.isEmpty)
    try await store.close()
    await expectStoreError(.versionMismatch) {
      try await CompressedFileStore<Old>(path: folder.path("s"), codec: .json())
    }
    let again = try await CompressedFileStore<New>(path: folder.path("s"), codec: Self.versioned())
    #expect(try again.count(in: .all) == 20_000)
    for number in 0..<200 { #expect(try again.value(forKey: StoreKey(integer: number))?.visits == number) }
    #expect(try again.value(forKey: StoreKey(integer: 200))?.name == "2 200")
    try await again.close()
  }

  @Test func `an LMDB store is taken over by the first transaction that commits`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("e"), durability: .buffered)
    let old = try await LMDBStore<Old>(in: environment, codec: .cbor())
    try await Self.fill(old)
    try await old.close()
    func isOpenToOldPrograms() async throws -> Bool {
      do {
        // As bytes, because a process has only one type of values for a store.
        try await LMDBStore<[UInt8]>(in: environment, codec: BytesOfCBOR()).close()
        return true
      } catch StoreError.Code.versionMismatch {
        return false
      }
    }
    let store = try await LMDBStore<New>(in: environment, codec: Self.versionedCBOR())
    try await checkAll(store)
    try await store.update("missing") { _ in }
    await #expect(throws: CancellationError.self) {
      try await environment.write { transaction in
        try transaction.setValue(New(name: "x"), forKey: "x", in: store)
        throw CancellationError()
      }
    }
    #expect(try await isOpenToOldPrograms())
    try await environment.write { try $0.setValue(New(name: "x", visits: 1), forKey: "x", in: store) }
    #expect(try await !isOpenToOldPrograms())
    // A value of version 0 that stays the same is written again, because its bytes differ.
    try await store.update(Self.keys) { slots in slots.assign(Array(slots)) }
    try await store.removeValue(forKey: "x")
    try await checkAll(store)
    let bytes = try environment.read { transaction in
      try transaction.withBytes(forKey: Self.keys[0], in: store) { $0?.withUnsafeBytes { Array($0.prefix(7)) } }
    }
    #expect(bytes == [0xDA, 0x4C, 0x61, 0x72, 0x56, 0x82, 1])
    try await store.close()
    let newer = try await LMDBStore<New>(in: environment, codec: Self.versionedCBOR(2))
    try await checkAll(newer)
    #expect(try await newer.migrateAll().failureCount == 0)
    await expectStoreError(.versionMismatch) {
      try await LMDBStore<New>(in: environment, codec: Self.versionedCBOR())
    }
    try await environment.close()
  }

  @Test func `batches also record the new name`() async throws {
    let folder = try TemporaryFolder()
    let old = try await LMDBStore<Old>(path: folder.path("e"), codec: .cbor(), durability: .buffered)
    try await Self.fill(old)
    try await old.close()
    let store = try await LMDBStore<New>(path: folder.path("e"), codec: Self.versionedCBOR(), durability: .buffered)
    try await store.apply([.remove(Self.keys[0])])
    try await store.close()
    await expectStoreError(.versionMismatch) { try await LMDBStore<Old>(path: folder.path("e"), codec: .cbor()) }
  }

  // MARK: Rolling deployments

  @Test(arguments: Kind.allCases) func `a store of one program at a time refuses an older one`(kind: Kind) async throws
  {
    let versions = try VersionDeployment()
    let disk = SimulatedFileSystem(seed: 1)
    func write(
      _ user: VersionDeployment.User, _ codec: VersionedCodec<JSONCodec<VersionDeployment.User>>
    ) async throws {
      let store = try await kind.open(codec, on: disk)
      try await store.setValue(user, forKey: "a")
      try await store.close()
    }
    func value(
      _ codec: VersionedCodec<JSONCodec<VersionDeployment.User>>, _ access: StoreAccess = .readOnly
    ) async throws -> VersionDeployment.User? {
      let store = try await kind.open(codec, on: disk, access: access)
      let value = try await store.value(forKey: "a")
      try await store.close()
      return value
    }
    let ada = VersionDeployment.User("Ada", email: "a@example.org")
    try await write(ada, versions.old)
    try await write(ada, versions.first)
    #expect(try await value(versions.old) == VersionDeployment.User("Ada"))
    #expect(try await value(versions.second, .readWrite) == VersionDeployment.User("Ada"))
    try await write(ada, versions.second)
    await expectStoreError(.versionMismatch) { try await value(versions.old) }
    #expect(try await value(versions.first) == ada)
    // The first step now writes version 2, and leaves the record as it is.
    try await write(VersionDeployment.User("Bob", email: "b@example.org"), versions.first)
    #expect(try await value(versions.second) == VersionDeployment.User("Bob", email: "b@example.org"))
    await expectStoreError(.versionMismatch) { try await value(versions.old) }
  }

  @Test func `an LMDB store of several programs refuses an older one`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("e"), durability: .buffered)
    try await VersionDeployment().check { AnyDataStore(try await LMDBStore(in: environment, codec: $0)) }
    try await environment.close()
  }

  @Test func `an indexed store of several programs refuses an older one`() async throws {
    let base = MemoryStore<[UInt8]>()
    let versions = try VersionDeployment()
    let index = StoreIndex<VersionDeployment.User>("name") { _, user in [[user.name]] }
    // The record is written when the store is opened, so that the indexes and the values never disagree.
    let old = try await base.indexed(by: [index], codec: versions.old)
    try await old.setValue(VersionDeployment.User("Ada"), forKey: "a")
    let first = try await base.indexed(by: [index], codec: versions.first)
    try await first.setValue(VersionDeployment.User("Bob"), forKey: "b")
    try await old.setValue(VersionDeployment.User("Ada L."), forKey: "a")
    let second = try await base.indexed(by: [index], codec: versions.second)
    await expectStoreError(.versionMismatch) { try await old.setValue(VersionDeployment.User("x"), forKey: "a") }
    await expectStoreError(.versionMismatch) { try await base.indexed(by: [index], codec: versions.old) }
    try await versions.refusedOnce {
      try await first.setValue(VersionDeployment.User("Bob", email: "b@example.org"), forKey: "b")
    }
    #expect(try await second.value(forKey: "b")?.email == "b@example.org")
    #expect(try await second.value(forKey: "a") == VersionDeployment.User("Ada L."))
    await expectStoreError(.versionMismatch) { try await old.removeAll() }
    await expectStoreError(.versionMismatch) {
      try await old.apply([.set("a", VersionDeployment.User("x")), .removeAll(.all)])
    }
    #expect(try await second.count() == 2)
  }

  /// A migration that changes what is indexed; the definition of the index is the same.
  @Test func `an index is incomplete after a migration`() async throws {
    let base = MemoryStore<[UInt8]>()
    let index = StoreIndex<VersionDeployment.User>("name", isUnique: true) { _, user in [[user.name]] }
    let json = JSONCodec<VersionDeployment.User>()
    let old = try await base.indexed(by: [index], codec: json.versioned(1))
    try await old.setValue(VersionDeployment.User("ADA"), forKey: "a")
    let lowerCased = try json.versioned(
      2, ValueMigration(from: 1, json) { VersionDeployment.User($0.name.lowercased()) })
    let new = try await base.indexed(by: [index], codec: lowerCased)
    await expectStoreError(.indexIncomplete) {
      try await new.entries(where: index, in: .prefix(components: "ada"), limit: 9)
    }
    try await new.rebuildIndexes()
    #expect(try await new.entries(where: index, in: .prefix(components: "ada"), limit: 9).map(\.key) == ["a"])
    #expect(try await new.entries(where: index, in: .prefix(components: "ADA"), limit: 9).isEmpty)
    await expectStoreError(.notUnique) { try await new.setValue(VersionDeployment.User("ada"), forKey: "b") }
    try await new.migrateAll()
    #expect(try await new.verifyIndexes().findings.isEmpty)
    #expect(try await base.indexed(by: [index], codec: lowerCased).incompleteIndexes().isEmpty)
  }

  /// Writes that were encoded before the raise are refused, however many there are.
  @Test func `writes that are encoded before the raise are refused`() async throws {
    let versions = try VersionDeployment()
    let (memory, gate) = (MemoryStore<[UInt8]>(), UpdateGate())
    let held = HeldUpdates(base: memory, gate: gate)
    let first = try await held.typed(VersionDeployment.User.self, prefix: "u/", recording: versions.first)
    try await first.setValue(VersionDeployment.User("Ada"), forKey: "a")
    let second = try await memory.typed(VersionDeployment.User.self, prefix: "u/", recording: versions.second)
    gate.close()
    let writes = ["a", "b", "c"].map { (key: StoreKey) in
      Task { try await first.setValue(VersionDeployment.User("x", email: "lost"), forKey: key) }
    }
    await gate.waitForWaiting(writes.count)
    try await second.setValue(VersionDeployment.User("Ada", email: "a"), forKey: "a")
    gate.open()
    for write in writes { await expectStoreError(.conflict) { try await write.value } }
    #expect(try await second.value(forKey: "a")?.email == "a")
    #expect(try await second.count() == 1)
    try await first.setValue(VersionDeployment.User("Bob", email: "b"), forKey: "b")
    #expect(try await second.value(forKey: "b")?.email == "b")
  }

  /// A cache on a disk keeps what only the newest version has.
  @Test func `copies have the newest version`() async throws {
    let versions = try VersionDeployment()
    let (base, cache) = (MemoryStore<VersionDeployment.User>(), MemoryStore<[UInt8]>())
    let cached = try base.cached(
      in: cache, codec: versions.first, configuration: TieredStoreConfiguration(timeToLive: .seconds(60)))
    try base.apply([.set("a", VersionDeployment.User("Ada", email: "a"))])
    #expect(try await cached.value(forKey: "a")?.email == "a")
    // The copy is written beside the read.
    while try cache.count(in: .all) == 0 { await Task.yield() }
    #expect(try await cached.value(forKey: "a")?.email == "a")
    #expect(cached.statistics().hits == 1)
  }

  @Test func `a queue in a store refuses an older program`() async throws {
    let base = MemoryStore<[UInt8]>()
    let versions = try VersionDeployment()
    func open(
      _ codec: VersionedCodec<JSONCodec<VersionDeployment.User>>
    ) async throws -> StoreQueue<MemoryStore<[UInt8]>, VersionDeployment.User> {
      try await base.queue(of: VersionDeployment.User.self, prefix: "jobs/", codec: codec)
    }
    let old = try await open(versions.old)
    let first = try await open(versions.first)
    try await old.setValue(VersionDeployment.User("Ada"), forKey: "a")
    try await first.setValue(VersionDeployment.User("Bob", email: "lost"), forKey: "b")
    // The record is written when the queue is opened.
    let second = try await open(versions.second)
    await expectStoreError(.versionMismatch) { try await old.setValue(VersionDeployment.User("x"), forKey: "a") }
    await expectStoreError(.versionMismatch) { try await old.update("b") { $0?.name = "x" } }
    await expectStoreError(.versionMismatch) { try await open(versions.old) }
    // An item that is added replaces nothing, and one that is acknowledged is done.
    try await old.enqueue(VersionDeployment.User("Cleo"))
    let delivery = try await old.receive(max: 1, lease: .seconds(60)).first
    #expect(delivery?.value == VersionDeployment.User("Ada"))
    if let delivery { try await old.acknowledge(delivery.receipt) }
    try await versions.refusedOnce {
      try await first.setValue(VersionDeployment.User("Bob", email: "b@example.org"), forKey: "b")
    }
    #expect(try await second.value(forKey: "b")?.email == "b@example.org")
  }

  @Test func `a recording view refuses an older program`() async throws {
    let base = MemoryStore<[UInt8]>()
    try await VersionDeployment().check {
      AnyDataStore(try await base.typed(VersionDeployment.User.self, prefix: "users/", recording: $0))
    }
    #expect(try base.value(forKey: "users/") == Array("json+v2".utf8))
    await expectStoreError(.invalidArgument) {
      _ = try await base.typed(Int.self, prefix: "", recording: .json())
    }
    await expectStoreError(.versionMismatch) {
      _ = try await base.typed(Int.self, prefix: "users/", recording: .json())
    }
  }

  @Test func `a transaction compares the record of a view`() async throws {
    let base = MemoryStore<[UInt8]>()
    let versions = try VersionDeployment()
    let old = try await base.typed(VersionDeployment.User.self, prefix: "u/", recording: versions.old)
    let second = try await base.typed(VersionDeployment.User.self, prefix: "u/", recording: versions.second)
    try await base.transaction { tx in
      try await tx.setValue(VersionDeployment.User("Ada"), forKey: "a", in: old)
      return .commit(())
    }
    #expect(try base.value(forKey: "u/") == Array("json+v1".utf8))
    // A transaction that is discarded records nothing.
    try await base.transaction { tx in
      try await tx.setValue(VersionDeployment.User("x"), forKey: "a", in: second)
      return .discard(())
    }
    #expect(try base.value(forKey: "u/") == Array("json+v1".utf8))
    try await base.transaction { tx in
      try await tx.setValue(VersionDeployment.User("Ada", email: "a"), forKey: "a", in: second)
      return .commit(())
    }
    await expectStoreError(.versionMismatch) {
      try await base.transaction { tx in
        try await tx.setValue(VersionDeployment.User("x"), forKey: "a", in: old)
        return .commit(())
      }
    }
    #expect(try await second.value(forKey: "a")?.email == "a")
  }

  // MARK: Other codecs around it

  @Test func `the whole stack of codecs is taken over`() async throws {
    let folder = try TemporaryFolder()
    let base: [UInt8] = try await {
      let old = try await LMDBStore(
        path: folder.path("e"), codec: .cbor(Old.self).expiring().compressed(threshold: 1).checksummed(),
        durability: .buffered)
      try await old.apply(
        ChangeBatch(
          Self.keys.map { .set($0, Expiring(Old(name: $0.description), deadline: ExpiryDeadline(.distantFuture))) })
      )
      try await old.close()
      return []
    }()
    #expect(base.isEmpty)
    let codec = try Self.versionedCBOR().expiring().compressed(threshold: 1).checksummed()
    #expect(codec.name == "cbor+v1+expiring+deflate+crc32c")
    #expect(codec.adoptedNames == ["cbor+expiring+deflate+crc32c"])
    let stored = try await LMDBStore(path: folder.path("e"), codec: codec, durability: .buffered)
    let store = stored.expiring(.after(.seconds(60)))
    try await checkAll(store)
    // An update through the expiring store would reset the deadlines.
    await expectStoreError(.unsupported) { try await store.migrateAll() }
    await expectStoreError(.unsupported) { try await AnyDataStore(store.cached()).migrateAll() }
    try await store.base.migrateAll()
    try await checkAll(store)
    #expect(try stored.value(forKey: Self.keys[0])?.deadline == ExpiryDeadline(.distantFuture))
    try await store.close()
    await expectStoreError(.versionMismatch) {
      try await LMDBStore(
        path: folder.path("e"), codec: .cbor(Old.self).expiring().compressed(threshold: 1).checksummed())
    }
  }

  // MARK: CBOR

  private func bytes<Value>(of value: Value, by codec: some Codec<Value>) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try codec.encode(value, into: &bytes)
    return bytes
  }

  private func value<Value>(of bytes: [UInt8], by codec: some Codec<Value>) throws -> Value {
    try codec.decode(bytes.span.bytes)
  }

  @Test func `the bytes in CBOR`() throws {
    let plain = try bytes(of: Old(name: "Ada"), by: .cbor())
    #expect(try value(of: plain, by: Self.versionedCBOR()) == New(name: "Ada"))
    let versioned = try bytes(of: New(name: "Ada", visits: 1), by: Self.versionedCBOR())
    #expect(
      versioned == [0xDA, 0x4C, 0x61, 0x72, 0x56, 0x82, 0x01]
        + (try bytes(of: New(name: "Ada", visits: 1), by: .cbor())))
    // All of it is one item, which any program can read.
    struct Frame: Decodable, Sendable, Encodable {
      var version: Int
      var value: New
      init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        version = try container.decode(Int.self)
        value = try container.decode(New.self)
        #expect(container.isAtEnd)
      }
      func encode(to encoder: any Encoder) throws {}
    }
    let frame = try value(of: versioned, by: .cbor(Frame.self))
    #expect(frame.version == 1 && frame.value == New(name: "Ada", visits: 1))
    // Damage to the version.
    for damaged in [Array(versioned.prefix(5)), Array(versioned.prefix(6)), versioned.prefix(5) + [0x83, 1, 1]] {
      let error = #expect(throws: ValueVersionError.self) { try value(of: damaged, by: Self.versionedCBOR()) }
      #expect(error?.storeErrorCode == .corrupted)
    }
    #expect(throws: ValueVersionError.self) {
      try value(of: versioned.prefix(6) + [0x00, 0xA0], by: Self.versionedCBOR())
    }
  }

  private static let python = ProcessInfo.processInfo.environment["LARDER_PYTHON"] ?? ""

  @Test(.enabled(if: !python.isEmpty, "LARDER_PYTHON names no Python with cbor2; see Scripts/set-up-python"))
  func `cbor 2 reads the version and the value`() throws {
    let versioned = try bytes(of: New(name: "Ada", visits: 1), by: Self.versionedCBOR())
    let script = """
      import cbor2
      found = cbor2.loads(bytes(\(versioned)))
      print(found.tag, found.value)
      """
    let run = try CommandRun([Self.python, "-c", script])
    #expect(run.status == 0)
    #expect(run.output == "1281454678 [1, {'name': 'Ada', 'visits': 1}]\n")
  }

  @Test func `a changed type is reported with its place`() async throws {
    struct Changed: Codable, Sendable {
      var name: String
      var visits: [String]
    }
    let bytes = MemoryStore<[UInt8]>()
    try await bytes.typed(New.self, codec: Self.versionedCBOR()).setValue(New(name: "Ada", visits: 7), forKey: "k")
    let store = bytes.typed(Changed.self, codec: try CBORCodec<Changed>().versioned(1))
    let error = await expectStoreError(.undecodable) { try await store.value(forKey: "k") }
    #expect(error?.detailedDescription.contains("visits") == true)
    guard case DecodingError.typeMismatch(_, let context)? = error?.underlying else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(context.codingPath.map(\.stringValue) == ["visits"])
  }
}

/// A gate before which updates wait.
private final class UpdateGate: Sendable {
  private struct State {
    var isClosed = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Locked(State())

  func close() { state.withLock { $0.isClosed = true } }

  func open() {
    let waiting = state.withLock { state in
      defer { state = State() }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  func pass() async {
    guard state.withLock(\.isClosed) else { return }
    await withCheckedContinuation { continuation in state.withLock { $0.waiting.append(continuation) } }
  }

  func waitForWaiting(_ count: Int) async {
    while state.withLock({ $0.waiting.count }) < count { await Task.yield() }
  }
}

/// A store whose updates wait before a gate.
private struct HeldUpdates<Base: DataStore>: PassingStore {
  let base: Base
  let gate: UpdateGate

  func update<Result: Sendable>(
    deciding keys: [StoreKey],
    _ body: @escaping @Sendable (inout UpdateSlots<Base.Value>) -> UpdateDecision<Result>
  ) async throws -> Result {
    await gate.pass()
    return try await base.update(deciding: keys, body)
  }
}

/// The codec of a program that knows no versions.
private struct BytesOfCBOR: Codec {
  var name: String { "cbor" }
  var format: CodecFormat { .cbor }

  func encode(_ value: [UInt8], into bytes: inout [UInt8], context: ValueContext) {
    bytes += value
  }

  func decode(_ bytes: RawSpan, context: ValueContext) -> [UInt8] {
    bytes.withUnsafeBytes { Array($0) }
  }
}
#endif
