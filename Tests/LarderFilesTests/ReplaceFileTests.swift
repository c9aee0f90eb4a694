import Foundation
import LarderFiles
import LarderTesting
import TestSupport
import Testing

@Suite struct ReplaceFileTests {
  struct Unwilling: Error {}

  @Test func `replaces all or nothing`() throws {
    let folder = try TemporaryFolder()
    let fileSystem = POSIXFileSystem()
    let path = folder.path("file")
    try fileSystem.replaceFile(at: path) { try $0.write("one".utf8) }
    #expect(try folder.text("file") == "one")
    #expect(try fileSystem.attributes(at: path)?.permissions == 0o600)
    var existing = try #require(try fileSystem.attributes(at: path))
    existing.permissions = 0o644
    try fileSystem.replaceFile(at: path, like: existing) { try $0.write("two".utf8) }
    #expect(try fileSystem.attributes(at: path)?.permissions == 0o644)
    #expect(throws: Unwilling.self) {
      try fileSystem.replaceFile(at: path) { writer in
        try writer.write("three".utf8)
        throw Unwilling()
      }
    }
    #expect(try folder.text("file") == "two")
    #expect(try folder.names == ["file"], "the temporary file is gone")
  }

  @Test func `writes pieces of every size in order`() throws {
    let folder = try TemporaryFolder()
    let pieces = [0, 1, 65_535, 1, 1, 65_536, 65_537, 200_000, 3].enumerated().map { index, size in
      [UInt8](repeating: UInt8(index), count: size)
    }
    var count: Int64 = 0
    try POSIXFileSystem().replaceFile(at: folder.path("file")) { writer in
      for piece in pieces { try writer.write(piece) }
      count = writer.count
    }
    let content = try POSIXFileSystem().open(folder.path("file"), .read).readAll()
    #expect(content == Array(pieces.joined()))
    #expect(count == Int64(content.count))
  }

  @Test func `removes only its own temporary files`() throws {
    let folder = try TemporaryFolder()
    let others = [
      "file", "file.larder-tmp-", "file.larder-tmp-0123", "file.larder-tmp-0123456789abcdeg", "file.tmp",
      "other.larder-tmp-0123456789abcdef", "file.larder-tmp-0123456789abcdef0",
    ]
    for name in others + ["file.larder-tmp-0123456789abcdef", "file.larder-tmp-ffffffffffffffff"] {
      try folder.write("", to: name)
    }
    try POSIXFileSystem().removeStaleTemporaryFiles(of: folder.path("file"))
    #expect(try folder.names == others.sorted())
  }

  @Test func `power loss leaves one whole version`() throws {
    for operation in 1...12 {
      for seed in 0..<60 as Range<UInt64> {
        let disk = SimulatedFileSystem(seed: seed)
        try disk.place(Array("old".utf8), at: "/file")
        disk.schedule(.powerLoss, atOperation: operation)
        var isDone = false
        do {
          try disk.replaceFile(at: "/file") { try $0.write([UInt8](repeating: 7, count: 2_000)) }
          isDone = true
        } catch is FileError {}
        disk.restart()
        let content = disk.content(at: "/file")
        let isNew = content == [UInt8](repeating: 7, count: 2_000)
        #expect(isNew || (content == Array("old".utf8) && !isDone), "seed \(seed), operation \(operation)")
      }
    }
  }

  @Test func `a full disk throws and leaves the old file`() throws {
    let disk = SimulatedFileSystem(seed: 1)
    try disk.place(Array("old".utf8), at: "/file")
    disk.capacity = 1_000
    #expect(throws: FileError.self) {
      try disk.replaceFile(at: "/file") { try $0.write([UInt8](repeating: 7, count: 2_000)) }
    }
    #expect(disk.content(at: "/file") == Array("old".utf8))
    #expect(try disk.contentsOfDirectory(at: "/") == ["file"])
  }
}
