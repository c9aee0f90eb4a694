import Foundation
import LarderFiles
import LarderTesting
import Testing

@Suite struct AppendLogTests {
  let disk = SimulatedFileSystem(seed: 1)

  private func log(at size: Int64 = 0) throws -> AppendLog {
    try AppendLog(continuing: disk.open("/log", .createIfMissing), at: size)
  }

  private var content: String { String(decoding: disk.content(at: "/log") ?? [], as: UTF8.self) }

  @Test func `appends after the valid records and removes the rest`() throws {
    try disk.place(Array("good torn".utf8), at: "/log")
    var log = try log(at: 5)
    #expect(content == "good ")
    try log.append(Array("new".utf8))
    #expect(content == "good new")
    #expect(log.size == 8 && log.durableSize == 5)
    try log.synchronize()
    #expect(log.durableSize == 8)
  }

  @Test func `records removed at the start never return`() throws {
    for seed in 0..<100 as Range<UInt64> {
      let disk = SimulatedFileSystem(seed: seed)
      try disk.place(Array("good torn".utf8), at: "/log")
      _ = try AppendLog(continuing: disk.open("/log", .readWrite), at: 5)
      disk.losePower()
      #expect(disk.content(at: "/log") == Array("good ".utf8), "seed \(seed)")
    }
  }

  @Test func `a failed append changes nothing and the log stays usable`() throws {
    var log = try log()
    try log.append(Array("one".utf8))
    disk.schedule(.shortTransfer, atOperation: disk.operationCount + 1)
    disk.schedule(.error(ENOSPC), atOperation: disk.operationCount + 2)
    #expect(throws: FileError(.write, path: "/log", errorNumber: ENOSPC)) { try log.append(Array("failed".utf8)) }
    #expect(content == "one" && log.failure == nil)
    try log.append(Array("two".utf8))
    #expect(content == "onetwo")
  }

  @Test func `continues after short writes and interruptions`() throws {
    try disk.place([], at: "/log")
    var log = try log()
    disk.schedule(.shortTransfer, atOperation: disk.operationCount + 1)
    disk.schedule(.error(EINTR), atOperation: disk.operationCount + 2)
    disk.schedule(.shortTransfer, atOperation: disk.operationCount + 3)
    try log.append(Array("a long record".utf8))
    #expect(content == "a long record")
    disk.schedule(.error(EINTR), atOperation: disk.operationCount + 1)
    try log.synchronize()
    disk.losePower()
    #expect(content == "a long record")
  }

  @Test func `a failed synchronization is not retried`() throws {
    var log = try log()
    try log.append(Array("one".utf8))
    let failure = FileError(.synchronize, path: "/log", errorNumber: EIO)
    disk.schedule(.error(EIO), atOperation: disk.operationCount + 1)
    #expect(throws: failure) { try log.synchronize() }
    #expect(log.failure == failure)
    let operationCount = disk.operationCount
    #expect(throws: failure) { try log.synchronize() }
    #expect(throws: failure) { try log.append([1]) }
    #expect(disk.operationCount == operationCount)
    #expect(log.durableSize == 0)
  }

  @Test func `a failed append that cannot be removed makes the log unusable`() throws {
    var log = try log()
    disk.schedule(.error(ENOSPC), atOperation: disk.operationCount + 1)
    disk.schedule(.error(EIO), atOperation: disk.operationCount + 2)
    #expect(throws: FileError(.write, path: "/log", errorNumber: ENOSPC)) { try log.append([1]) }
    #expect(log.failure == FileError(.truncate, path: "/log", errorNumber: EIO))
    #expect(throws: FileError(.truncate, path: "/log", errorNumber: EIO)) { try log.append([1]) }
  }

  @Test func `never writes past the end of the file`() throws {
    try disk.place(Array("four".utf8), at: "/log")
    #expect(throws: FileError.self) { try self.log(at: 5) }
    #expect(content == "four")
  }

  @Test func `synchronizing nothing touches nothing`() throws {
    var log = try log()
    let operationCount = disk.operationCount
    try log.synchronize()
    #expect(disk.operationCount == operationCount)
  }
}
