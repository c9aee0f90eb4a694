import Foundation
import LarderFiles
import LarderTesting
import Testing

/// Power loss may change data that was not synchronized, but keeps synchronized data.
@Suite struct PowerLossTests {
  private static let old = [UInt8](repeating: 1, count: 1536)
  private static let new = [UInt8](repeating: 2, count: 1536)

  private static func write(_ bytes: [UInt8], to path: String, on disk: SimulatedFileSystem) throws {
    let file = try disk.open(path, .createIfMissing)
    try file.write(bytes)
    try file.synchronize()
  }

  // MARK: Content

  @Test func `synchronized data stays`() throws {
    let outcomes = try outcomes { disk in
      try PowerLossTests.write(PowerLossTests.old, to: "/f", on: disk)
      try disk.synchronizeDirectory(at: "/")
      disk.losePower()
      return disk.content(at: "/f")
    }
    #expect(outcomes == [PowerLossTests.old])
  }

  @Test func `a write is kept dropped torn at sectors or garbage`() throws {
    let outcomes = try outcomes { disk -> [UInt8] in
      try disk.place(PowerLossTests.old, at: "/f")
      try disk.open("/f", .readWrite).write(PowerLossTests.new)
      disk.losePower()
      return disk.content(at: "/f") ?? []
    }
    #expect(outcomes.allSatisfy { $0.count == 1536 })
    #expect(outcomes.contains(PowerLossTests.old) && outcomes.contains(PowerLossTests.new))
    var torn: Set<[UInt8]> = []
    var garbage = 0
    for content in outcomes {
      let sectors = stride(from: 0, to: content.count, by: 512).map { content[$0..<$0 + 512] }
      // A sector is old or new as a whole, or garbage, which is hardly 512 equal bytes.
      let isWhole = sectors.map { Set($0) == [1] || Set($0) == [2] }
      if isWhole.allSatisfy({ $0 }) { torn.insert(sectors.map { $0[$0.startIndex] }) } else { garbage += 1 }
    }
    // Each combination of three old or new sectors occurs.
    #expect(torn.count == 8)
    #expect(garbage > 10)
  }

  @Test func `sectors start at multiples of 512`() throws {
    let outcomes = try outcomes { disk -> [Int] in
      try disk.place([UInt8](repeating: 1, count: 1024), at: "/f")
      try disk.open("/f", .readWrite).write([UInt8](repeating: 2, count: 24), at: 500)
      disk.losePower()
      let content = disk.content(at: "/f") ?? []
      #expect(content.prefix(500).allSatisfy { $0 == 1 } && content.dropFirst(524).allSatisfy { $0 == 1 })
      return [content[500..<512], content[512..<524]].map { part in
        Set(part).count == 1 ? Int(part[part.startIndex]) : -1
      }
    }
    #expect(outcomes.isSuperset(of: [[1, 1], [1, 2], [2, 1], [2, 2], [-1, -1], [-1, 1], [1, -1]]))
  }

  @Test func `an append leaves any length and holes of zeros`() throws {
    let outcomes = try outcomes { disk -> [UInt8] in
      try disk.place([1], at: "/f")
      let file = try disk.open("/f", .readWrite)
      for part in 0..<3 { try file.write([UInt8](repeating: 2, count: 8), at: Int64(1 + part * 8)) }
      disk.losePower()
      return disk.content(at: "/f") ?? []
    }
    #expect(outcomes.allSatisfy { $0.first == 1 && $0.count <= 25 })
    #expect(outcomes.contains([1]))
    // The last record without those before it, which a log must not mistake for its end.
    #expect(outcomes.contains([1] + [UInt8](repeating: 0, count: 16) + [UInt8](repeating: 2, count: 8)))
    // The new length, but not the content.
    #expect(outcomes.contains([1] + [UInt8](repeating: 0, count: 24)))
    #expect(outcomes.contains([1] + [UInt8](repeating: 2, count: 24)))
  }

