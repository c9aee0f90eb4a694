#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderCBOR
import LarderCompressedFile
import LarderCompression
import LarderExpiry
import LarderIndexes
import LarderJSON
import LarderLMDB
import LarderQueue
import LarderTesting
import TestSupport
import Testing

/// Updates that change nothing, or only some of the values, with a codec whose bytes differ each time.
@Suite struct UnchangedUpdateTests {
  static let kinds = ["lmdb", "json", "compressed", "queue", "view", "indexed"]

  /// Opens a store of a kind in a folder.
  static func open(
    _ kind: String, _ folder: TemporaryFolder, codec: some Codec<[UInt8]> = NonceCodec(.raw)
  ) async throws -> AnyDataStore<[UInt8]> {
    let path = folder.path("store")
    switch kind {
    case "lmdb": return AnyDataStore(try await LMDBStore(path: path, codec: codec, durability: .buffered))
    case "json": return AnyDataStore(try await JSONFileStore(path: path, codec: codec, durability: .buffered))
    case "compressed":
      return AnyDataStore(try await CompressedFileStore(path: path, codec: codec, durability: .buffered))
    case "queue": return AnyDataStore(try await QueueStore(path: path, codec: codec, durability: .buffered))
    case "view":
      let bytes = try await LMDBStore(path: path, codec: .raw, durability: .buffered)
      return AnyDataStore(bytes.typed([UInt8].self, prefix: "view/", codec: codec))
    default:
      let bytes = try await LMDBStore(path: path, codec: .raw, durability: .buffered)
      let index = StoreIndex<[UInt8]>("length") { _, value in [[value.count]] }
      return AnyDataStore(try await bytes.indexed(by: [index], codec: codec))
    }
  }

