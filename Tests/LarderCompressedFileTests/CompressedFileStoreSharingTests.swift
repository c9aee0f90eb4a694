#if Compression
import Foundation
import Larder
import LarderCompressedFile
import LarderTesting
import TestSupport
import Testing

/// Other users of a file, before, during and after its use by a store.
@Suite struct CompressedFileStoreSharingTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  // MARK: Reading only

  @Test func `readers leave a torn tail unchanged`() async throws {
    let path = folder.path("s.gz")
    let store = try await CompressedFileStore<Int>(path: path)
    try await store.setValue(1, forKey: "a")
    let torn = try Data(contentsOf: URL(fileURLWithPath: path)) + [0x1F, 0x8B, 8, 4]
    let copy = folder.path("copy.gz")
    try torn.write(to: URL(fileURLWithPath: copy))
    for access in [StoreAccess.readOnly, .immutable] {
      let reader = try await CompressedFileStore<Int>(path: copy, access: access)
      #expect(try reader.value(forKey: "a") == 1 && reader.information.access == access)
      #expect(try await reader.verify().findings.isEmpty)
      await expectStoreError(.notPermitted) { try await reader.compact() }
      await expectStoreError(.notPermitted) { try await reader.removeAll(in: .all) }
      try await reader.synchronize()
      try await reader.close()
    }
    #expect(try Data(contentsOf: URL(fileURLWithPath: copy)) == torn)
    #expect(try folder.names == ["copy.gz", "s.gz", "s.gz.lock"])
    try await store.close()
  }

  @Test func `the provider opens for reading`() async throws {
    let path = folder.path("s.gz")
    let options = StoreOptions(access: .readOnly)
    await expectStoreError(.notFound) {
      try await CompressedFileStoreProvider().open(
        StoreURL("compressed:\(path)"), options: options, newCodecName: nil)
    }
    try await CompressedFileStore<Int>(path: path).close()
    let reader = try await CompressedFileStoreProvider().open(
      StoreURL("compressed:\(path)"), options: options, newCodecName: nil
    ).typed(codec: .json(Int.self))
    #expect(reader.information.access == .readOnly)
    try await reader.close()
    await expectStoreError(.invalidArgument) {
      try await CompressedFileStoreProvider(findsPossiblyOlder: true).open(
        StoreURL("compressed:\(path)"), options: StoreOptions(), newCodecName: nil)
    }
  }

  // MARK: Files of other programs

  @Test func `a file of another program gets no lock`() async throws {
    let path = folder.path("package.json")
    try Data("{\"name\":\"x\"}".utf8).write(to: URL(fileURLWithPath: path))
    await expectStoreError(.unrecognizedFormat) { _ = try await CompressedFileStore<Int>(path: path) }
    #expect(try CommandRun(["gzip", "-k", path]).status == 0)
    await expectStoreError(.unrecognizedFormat) { _ = try await CompressedFileStore<Int>(path: path + ".gz") }
    #expect(try folder.names == ["package.json", "package.json.gz"])
  }

  @Test func `a store with a moved file stops writing`() async throws {
    let path = folder.path("s.gz")
    let store = try await CompressedFileStore<Int>(path: path)
    try await store.setValue(1, forKey: "a")
    try FileManager.default.moveItem(atPath: path, toPath: folder.path("moved.gz"))
    await expectStoreError(.conflict) { try await store.setValue(2, forKey: "b") }
    await expectStoreError(.conflict) { try await store.compact() }
    await expectStoreError(.conflict) { try await store.synchronize() }
    #expect(try store.value(forKey: "a") == 1)
    await expectStoreError(.conflict) { try await store.close() }
    #expect(try folder.names == ["moved.gz", "s.gz.lock"])
    #expect(try await CompressedFileStore<Int>(path: folder.path("moved.gz")).value(forKey: "a") == 1)
  }

  // MARK: Earlier processes

  /// A process that cannot synchronize its writes still leaves them to be read by the next process, although they are
  /// not on
  /// disk.
  @Test(arguments: Durability.File.allCases) func `nothing is assumed durable after a process was killed`(
    _ durability: Durability.File
  ) async throws {
    for number in 1...24 {
      let disk = SimulatedFileSystem(seed: UInt64(number))
      func open() async throws -> CompressedFileStore<Int> {
        try await CompressedFileStore(path: "/s.gz", codec: .json(), durability: durability, fileSystem: disk)
      }
      let first = try await open()
      try await first.setValue(1, forKey: "closed")
      try await first.close()
      let second = try await open()
      for operation in disk.operationCount + number..<disk.operationCount + 100 {
        disk.schedule(.error(EIO), atOperation: operation)
      }
      do {
        try await second.setValue(2, forKey: "failed")
        try await second.synchronize()
      } catch is StoreError {}
      disk.killProcess()
      disk.restart()
      let third = try await open()
      let isShown = try third.value(forKey: "failed") == 2
      try await third.setValue(3, forKey: "later")
      try await third.synchronize()
      disk.losePower()
      let fourth = try await open()
      #expect(try fourth.value(forKey: "closed") == 1 && fourth.value(forKey: "later") == 3, "operation \(number)")
      #expect(try fourth.value(forKey: "failed") == (isShown ? 2 : nil), "operation \(number)")
      #expect(try await fourth.verify().findings.isEmpty)
      try await fourth.close()
    }
  }
}
#endif