  @Test func `a truncation is kept or dropped`() throws {
    let outcomes = try outcomes { disk -> [UInt8]? in
      try disk.place([1, 2, 3, 4], at: "/f")
      try disk.open("/f", .readWrite).truncate(to: 2)
      #expect(disk.content(at: "/f") == [1, 2])
      disk.losePower()
      return disk.content(at: "/f")
    }
    #expect(outcomes == [[1, 2], [1, 2, 3, 4]])
  }

  @Test func `synchronizing one file leaves others in doubt`() throws {
    let outcomes = try outcomes { disk in
      try disk.place([1], at: "/f")
      try disk.place([1], at: "/g")
      let file = try disk.open("/f", .readWrite)
      try file.write([2])
      try disk.open("/g", .readWrite).write([2])
      try file.synchronize()
      disk.losePower()
      #expect(disk.content(at: "/f") == [2])
      return disk.content(at: "/g") == [1]
    }
    #expect(outcomes == [true, false])
  }

  // MARK: Names

  @Test func `a file without a durable name may disappear`() throws {
    let outcomes = try outcomes { disk -> [UInt8]? in
      try PowerLossTests.write([1], to: "/f", on: disk)
      disk.losePower()
      return disk.content(at: "/f")
    }
    #expect(outcomes == [nil, [1]])
  }

  @Test func `a removed file may come back`() throws {
    let outcomes = try outcomes { disk -> [UInt8]? in
      try disk.place([1], at: "/f")
      try disk.removeFile(at: "/f")
      #expect(try disk.attributes(at: "/f") == nil)
      disk.losePower()
      return disk.content(at: "/f")
    }
    #expect(outcomes == [nil, [1]])
  }

  @Test func `a replacing rename leaves the old file or the new`() throws {
    let outcomes = try outcomes { disk -> [[UInt8]?] in
      try disk.place([1], at: "/f")
      try PowerLossTests.write([2], to: "/t", on: disk)
      try disk.synchronizeDirectory(at: "/")
      try disk.rename("/t", to: "/f")
      #expect(disk.content(at: "/f") == [2] && disk.content(at: "/t") == nil)
      disk.losePower()
      return [disk.content(at: "/f"), disk.content(at: "/t")]
    }
    #expect(outcomes == [[[1], [2]], [[2], nil]])
  }

  @Test func `a rename before the content is durable can leave an empty file`() throws {
    let outcomes = try outcomes { disk -> [UInt8]? in
      try disk.place([1], at: "/f")
      try disk.open("/t", .createNew).write([2])
      try disk.rename("/t", to: "/f")
      try disk.synchronizeDirectory(at: "/")
      disk.losePower()
      return disk.content(at: "/f")
    }
    #expect(outcomes.isSuperset(of: [[], [2], [0]]))
    #expect(!outcomes.contains([1]) && !outcomes.contains(nil))
  }

  @Test func `changes of names succeed or fail independently`() throws {
    let outcomes = try outcomes { disk -> [String] in
      try disk.place([1], at: "/a")
      _ = try disk.open("/b", .createNew)
      try disk.removeFile(at: "/a")
      _ = try disk.open("/c", .createNew)
      disk.losePower()
      return try disk.contentsOfDirectory(at: "/")
    }
    #expect(outcomes.count == 8)
  }

  @Test func `a rename between directories affects both or neither`() throws {
    let outcomes = try outcomes { disk -> [[UInt8]?] in
      try PowerLossTests.makeDirectories(on: disk)
      try disk.place([1], at: "/d/f")
      try disk.place([2], at: "/e/f")
      try disk.rename("/d/f", to: "/e/f")
      disk.losePower()
      return [disk.content(at: "/d/f"), disk.content(at: "/e/f")]
    }
    #expect(outcomes == [[[1], [2]], [nil, [1]]])
  }

  @Test(arguments: ["/d", "/e"]) func `a rename between directories is durable once one was synchronized`(
    _ directory: String
  ) throws {
    let outcomes = try outcomes { disk -> [[UInt8]?] in
      try PowerLossTests.makeDirectories(on: disk)
      try PowerLossTests.write([1], to: "/d/f", on: disk)
      try disk.rename("/d/f", to: "/e/g")
      try disk.synchronizeDirectory(at: directory)
      disk.losePower()
      return [disk.content(at: "/d/f"), disk.content(at: "/e/g")]
    }
    #expect(outcomes == [[nil, [1]]])
  }

