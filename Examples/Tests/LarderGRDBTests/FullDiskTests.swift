import Foundation
import GRDB
import Larder
import LarderGRDB
import Testing

/// The advice of the guide for a full disk.
@Suite(.timeLimit(.minutes(5)), .enabled(if: SmallDisk.obstacle == nil, "\(SmallDisk.obstacle ?? "")"))
struct FullDiskTests {
  @Test func `entries are removed once there is room for the log`() async throws {
    let disk = try SmallDisk()
    let pool = try DatabasePool(path: "\(disk.path)/app.sqlite")
    let store = try await GRDBStore(in: pool, codec: .raw)
    var count = 0
    let error = await #expect(throws: StoreError.self) {
      while true {
        try await store.setValue([UInt8](repeating: 1, count: 3000), forKey: StoreKey(integer: count))
        count += 1
      }
    }
    #expect(error?.code == .full && error?.outcome == .nothingChanged && count > 400)
    let log = try FileManager.default.attributesOfItem(atPath: "\(disk.path)/app.sqlite-wal")[.size] as? Int
    try disk.free((128 << 10) + #require(log))
    while let entries = try await store.entries(in: .all, limit: 8, order: .ascending).nonEmpty {
      do {
        try await store.apply(ChangeBatch(entries.map { .remove($0.key) }))
      } catch let error as StoreError where error.code == .full {
        _ = try await pool.writeWithoutTransaction { try $0.checkpoint() }
        try await store.apply(ChangeBatch(entries.map { .remove($0.key) }))
      }
    }
    // New entries use the pages of the removed ones.
    for number in 0..<count / 2 {
      try await store.setValue([UInt8](repeating: 2, count: 3000), forKey: StoreKey(integer: number))
    }
    #expect(try await store.verify().findings == [])
    try await store.close()
    try pool.close()
  }
}

extension Array {
  fileprivate var nonEmpty: Self? { isEmpty ? nil : self }
}

/// An in-memory file system of 16 MiB for one test, which root mounts and unmounts, and a file of 6 MiB on it.
private final class SmallDisk {
  /// The reason why file systems cannot be mounted here, or `nil` if they can.
  static let obstacle: String? = {
    #if os(Linux)
    guard geteuid() == 0 else { return "mounting a file system takes root" }
    do {
      _ = try SmallDisk()
      return nil
    } catch {
      return "this system does not let root mount a file system"
    }
    #else
    return "there is no tmpfs here"
    #endif
  }()

  private static let ballastSize = 6 << 20

  /// The mount point.
  let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-disk-\(UUID())").path

  private var ballast: URL { URL(filePath: "\(path)/ballast") }

  init() throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    try SmallDisk.run("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", path)
    try Data(count: SmallDisk.ballastSize).write(to: ballast)
  }

  deinit {
    do {
      try SmallDisk.run("umount", path)
      try FileManager.default.removeItem(atPath: path)
    } catch {
      Issue.record(error, "the file system of a test could not be unmounted")
    }
  }

  /// Frees a part of the file.
  func free(_ size: Int) throws {
    let file = try FileHandle(forWritingTo: ballast)
    try file.truncate(atOffset: UInt64(SmallDisk.ballastSize - size))
    try file.close()
  }

  private static func run(_ command: String...) throws {
    struct Failed: Error { let command: [String] }
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = command
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw Failed(command: command) }
  }
}
