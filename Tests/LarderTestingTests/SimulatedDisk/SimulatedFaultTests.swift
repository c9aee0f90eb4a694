import Foundation
import LarderFiles
import LarderTesting
import Testing

/// Failing operations of a simulated disk, and the data that a killed process leaves.
@Suite struct SimulatedFaultTests {
  private let disk = SimulatedFileSystem(seed: 7)

  private func fail(next errorNumber: Int32) {
    disk.schedule(.error(errorNumber), atOperation: disk.operationCount + 1)
  }

  /// Returns every operation that can fail, as a call that would succeed.
  private static func calls(
    on disk: SimulatedFileSystem, _ file: any OpenStoreFile
  ) -> [(FileError.Operation, () throws -> Void)] {
    [
      (.open, { _ = try disk.open("/new", .createNew) }),
      (.rename, { try disk.rename("/f", to: "/renamed") }),
      (.removeFile, { try disk.removeFile(at: "/f") }),
      (.createDirectory, { try disk.createDirectory(at: "/directory") }),
      (.synchronizeDirectory, { try disk.synchronizeDirectory(at: "/") }),
      (.contentsOfDirectory, { _ = try disk.contentsOfDirectory(at: "/") }),
      (.attributes, { _ = try disk.attributes(at: "/f") }),
      (.attributes, { _ = try file.attributes() }),
      (.canonicalPath, { _ = try disk.canonicalPath(of: "/f") }),
      (.read, { _ = try file.readOnce(1) }),
      (.write, { _ = try file.writeOnce([9]) }),
      (.truncate, { try file.truncate(to: 0) }),
      (.synchronize, { try file.synchronize() }),
      (.setPermissions, { try file.setPermissions(0o644) }),
      (.setOwner, { try file.setOwner(FileAttributes.Owner(user: 0, group: 0)) }),
      (.setModificationTime, { try file.setModificationTime(1) }),
      (.lock, { _ = try file.lock(.exclusive) }),
    ]
  }

  @Test(arguments: [EIO, ENOSPC, EINTR, EMFILE]) func `every operation fails once and changes nothing`(
    _ errorNumber: Int32
  ) throws {
    try disk.place([1, 2], at: "/f")
    let file = try disk.open("/f", .readWrite)
    let calls = SimulatedFaultTests.calls(on: disk, file)
    // Closing never fails.
    #expect(Set(calls.map(\.0)).union([.close]) == Set(FileError.Operation.allCases))
    for (operation, call) in calls {
      let count = disk.operationCount
      fail(next: errorNumber)
      let error = #expect(throws: FileError.self) { try call() }
      #expect(error?.operation == operation && error?.errorNumber == errorNumber)
      #expect(disk.operationCount == count + 1)
      #expect(disk.content(at: "/f") == [1, 2])
      #expect(try disk.contentsOfDirectory(at: "/") == ["f"])
      #expect(try disk.attributes(at: "/f")?.permissions == 0o600)
    }
    // Each operation succeeds the next time.
    for (operation, call) in calls where operation != .rename { try call() }
  }

  @Test func `scheduled faults can be cancelled`() throws {
    disk.schedule(.error(EIO), atOperation: 1)
    disk.schedule(.powerLoss, atOperation: 2)
    disk.clearFaults()
    _ = try disk.open("/f", .createNew)
    _ = try disk.open("/g", .createNew)
    #expect(disk.operationCount == 2)
  }

  @Test func `a failed synchronization loses data and the next one succeeds`() throws {
    let outcomes = try outcomes { disk -> [UInt8]? in
      try disk.place([1], at: "/f")
      let file = try disk.open("/f", .readWrite)
      try file.write([2])
      disk.schedule(.error(EIO), atOperation: disk.operationCount + 1)
      #expect(throws: FileError(.synchronize, path: "/f", errorNumber: EIO)) { try file.synchronize() }
      try file.synchronize()
      // Programs continue to see it.
      #expect(try file.readAll() == [2])
      disk.losePower()
      return disk.content(at: "/f")
    }
    #expect(outcomes.isSuperset(of: [[1], [2]]))
  }

  @Test func `data rewritten after a failed synchronization is synchronized`() throws {
    try disk.place([1, 1], at: "/f")
    let file = try disk.open("/f", .readWrite)
    try file.write([2, 2])
    fail(next: EIO)
    #expect(throws: FileError.self) { try file.synchronize() }
    try file.write([3, 3])
    try file.synchronize()
    disk.losePower()
    #expect(disk.content(at: "/f") == [3, 3])
  }

