import Foundation

/// A temporary folder.
package enum TemporaryFolder {
  /// Creates a folder, and removes it with its content when a closure returns or throws.
  ///
  /// - Parameter body: A closure that receives the path of the folder.
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
