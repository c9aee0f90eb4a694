import Foundation
import Testing

/// A folder of a test, which is removed with the last reference to it.
final class TemporaryFolder {
  let path: String

  init() throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "larder-\(UUID())", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    path = url.path
  }

  deinit {
    do {
      try FileManager.default.removeItem(atPath: path)
    } catch {
      Issue.record(error, "the folder of a test could not be removed")
    }
  }

  /// Writes a file and creates the folders above it.
  func makeFile(_ name: String, content: String = "") throws {
    let url = URL(filePath: path).appending(path: name)
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(content.utf8).write(to: url)
  }

  /// Creates an empty file whose name need not be UTF-8.
  func makeFile(_ name: [UInt8]) throws {
    let bytes = Array(path.utf8) + [UInt8(ascii: "/")] + name + [0]
    let descriptor = bytes.withUnsafeBytes { bytes in
      bytes.withMemoryRebound(to: CChar.self) { $0.baseAddress.map { open($0, O_CREAT | O_WRONLY, 0o600) } ?? -1 }
    }
    try #require(descriptor >= 0)
    close(descriptor)
  }

  func makeLink(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(atPath: "\(path)/\(name)", withDestinationPath: target)
  }

  func remove(_ name: String) throws {
    try FileManager.default.removeItem(atPath: "\(path)/\(name)")
  }
}