  private static func makeDirectories(on disk: SimulatedFileSystem) throws {
    try disk.createDirectory(at: "/d")
    try disk.createDirectory(at: "/e")
    try disk.synchronizeDirectory(at: "/")
  }

  @Test func `a non durable directory disappears with its files`() throws {
    let outcomes = try outcomes { disk -> Bool in
      try disk.createDirectory(at: "/d")
      try PowerLossTests.write([1], to: "/d/f", on: disk)
      try disk.synchronizeDirectory(at: "/d")
      disk.losePower()
      #expect((disk.content(at: "/d/f") == [1]) == (try disk.attributes(at: "/d") != nil))
      return disk.content(at: "/d/f") == [1]
    }
    #expect(outcomes == [true, false])
  }

  @Test func `a removed file is usable until it is closed`() throws {
    let disk = SimulatedFileSystem(seed: 1)
    try disk.place([1], at: "/f")
    let file = try disk.open("/f", .readWrite)
    try disk.removeFile(at: "/f")
    try file.write([2, 3])
    try file.synchronize()
    #expect(try file.readAll() == [2, 3])
    #expect(try file.attributes().linkCount == 0)
    // A new file with the same name is a different file.
    try disk.open("/f", .createNew).write([4])
    #expect(try file.readAll() == [2, 3])
    #expect(disk.content(at: "/f") == [4])
    try disk.synchronizeDirectory(at: "/")
    disk.losePower()
    #expect(throws: FileError(.read, path: "/f", errorNumber: EBADF)) { try file.readOnce(1) }
    #expect(try disk.contentsOfDirectory(at: "/") == ["f"])
  }

  // MARK: Timing

  @Test func `power is lost at each operation until a restart`() throws {
    func run(on disk: SimulatedFileSystem) throws {
      let file = try disk.open("/t", .createNew)
      try file.write(PowerLossTests.new)
      try file.synchronize()
      try disk.rename("/t", to: "/f")
      try disk.synchronizeDirectory(at: "/")
    }
    for operation in 1...6 {
      let contents = try outcomes { disk -> [UInt8]? in
        try disk.place(PowerLossTests.old, at: "/f")
        disk.schedule(.powerLoss, atOperation: operation)
        do {
          try run(on: disk)
          #expect(operation == 6)
        } catch let error as FileError {
          #expect(error.errorNumber == EIO)
          #expect(!disk.hasPower)
          let count = disk.operationCount
          #expect(count == operation)
          #expect(throws: FileError.self) { try disk.attributes(at: "/f") }
          #expect(disk.operationCount == count)
        }
        disk.restart()
        #expect(disk.hasPower)
        return disk.content(at: "/f")
      }
      let allowed: Set<[UInt8]?> =
        switch operation {
        case ...3: [PowerLossTests.old]
        case 4, 5: [PowerLossTests.old, PowerLossTests.new]
        default: [PowerLossTests.new]
        }
      #expect(contents == allowed, "operation \(operation)")
    }
  }

  @Test func `lose power ends with power on`() throws {
    let disk = SimulatedFileSystem(seed: 1)
    disk.schedule(.powerLoss, atOperation: 1)
    #expect(throws: FileError.self) { try disk.open("/f", .createNew) }
    disk.losePower()
    #expect(disk.hasPower)
    _ = try disk.open("/g", .createNew)
  }

  @Test func `the same seed leaves the same content`() throws {
    func run(seed: UInt64) throws -> [[UInt8]?] {
      let disk = SimulatedFileSystem(seed: seed)
      for name in ["/a", "/b", "/c", "/d"] { try disk.open(name, .createNew).write(PowerLossTests.new) }
      try disk.rename("/d", to: "/a")
      disk.losePower()
      return ["/a", "/b", "/c", "/d"].map { disk.content(at: $0) }
    }
    for seed in 0..<50 as Range<UInt64> { #expect(try run(seed: seed) == run(seed: seed)) }
    #expect(Set(try (0..<50).map { try run(seed: $0) }).count > 20)
  }
}