  @Test func `an interrupted synchronization loses nothing`() throws {
    try disk.place([1], at: "/f")
    let file = try disk.open("/f", .readWrite)
    try file.write([2])
    fail(next: EINTR)
    try file.synchronizeThroughInterruptions()
    disk.losePower()
    #expect(disk.content(at: "/f") == [2])
  }

  @Test func `a failed synchronization of a directory can be repeated`() throws {
    let file = try disk.open("/f", .createNew)
    try file.synchronize()
    fail(next: EIO)
    #expect(throws: FileError(.synchronizeDirectory, path: "/", errorNumber: EIO)) {
      try disk.synchronizeDirectory(at: "/")
    }
    try disk.synchronizeDirectory(at: "/")
    disk.losePower()
    #expect(disk.content(at: "/f") == [])
  }

  @Test func `transfers can be short`() throws {
    try disk.place([1, 2, 3, 4, 5], at: "/f")
    let file = try disk.open("/f", .readWrite)
    disk.schedule(.shortTransfer, atOperation: disk.operationCount + 1)
    #expect(try file.readOnce(5) == [1, 2, 3])
    disk.schedule(.shortTransfer, atOperation: disk.operationCount + 1)
    #expect(try file.writeOnce([9, 9, 9]) == 2)
    #expect(disk.content(at: "/f") == [9, 9, 3, 4, 5])
    disk.schedule(.shortTransfer, atOperation: disk.operationCount + 1)
    try file.write([8, 8, 8, 8, 8])
    #expect(disk.content(at: "/f") == [8, 8, 8, 8, 8])
    disk.schedule(.shortTransfer, atOperation: disk.operationCount + 1)
    try file.synchronize()
    // A transfer is never shorter than one byte, which a reader would take for the end.
    disk.schedule(.shortTransfer, atOperation: disk.operationCount + 1)
    #expect(try file.readOnce(1) == [8])
  }

  @Test func `a full disk accepts data that fits`() throws {
    try disk.place([1, 1, 1, 1], at: "/f")
    let file = try disk.open("/new", .createNew)
    disk.capacity = 7
    #expect(try file.writeOnce([2, 2, 2, 2, 2]) == 3)
    #expect(throws: FileError(.write, path: "/new", errorNumber: ENOSPC)) { try file.writeOnce([2], at: 3) }
    // Existing content can be overwritten.
    #expect(try file.writeOnce([3, 3, 3]) == 3)
    // A removed file uses its space while it is open.
    let held = try disk.open("/f", .read)
    try disk.removeFile(at: "/f")
    #expect(throws: FileError.self) { try file.writeOnce([2], at: 3) }
    try held.close()
    #expect(try file.writeOnce([2, 2], at: 3) == 2)
    disk.capacity = nil
    #expect(try file.writeOnce([UInt8](repeating: 4, count: 100)) == 100)
  }

  // MARK: Killed processes

  @Test func `a killed process leaves its writes and no locks`() throws {
    let file = try disk.open("/f", .createNew)
    try file.write([1])
    #expect(try file.lock(.exclusive))
    #expect(try file.lock(.exclusive))
    let other = try disk.open("/f", .readWrite)
    #expect(try !other.lock(.exclusive))
    disk.killProcess()
    #expect(throws: FileError(.write, path: "/f", errorNumber: EBADF)) { try file.writeOnce([2]) }
    #expect(disk.content(at: "/f") == [1])
    let next = try disk.open("/f", .readWrite)
    #expect(try next.lock(.exclusive))
    #expect(try next.readAll() == [1])
  }

  @Test func `a lock ends with its file`() throws {
    var first: (any OpenStoreFile)? = try disk.open("/f", .createNew)
    #expect(try first?.lock(.exclusive) == true)
    let second = try disk.open("/f", .readWrite)
    #expect(try !second.lock(.exclusive))
    try first?.close()
    #expect(try second.lock(.exclusive))
    first = try disk.open("/f", .readWrite)
    #expect(try first?.lock(.exclusive) == false)
    try second.close()
    #expect(try first?.lock(.exclusive) == true)
    // Releasing the last reference closes the file.
    first = nil
    #expect(try disk.open("/f", .readWrite).lock(.exclusive))
  }
}
