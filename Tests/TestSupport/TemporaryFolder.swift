import Foundation

/// A folder of a test's own, removed with the last reference to it.
package final class TemporaryFolder: Sendable {
  /// Its path, without symbolic links.
  package let path: String

  /// Makes a folder.
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

  /// The path of a file or folder in it.
  package func path(_ name: String) -> String { "\(path)/\(name)" }

  /// The names in it, in order.
  package var names: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }
  }
}
