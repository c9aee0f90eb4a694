import Foundation

/// A folder for the files of a run, inside the temporary folder, which the environment variable `TMPDIR` can replace.
public struct ScratchFolder: Sendable {
  private let url: URL

  /// Creates a folder.
  ///
  /// - Throws: The error of the file system.
  public init() throws {
    url = FileManager.default.temporaryDirectory.appending(path: "larder-benchmarks-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  /// Returns the path of a new file in the folder.
  public func newPath() -> String {
    url.appending(path: "\(UUID().uuidString).json").path()
  }

  /// Removes the folder and everything in it.
  ///
  /// - Throws: The error of the file system.
  public func remove() throws {
    try FileManager.default.removeItem(at: url)
  }
}
