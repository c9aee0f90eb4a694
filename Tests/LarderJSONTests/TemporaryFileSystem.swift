import Foundation
import Testing

/// A small file system of a test's own, in memory, mounted and unmounted by root.
final class TemporaryFileSystem: Sendable {
  /// Why there can be none here, or `nil` where there can.
  static let obstacle: String? = {
    #if os(Linux)
    guard geteuid() == 0 else { return "mounting a file system takes root" }
    do {
      _ = try TemporaryFileSystem(size: "64k")
      return nil
    } catch {
      return "this system does not let root mount a file system"
    }
    #else
    return "there is no tmpfs here"
    #endif
  }()

  let path = FileManager.default.temporaryDirectory.path + "/LarderJSONTests-mount-\(UUID().uuidString)"

  init(size: String) throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    try TemporaryFileSystem.run("mount", "-t", "tmpfs", "-o", "size=\(size)", "tmpfs", path)
  }

  deinit {
    do {
      try TemporaryFileSystem.run("umount", path)
      try FileManager.default.removeItem(atPath: path)
    } catch {
      print("could not unmount \(path): \(error)")
    }
  }

  func makeReadOnly() throws {
    try TemporaryFileSystem.run("mount", "-o", "remount,ro", path)
  }

  private static func run(_ command: String...) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = command
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    struct Failed: Error {}
    guard process.terminationStatus == 0 else { throw Failed() }
  }
}
