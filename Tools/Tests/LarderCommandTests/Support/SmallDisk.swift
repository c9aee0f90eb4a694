import Foundation

/// An in-memory file system of 2 MiB for one test, which root mounts and unmounts.
final class SmallDisk: Sendable {
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

  private static let size = 2 << 20

  /// The mount point.
  let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-disk-\(UUID())").path

  private var ballast: String { "\(path)/ballast" }

  init() throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    try SmallDisk.run("mount", "-t", "tmpfs", "-o", "size=\(SmallDisk.size)", "tmpfs", path)
  }

  deinit {
    do {
      try SmallDisk.run("umount", path)
      try FileManager.default.removeItem(atPath: path)
    } catch {
      print("could not unmount \(path): \(error)")
    }
  }

  /// Fills the empty disk with a file named `ballast`.
  ///
  /// - Parameter room: The number of bytes that stay free, a multiple of the size of a page.
  func fill(leaving room: Int) throws {
    try Data(count: SmallDisk.size - room).write(to: URL(fileURLWithPath: ballast))
  }

  /// Removes the file `ballast`.
  func empty() throws { try FileManager.default.removeItem(atPath: ballast) }

  /// Returns the names of the files in the top folder.
  func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }

  private static func run(_ command: String...) throws {
    struct Failed: Error { let command: [String] }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = command
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw Failed(command: command) }
  }
}
