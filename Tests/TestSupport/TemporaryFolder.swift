import Foundation

/// A folder for one test, which is removed with the last reference to it.
package final class TemporaryFolder: Sendable {
  /// The path, without symbolic links.
  package let path: String

  /// Creates a folder.
  package init() throws {
    let url = FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
    path = url.appending(path: "larder-test-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
  }

  deinit {
    do {
      try FileManager.default.removeItem(atPath: path)
    } catch {
      print("could not remove \(path): \(error)")
    }
  }

  /// Returns the path of a file or folder in it.
  package func path(_ name: String) -> String { "\(path)/\(name)" }

  /// The names of its content, in order.
  package var names: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }
  }
}
