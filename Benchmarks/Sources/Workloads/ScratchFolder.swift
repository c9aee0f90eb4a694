import Foundation

/// A folder for the files of a run, in the folder for temporary files (the environment variable `TMPDIR` names another).
public struct ScratchFolder: Sendable {
  private let url: URL

  /// Makes a folder of its own.
  ///
  /// - Throws: What the file system throws.
  public init() throws {
    url = FileManager.default.temporaryDirectory.appending(path: "larder-benchmarks-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  /// The path of a new file in the folder.
  public func newPath() -> String {
    url.appending(path: "\(UUID().uuidString).json").path()
  }

  /// Removes the folder and all in it.
  ///
  /// - Throws: What the file system throws.
  public func remove() throws {
    try FileManager.default.removeItem(at: url)
  }
}
