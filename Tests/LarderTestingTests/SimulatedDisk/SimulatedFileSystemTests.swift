import Foundation
import LarderFiles
import LarderTesting
import Testing

/// Without faults, a simulated disk behaves as the real file system.
@Suite struct SimulatedFileSystemTests {
  private let disk = SimulatedFileSystem(seed: 1)

  private func expect(
    _ errorNumber: Int32, _ operation: FileError.Operation, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () throws -> Void
  ) {
    let error = #expect(throws: FileError.self, sourceLocation: sourceLocation) { try body() }
    #expect(error?.errorNumber == errorNumber, sourceLocation: sourceLocation)
    #expect(error?.operation == operation, sourceLocation: sourceLocation)
  }

  @Test func `opens by mode`() throws {
    expect(ENOENT, .open) { _ = try disk.open("/f", .read) }
    expect(ENOENT, .open) { _ = try disk.open("/f", .readWrite) }
    try disk.open("/f", .createIfMissing).write([1])
    #expect(try disk.open("/f", .createIfMissing).readAll() == [1])
    expect(EEXIST, .open) { _ = try disk.open("/f", .createNew) }
    let file = try disk.open("/f", .read)
    expect(EBADF, .write) { _ = try file.writeOnce([2]) }
    expect(EINVAL, .truncate) { try file.truncate(to: 0) }
    try file.close()
    try file.close()
    expect(EBADF, .read) { _ = try file.readOnce(1) }
  }

  @Test func `reads and writes anywhere`() throws {
    let file = try disk.open("/f", .createNew)
    #expect(try file.readOnce(4) == [])
    try file.write([1, 2, 3], at: 2)
    #expect(try file.readAll() == [0, 0, 1, 2, 3])
    try file.write([9, 9], at: 1)
    try file.write([7, 8, 7], at: 4)
    #expect(try file.readAll() == [0, 9, 9, 2, 7, 8, 7])
    #expect(try file.readOnce(10, at: 5) == [8, 7])
    #expect(try file.readOnce(10, at: 7) == [] && file.readOnce(10, at: 100) == [])
    try file.truncate(to: 3)
    try file.truncate(to: 5)
    #expect(try file.readAll() == [0, 9, 9, 0, 0])
    #expect(try file.attributes().size == 5)
  }

  @Test func `attributes distinguish files`() throws {
    #expect(try disk.attributes(at: "/f") == nil)
    let file = try disk.open("/f", .createNew)
    try disk.createDirectory(at: "/d")
    try file.setPermissions(0o640)
    let attributes = try file.attributes()
    #expect(try disk.attributes(at: "/f") == attributes)
    #expect(attributes.kind == .file && attributes.permissions == 0o640 && attributes.linkCount == 1)
    #expect(try disk.attributes(at: "/d")?.kind == .directory)
    #expect(try disk.attributes(at: "/")?.kind == .directory)
    try disk.rename("/f", to: "/g")
    #expect(try disk.attributes(at: "/g")?.identity == attributes.identity)
    #expect(try disk.open("/f", .createNew).attributes().identity != attributes.identity)
    #expect(try file.attributes().linkCount == 1)
    try disk.rename("/f", to: "/g")
    #expect(try file.attributes().linkCount == 0)
    disk.killProcess()
    disk.losePower()
    #expect(try disk.contentsOfDirectory(at: "/").allSatisfy { try disk.attributes(at: "/\($0)")?.linkCount == 1 })
  }

