import Foundation

/// An object that stands at the path of a folder, so that no path below it can be examined.
package enum Obstruction: Sendable, CaseIterable {
  case file
  case circularLink

  /// Moves a folder away, runs a closure while the object stands at its path, and moves it back.
  package func replacing(_ path: String, _ body: () async throws -> Void) async throws {
    let files = FileManager.default
    try files.moveItem(atPath: path, toPath: path + ".away")
    switch self {
    case .file: try Data().write(to: URL(filePath: path))
    case .circularLink: try files.createSymbolicLink(atPath: path, withDestinationPath: path)
    }
    try await body()
    try files.removeItem(atPath: path)
    try files.moveItem(atPath: path + ".away", toPath: path)
  }
}