  /// Returns the files of a folder, without lock files.
  static func files(of folder: TemporaryFolder) throws -> [String: Data] {
    var files: [String: Data] = [:]
    let all = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
    for name in all where !name.contains("lock") {
      var isFolder: ObjCBool = false
      let path = folder.path(name)
      guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), !isFolder.boolValue else { continue }
      files[name] = try Data(contentsOf: URL(filePath: path))
    }
    return files
  }

  @Test(arguments: kinds) func `an update that changes nothing writes nothing`(_ kind: String) async throws {
    let folder = try TemporaryFolder()
    let store = try await Self.open(kind, folder)
    let keys = (0..<5).map { StoreKey(integer: $0) }
    try await store.apply(ChangeBatch(keys.map { .set($0, $0.bytes) }))
    let before = try Self.files(of: folder)
    #expect(before.values.contains { !$0.isEmpty })
    for _ in 0..<3 {
      try await store.update(keys + ["missing"]) { slots in #expect(slots.count == 6) }
      // A value that is set to an equal one is not changed either.
      try await store.update(keys) { slots in slots.assign(keys.map(\.bytes)) }
    }
    #expect(try Self.files(of: folder) == before)
    try await store.update(keys) { $0[2] = [7] }
    #expect(try Self.files(of: folder) != before)
    #expect(try await store.values(forKeys: keys) == keys.map { $0 == keys[2] ? [7] : $0.bytes })
    try await store.close()
  }

  @Test func `an update of LMDB writes only what changes, and reports what it assigns`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    let store = try await LMDBStore(in: environment, codec: NonceCodec(.raw))
    let keys = (0..<4).map { StoreKey(integer: $0) }
    try await store.apply(ChangeBatch(keys.map { .set($0, $0.bytes) }))
    func stored() throws -> [[UInt8]?] {
      try environment.read { transaction in
        try keys.map { key in
          try transaction.withBytes(forKey: key, in: store) { $0?.withUnsafeBytes { Array($0) } }
        }
      }
    }
    let before = try stored()
    let events = StoreEvents()
    let observation = events.observe(store)
    try await store.update(keys) { slots in slots.assign(Array(slots)) }
    #expect(events.take() == [.changed(keys.map { .key($0) })])
    try await store.update(keys + ["missing"]) { slots in slots[4] = nil }
    #expect(events.take() == [.changed([.key("missing")])])
    try await store.update(keys) { slots in
      slots[1] = [1]
      slots[3] = nil
    }
    #expect(events.take() == [.changed([.key(keys[1]), .key(keys[3])])])
    let after = try stored()
    #expect(after[0] == before[0] && after[2] == before[2] && after[1] != before[1] && after[3] == nil)
    observation.cancel()
    try await store.close()
    try await environment.close()
  }

  @Test func `a leased item keeps its receipt`() async throws {
    let folder = try TemporaryFolder()
    let queue = try await QueueStore(path: folder.path("queue"), codec: NonceCodec(.raw), durability: .buffered)
    let generated = try await queue.enqueue([1]).key
    try await queue.enqueue([2], id: "two")
    let deliveries = try await queue.receive(max: 2, lease: .seconds(900))
    let before = try Self.files(of: folder)
    try await queue.update([generated, "two"]) { slots in #expect(Array(slots) == [[1], [2]]) }
    #expect(try Self.files(of: folder) == before)
    #expect(try await queue.acknowledge(deliveries.map(\.receipt)).isEmpty)
    try await queue.close()
  }

  @Test func `a view passes the whole key`() async throws {
    let bytes = MemoryStore<[UInt8]>()
    let codec = NonceCodec(.raw)
    let notes = bytes.typed([UInt8].self, prefix: "note/", codec: codec)
    let drafts = bytes.typed([UInt8].self, prefix: "draft/", codec: codec)
    try await notes.setValue([1], forKey: "a")
    try await notes.update(["b", "c"]) { $0.assign([[2], [3]]) }
    try await bytes.transaction { tx in
      try await tx.setValue([4], forKey: "d", in: notes)
      return .commit(try await tx.setValue([5], forKey: "a", in: drafts))
    }
    try await notes.apply([.set("e", [6])])
    #expect(try await notes.entries(in: .all, limit: .max).map(\.value) == [[1], [2], [3], [4], [6]])
    // A value that is moved to another view is found, with the key in the view.
    try await bytes.setValue(try #require(try bytes.value(forKey: "note/b")), forKey: "draft/b")
    let error = await #expect(throws: StoreError.self) { try await drafts.value(forKey: "b") }
    #expect(error?.code == .corrupted && error?.key == "b")
    let stored = try bytes.entries(in: .all, limit: .max, order: .ascending).map(\.value)
    try await bytes.transaction { tx in
      try await tx.update("d", in: notes) { _ in }
      return .commit(try await tx.update("a", in: drafts) { _ in })
    }
    try await notes.update("b") { _ in }
    #expect(try bytes.entries(in: .all, limit: .max, order: .ascending).map(\.value) == stored)
  }

  // MARK: Transforms

  /// Encodes a value three times: for the first time, over the stored bytes, and over those of another value.
  private func check<C: Codec>(
    _ codec: C, _ value: C.Value, _ other: C.Value, isSame: (C.Value, C.Value) -> Bool
  ) throws {
    let comment: Comment = "\(codec.name)"
    func bytes(_ value: C.Value, over stored: [UInt8]?) throws -> [UInt8] {
      // The slice does not begin at index 0.
      let context = ValueContext(key: "key", stored: stored.map { ([9, 9, 9] + $0).dropFirst(3) })
      var bytes: [UInt8] = [8]
      try codec.encode(value, into: &bytes, context: context)
      return Array(bytes.dropFirst())
    }
    let stored = try bytes(value, over: nil)
    #expect(try bytes(value, over: nil) != stored, comment)
    #expect(try bytes(value, over: stored) == stored, comment)
    let otherBytes = try bytes(other, over: stored)
    #expect(otherBytes != stored, comment)
    for damaged in [[], [7], Array(stored.dropLast()), Array(stored.dropFirst()), [7] + stored] {
      let again = try bytes(value, over: damaged)
      let decoded = try again.withUnsafeBytes { try codec.decode($0.bytes, context: ValueContext(key: "key")) }
      #expect(isSame(decoded, value), comment)
    }
  }

  @Test func `every transform passes on the bytes of its base`() throws {
    struct JSONNonce: Codec {
      let base = NonceCodec(.raw)
      var name: String { "json" }
      var format: CodecFormat { .json }

      func encode(_ value: [UInt8], into bytes: inout [UInt8], context: ValueContext) throws {
        var inner: [UInt8] = []
        let stored = try context.stored.map { try JSONDecoder().decode([UInt8].self, from: Data($0))[...] }
        try base.encode(value, into: &inner, context: ValueContext(key: context.key, stored: stored))
        bytes += try JSONEncoder().encode(inner)
      }

      func decode(_ bytes: RawSpan, context: ValueContext) throws -> [UInt8] {
        let inner = try JSONDecoder().decode([UInt8].self, from: bytes.withUnsafeBytes { Data($0) })
        return try inner.withUnsafeBytes { try base.decode($0.bytes, context: context) }
      }
    }
    let (value, other): ([UInt8], [UInt8]) = ([1, 2, 3], [4])
    let binary = NonceCodec(.raw)
    try check(binary, value, other, isSame: ==)
    try check(ChecksummedCodec(binary), value, other, isSame: ==)
    try check(CompressedCodec(binary), value, other, isSame: ==)
    try check(CompressedCodec(ChecksummedCodec(try VersionedCodec(binary, version: 3))), value, other, isSame: ==)
    try check(try VersionedCodec(binary, version: 300), value, other, isSame: ==)
    try check(try JSONNonce().versioned(3), value, other, isSame: ==)
    let json = #"{"expires":1767225600000000,"window":1800000000,"value":[]}"#
    let sliding = try Array(json.utf8).withUnsafeBytes {
      try ExpiringCodec(JSONCodec<[UInt8]>()).decode($0.bytes).deadline
    }
    for deadline in [nil, ExpiryDeadline(Date(timeIntervalSince1970: 1e9)), sliding] {
      func isSame(_ left: Expiring<[UInt8]>, _ right: Expiring<[UInt8]>) -> Bool { left == right }
      let (value, other) = (Expiring(value, deadline: deadline), Expiring(other, deadline: deadline))
      try check(ExpiringCodec(binary), value, other, isSame: isSame)
      try check(ExpiringCodec(try JSONNonce().versioned(3)), value, other, isSame: isSame)
    }
    // A new deadline leaves the bytes of the value as they are.
    let expiring = ExpiringCodec(binary)
    var (first, second): ([UInt8], [UInt8]) = ([], [])
    try expiring.encode(Expiring(value), into: &first, context: ValueContext(key: "key"))
    try expiring.encode(
      Expiring(value, deadline: sliding), into: &second, context: ValueContext(key: "key", stored: first[...]))
    #expect(first.dropFirst(1).elementsEqual(second.dropFirst(17)))
  }
}
#endif