  @Test func `directories list their names`() throws {
    try disk.createDirectory(at: "/d")
    try disk.createDirectory(at: "/d/e")
    try disk.place([1], at: "/d/e/f")
    #expect(try disk.contentsOfDirectory(at: "/d") == ["e"])
    #expect(try disk.contentsOfDirectory(at: "/") == ["d"])
    #expect(try disk.canonicalPath(of: "d//./e/../e/new") == "/d/e/new")
    #expect(try disk.canonicalPath(of: "/") == "/")
    expect(EEXIST, .createDirectory) { try disk.createDirectory(at: "/d") }
    expect(EEXIST, .createDirectory) { try disk.createDirectory(at: "/d/e/f") }
    expect(ENOENT, .createDirectory) { try disk.createDirectory(at: "/x/y") }
    expect(ENOENT, .open) { _ = try disk.open("/x/f", .createNew) }
    expect(ENOENT, .open) { _ = try disk.open("", .createNew) }
    expect(ENOENT, .contentsOfDirectory) { _ = try disk.contentsOfDirectory(at: "/x") }
    expect(ENOENT, .synchronizeDirectory) { try disk.synchronizeDirectory(at: "/x") }
    expect(ENOENT, .canonicalPath) { _ = try disk.canonicalPath(of: "/x/y") }
    expect(ENOTDIR, .open) { _ = try disk.open("/d/e/f/g", .createNew) }
    expect(ENOTDIR, .attributes) { _ = try disk.attributes(at: "/d/e/f/g") }
    expect(ENOTDIR, .contentsOfDirectory) { _ = try disk.contentsOfDirectory(at: "/d/e/f") }
    expect(ENOTDIR, .synchronizeDirectory) { try disk.synchronizeDirectory(at: "/d/e/f") }
    expect(EISDIR, .open) { _ = try disk.open("/d", .readWrite) }
    expect(EISDIR, .open) { _ = try disk.open("/", .read) }
    expect(ENOTEMPTY, .removeFile) { try disk.removeFile(at: "/d") }
    expect(ENOENT, .removeFile) { try disk.removeFile(at: "/x") }
    expect(ENAMETOOLONG, .open) { _ = try disk.open("/" + String(repeating: "x", count: 256), .createNew) }
    expect(EISDIR, .write) { try disk.place([1], at: "/d") }
    #expect(disk.content(at: "/d/e/f") == [1])
    #expect(disk.content(at: "/d") == nil && disk.content(at: "/x/y") == nil)
    try disk.removeFile(at: "/d/e/f")
    try disk.removeFile(at: "/d/e")
    #expect(try disk.contentsOfDirectory(at: "/d") == [])
  }

  @Test func `renames files and directories`() throws {
    try disk.createDirectory(at: "/d")
    try disk.createDirectory(at: "/d/e")
    try disk.place([1], at: "/f")
    expect(ENOENT, .rename) { try disk.rename("/x", to: "/f") }
    expect(ENOENT, .rename) { try disk.rename("/f", to: "/x/f") }
    expect(EISDIR, .rename) { try disk.rename("/f", to: "/d") }
    expect(ENOTDIR, .rename) { try disk.rename("/d", to: "/f") }
    expect(EINVAL, .rename) { try disk.rename("/d", to: "/d/e/d") }
    try disk.rename("/f", to: "/f")
    #expect(disk.content(at: "/f") == [1])
    try disk.rename("/f", to: "/d/e/f")
    try disk.createDirectory(at: "/g")
    expect(ENOTEMPTY, .rename) { try disk.rename("/g", to: "/d") }
    try disk.rename("/d", to: "/g")
    #expect(disk.content(at: "/g/e/f") == [1])
    #expect(try disk.contentsOfDirectory(at: "/") == ["g"])
  }

  @Test func `an open file follows its rename`() throws {
    let file = try disk.open("/t", .createNew)
    try file.write([1])
    try disk.place([2], at: "/f")
    let replaced = try disk.open("/f", .read)
    try disk.rename("/t", to: "/f")
    try file.write([3], at: 1)
    #expect(try disk.open("/f", .read).readAll() == [1, 3])
    #expect(try replaced.readAll() == [2])
  }

  @Test func `only placed files are durable`() throws {
    var others: Set<[UInt8]?> = []
    for seed in 0..<50 as Range<UInt64> {
      let disk = SimulatedFileSystem(seed: seed)
      _ = try disk.open("/t", .createNew)
      try disk.rename("/t", to: "/f")
      _ = try disk.open("/other", .createNew)
      try disk.place([1], at: "/f")
      _ = try disk.open("/g", .createNew)
      try disk.rename("/g", to: "/h")
      try disk.place([2], at: "/g")
      disk.losePower()
      #expect(disk.content(at: "/f") == [1] && disk.content(at: "/g") == [2])
      others.insert(disk.content(at: "/other"))
    }
    #expect(others == [nil, []])
  }

  @Test func `operations are counted`() throws {
    #expect(disk.operationCount == 0)
    let file = try disk.open("/f", .createNew)
    try file.write([1])
    _ = disk.content(at: "/f")
    try disk.place([2], at: "/g")
    try file.close()
    #expect(disk.operationCount == 2)
  }

  @Test func `several threads may use a disk`() async throws {
    let disk = disk
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          for index in 0..<50 {
            try disk.open("/\(task)-\(index)", .createNew).write([UInt8(task)])
            try disk.rename("/\(task)-\(index)", to: "/\(task)")
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try disk.contentsOfDirectory(at: "/") == (0..<8).map { "\($0)" })
    #expect(disk.operationCount == 8 * 50 * 3 + 1)
  }
}
