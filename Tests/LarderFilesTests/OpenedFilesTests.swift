import Foundation
import LarderTesting
import TestSupport
import Testing

@testable import LarderFiles

@Suite struct OpenedFilesTests {
  private let folder: TemporaryFolder
  private let fileSystem = POSIXFileSystem()
  private let file: any OpenStoreFile
  private let lock: any OpenStoreFile
  private var opened = OpenedFiles()

  init() throws {
    folder = try TemporaryFolder()
    try FileManager.default.createDirectory(atPath: folder.path("store"), withIntermediateDirectories: false)
    file = try fileSystem.open(folder.path("store/data"), .createNew)
    lock = try fileSystem.open(folder.path("store/lock"), .createNew)
    opened.note(try file.attributes().identity, at: folder.path("store/data"), as: .data)
    opened.note(try lock.attributes().identity, at: folder.path("store/lock"), as: .lock)
  }

  private var mismatch: OpenedFiles.Mismatch? {
    get throws { try opened.firstMismatch(in: fileSystem) }
  }

  @Test func `unmoved files match`() throws {
    #expect(try mismatch == nil)
    try [UInt8](repeating: 1, count: 3).withUnsafeBytes { try file.writeAll($0, at: 0) }
    try file.setPermissions(0o640)
    try FileManager.default.setAttributes(
      [.modificationDate: Date.distantPast], ofItemAtPath: folder.path("store/data"))
    #expect(try mismatch == nil, "content, permissions and times do not identify files")
  }

  @Test(arguments: ["data", "lock"]) func `a file that was moved removed or replaced is found`(_ name: String) throws {
    let path = folder.path("store/\(name)")
    let role: OpenedFiles.Role = name == "lock" ? .lock : .data
    try fileSystem.rename(path, to: folder.path("aside"))
    #expect(try mismatch == OpenedFiles.Mismatch(path: path, role: role, isMissing: true))
    // While the file is open, no other file gets its inode, however many are created.
    for _ in 0..<20 {
      _ = try fileSystem.open(path, .createNew)
      #expect(try mismatch == OpenedFiles.Mismatch(path: path, role: role, isMissing: false))
      try fileSystem.removeFile(at: path)
    }
    try fileSystem.rename(folder.path("aside"), to: path)
    #expect(try mismatch == nil, "it is the same file again")
  }

  @Test func `a replaced folder is found`() throws {
    try fileSystem.rename(folder.path("store"), to: folder.path("old"))
    #expect(try mismatch?.isMissing == true)
    try fileSystem.createDirectory(at: folder.path("store"))
    _ = try fileSystem.open(folder.path("store/data"), .createNew)
    #expect(try mismatch == OpenedFiles.Mismatch(path: folder.path("store/data"), role: .data, isMissing: false))
  }

  @Test mutating func `files can be added again and removed`() throws {
    let next = try fileSystem.open(folder.path("next"), .createNew)
    try fileSystem.rename(folder.path("next"), to: folder.path("store/data"))
    #expect(try mismatch?.role == .data)
    opened.note(try next.attributes().identity, at: folder.path("store/data"), as: .data)
    #expect(try mismatch == nil)
    try fileSystem.removeFile(at: folder.path("store/data"))
    opened.forget(folder.path("store/data"))
    #expect(try mismatch == nil)
  }
}
