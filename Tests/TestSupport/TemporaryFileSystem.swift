import Foundation

/// A small in-memory file system for one test, which root mounts and unmounts.
package final class TemporaryFileSystem: Sendable {
  /// The reason why file systems cannot be mounted here, or `nil` if they can.
  package static let obstacle: String? = {
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

  /// The mount point.
  package let path = FileManager.default.temporaryDirectory.path + "/larder-mount-\(UUID().uuidString)"

  /// Mounts a file system.
  ///
  /// - Parameter size: The size in the syntax of `mount`, such as `64k`.
  package init(size: String) throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    try TemporaryFileSystem.run("mount", "-t", "tmpfs", "-o", "size=\(size)", "tmpfs", path)
  }

  deinit {
    do {
      // Also if a server that another test started while a file was written here has inherited that file.
      try TemporaryFileSystem.run("umount", "--lazy", path)
      try FileManager.default.removeItem(atPath: path)
    } catch {
      print("could not unmount \(path): \(error)")
    }
  }

  /// Remounts the file system as read-only.
  package func makeReadOnly() throws {
    try TemporaryFileSystem.run("mount", "-o", "remount,ro", path)
  }

  /// The file that takes the room of a full disk.
  private var ballast: String { "\(path)/ballast" }

  /// Fills the file system to the last byte, with a file named `ballast`.
  package func fill() throws {
    let descriptor = open(ballast, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
    defer { close(descriptor) }
    let block = [UInt8](repeating: 1, count: 4096)
    while write(descriptor, block, block.count) > 0 {}
    guard errno == ENOSPC else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
  }

  /// Frees some bytes of a file system that was filled.
  ///
  /// - Parameter bytes: A multiple of the size of a page.
  package func free(_ bytes: Int) throws {
    let size = try FileManager.default.attributesOfItem(atPath: ballast)[.size] as? NSNumber
    guard truncate(ballast, off_t((size?.intValue ?? 0) - bytes)) == 0 else {
      throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }
  }

  private static func run(_ command: String...) throws {
    let run = try CommandRun(command)
    struct Failed: Error { let errors: String }
    guard run.status == 0 else { throw Failed(errors: run.errors) }
  }
}
