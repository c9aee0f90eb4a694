#if Crypto
import Foundation
import Larder
import LarderFiles
import LarderTesting
import TestSupport
import Testing

@testable import LarderCrypto

/// Key rings in files: who may read them, several processes, and failures of the disk.
@Suite struct FileKeySourceTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("keys.json")
  }

  private func write(_ text: String, permissions: Int = 0o600) throws {
    try Data(text.utf8).write(to: URL(filePath: path))
    try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: path)
  }

  private func permissions(of path: String) throws -> UInt32? {
    try POSIXFileSystem().attributes(at: path)?.permissions
  }

  @Test func `a new file is readable only by its owner`() async throws {
    await expectKeyRingError(.notFound) { try await KeyRing.open(in: .file(path)) }
    #expect(try folder.names == [])
    let ring = try await KeyRing.open(in: .file(path), createsIfMissing: true)
    #expect(try permissions(of: path) == 0o600)
    try await ring.rotate()
    #expect(try permissions(of: path) == 0o600)
    #expect(try permissions(of: path + ".lock") == 0o600)
    #expect(try folder.names == ["keys.json", "keys.json.lock"])
    #expect(try await KeyRing.open(in: .file(path)).keys.map(\.id) == ring.keys.map(\.id))
  }

  @Test(arguments: [0o640, 0o604, 0o660, 0o700, 0o777])
  func `a file that other users may read is refused`(permissions: Int) async throws {
    try write(SampleRing.text(SampleRing.first), permissions: permissions)
    let error = await expectKeyRingError(.notPermitted) { try await KeyRing.open(in: .file(path)) }
    #expect(error?.message.contains("chmod 600 \(path)") == true)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    let ring = try await KeyRing.open(in: .file(path))
    try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: path)
    await expectKeyRingError(.notPermitted) { try await ring.rotate() }
    #expect(try String(contentsOfFile: path, encoding: .utf8) == SampleRing.text(SampleRing.first))
  }

  @Test func `a file of another user is refused`() async throws {
    try write(SampleRing.text(SampleRing.first))
    let source = FileKeySource(path: path, fileSystem: POSIXFileSystem(), user: 4711)
    await expectKeyRingError(.notPermitted) { try await KeyRing.open(in: source) }
  }

  @Test func `other things than files are refused`() async throws {
    await expectKeyRingError(.notPermitted) { try await KeyRing.open(in: .file(folder.path), createsIfMissing: true) }
    // A folder that is missing, perhaps because it is not mounted, is not a folder without a ring.
    await expectKeyRingError(.unavailable) {
      try await KeyRing.open(in: .file(folder.path("missing/keys.json")), createsIfMissing: true)
    }
    try write(String(repeating: " ", count: (1 << 20) + 1))
    await expectKeyRingError(.corrupted) { try await KeyRing.open(in: .file(path)) }
  }

  @Test func `a link is followed and stays a link`() async throws {
    try write(SampleRing.text(SampleRing.first))
    let link = folder.path("link")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
    let ring = try await KeyRing.open(in: .file(link))
    try await ring.rotate()
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == path)
    #expect(try await KeyRing.open(in: .file(path)).primary == ring.primary)
    // The destination of the link must be as private as any other file.
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
    await expectKeyRingError(.notPermitted) { try await KeyRing.open(in: .file(link)) }
  }

  @Test func `a leftover of a crash is removed`() async throws {
    let ring = try await KeyRing.open(in: .file(path), createsIfMissing: true)
    let leftover = URL(filePath: path + ".larder-tmp-0123456789abcdef")
    try Data("k".utf8).write(to: leftover)
    try await ring.rotate()
    #expect(try folder.names == ["keys.json", "keys.json.lock"])
    // Opening is enough, because the next change may be a year away. While another process changes the ring, the file
    // may be its own.
    try Data("k".utf8).write(to: leftover)
    let lock = try #require(try FileLock.acquire(path + ".lock", in: POSIXFileSystem()))
    _ = try await KeyRing.open(in: .file(path))
    #expect(try folder.names.count == 3)
    try lock.release()
    _ = try await KeyRing.open(in: .file(path))
    #expect(try folder.names == ["keys.json", "keys.json.lock"])
  }

  @Test func `hard links are refused`() async throws {
    let ring = try await KeyRing.open(in: .file(path), createsIfMissing: true)
    let link = folder.path("link.json")
    try FileManager.default.linkItem(atPath: path, toPath: link)
    for place in [path, link] {
      let error = await expectKeyRingError(.notPermitted) { try await KeyRing.open(in: .file(place)) }
      #expect(error?.message.contains("2 hard links") == true)
    }
    await expectKeyRingError(.notPermitted) { try await ring.rotate() }
    #expect(ring.keys.count == 1)
    try FileManager.default.removeItem(atPath: link)
    try await ring.rotate()
  }

  /// Platforms mount secrets that others can read.
  @Test(arguments: [0o400, 0o440, 0o444, 0o644]) func `mounted secrets are read`(permissions: Int) async throws {
    try write(SampleRing.text(SampleRing.first), permissions: permissions)
    let ring = try await KeyRing.open(in: .mountedSecret(path))
    #expect(ring.primary.description == SampleRing.first.id)
    await expectKeyRingError(.readOnly) { try await ring.rotate() }
    if permissions & 0o077 != 0 {
      let error = await expectKeyRingError(.notPermitted) { try await KeyRing.open(in: .file(path)) }
      #expect(error?.message.contains("mounted secret") == true)
    }
    // Kubernetes mounts links to files that it exchanges.
    let link = folder.path("link")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
    #expect(try await KeyRing.open(in: .mountedSecret(link)).primary == ring.primary)
  }

  @Test func `secrets that others can write are refused`() async throws {
    try write(SampleRing.text(SampleRing.first), permissions: 0o666)
    await expectKeyRingError(.notPermitted) { try await KeyRing.open(in: .mountedSecret(path)) }
    await expectKeyRingError(.notFound) { try await KeyRing.open(in: .mountedSecret(folder.path("missing"))) }
    await expectKeyRingError(.corrupted) { try await KeyRing.open(in: .mountedSecret(folder.path)) }
  }

  /// Two rings lock each other out like two processes, because a lock belongs to the opened file.
  @Test func `two rings that rotate at once keep every key`() async throws {
    let first = try await KeyRing.open(in: .file(path), createsIfMissing: true)
    let second = try await KeyRing.open(in: .file(path))
    let stored = try await withThrowingTaskGroup(of: [[UInt8]].self) { group in
      for ring in [first, second] {
        group.addTask {
          let codec = RawCodec.raw.encrypted(with: ring, purpose: "p")
          var stored: [[UInt8]] = []
          for round in 0..<20 {
            if round.isMultiple(of: 2) {
              try await ring.rotate()
            } else {
              try await ring.promote(ring.addKey())
            }
            stored.append(try codec.bytes(of: [UInt8(round)]))
          }
          return stored
        }
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    let ring = try await KeyRing.open(in: .file(path))
    #expect(ring.keys.count == 41)
    let codec = RawCodec.raw.encrypted(with: ring, purpose: "p")
    for stored in stored { #expect(throws: Never.self) { try codec.value(of: stored) } }
    #expect(stored.count == 40)
  }

  @Test func `a lock that is never released is given up`() async throws {
    let ring = try await KeyRing.open(in: .file(path), createsIfMissing: true)
    let lock = try #require(try FileLock.acquire(path + ".lock", in: POSIXFileSystem()))
    let clock = ManualClock()
    let source = FileKeySource(path: path, fileSystem: POSIXFileSystem(), clock: clock)
    let content = try await source.load()
    let saving = Task { try await source.save([], replacing: content) }
    for _ in 0..<3000 {
      try await clock.waitForSleepers(1)
      clock.advance(by: .milliseconds(10))
    }
    await expectKeyRingError(.unavailable) { try await saving.value }
    try lock.release()
    try await ring.rotate()
    await expectKeyRingError(.changed) { try await source.save([], replacing: content) }
    await expectKeyRingError(.changed) { try await source.save([], replacing: nil) }
  }

  /// After any failure of the disk, the file holds the old ring or the new one, and everything that was encrypted can be
  /// read with it.
  @Test func `every failure of the disk keeps a readable ring`() async throws {
    var failures = 0
    let faults: [(SimulatedFault, Int)] = [(SimulatedFault.powerLoss, 0), (.error(EIO), 1), (.error(ENOSPC), 2)]
    for (fault, number) in faults {
      for operation in 0..<60 {
        let disk = SimulatedFileSystem(seed: UInt64(operation * 3 + number))
        let source = FileKeySource(path: "/keys.json", fileSystem: disk, user: 0)
        let ring = try await KeyRing.open(in: source, createsIfMissing: true)
        let codec = RawCodec.raw.encrypted(with: ring, purpose: "p")
        var stored = [try codec.bytes(of: [0])]
        disk.schedule(fault, atOperation: disk.operationCount + 1 + operation)
        do {
          try await ring.rotate()
        } catch {
          failures += 1
          #expect(error is KeyRingError, "\(error)")
        }
        stored.append(try codec.bytes(of: [1]))
        disk.clearFaults()
        disk.restart()
        let reopened = try await KeyRing.open(in: FileKeySource(path: "/keys.json", fileSystem: disk, user: 0))
        let reading = RawCodec.raw.encrypted(with: reopened, purpose: "p")
        for value in stored { #expect(throws: Never.self) { try reading.value(of: value) } }
      }
    }
    #expect(failures > 20)
  }
}
#endif
