import Foundation

/// A folder for files that nobody needs afterwards.
package enum TemporaryFolder {
  /// Makes a folder, and removes it with all that is in it when a closure is done, or has thrown.
  ///
  /// - Parameter body: Gets the path of the folder.
  package static func with<Result>(_ body: (String) async throws -> Result) async throws -> Result {
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "larder-example-\(UUID())", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let result: Result
    do {
      result = try await body(folder.path)
    } catch {
      try FileManager.default.removeItem(at: folder)
      throw error
    }
    try FileManager.default.removeItem(at: folder)
    return result
  }
}
