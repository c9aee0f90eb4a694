import Foundation
import TestSupport
import Testing

/// Opens the committed files of every format on disk, and compares their content.
///
/// `LARDER_WRITE_GOLDENS=1 swift test --enable-all-traits --filter GoldenTests` writes the files that are missing. A format
/// that gets a new version gets a further file; the old one stays, because every later version opens it.
@Suite struct GoldenTests {
  private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
  private static let goldens = folder.appending(path: "Goldens").path(percentEncoded: false)
  private static let writesMissing = ProcessInfo.processInfo.environment["LARDER_WRITE_GOLDENS"] != nil

  @Test(arguments: Golden.all) func opens(_ golden: Golden) async throws {
    let path = "\(Self.goldens)/\(golden.name)"
    if Self.writesMissing, !FileManager.default.fileExists(atPath: path) {
      try FileManager.default.createDirectory(atPath: Self.goldens, withIntermediateDirectories: true)
      try await golden.write(path)
      try Self.removeLocks()
    }
    // A copy, because opening may change a file.
    let copies = try TemporaryFolder()
    try FileManager.default.copyItem(atPath: path, toPath: copies.path(golden.name))
    #expect(try await golden.read(copies.path(golden.name)) == golden.content)
  }

  /// Removes the files that hold no content: locks, and the space that a queue reserves.
  private static func removeLocks() throws {
    let files = FileManager.default
    let names = try files.subpathsOfDirectory(atPath: goldens)
    for name in names
    where ["lock", "lock.mdb", "reserve"].contains(name.split(separator: "/").last ?? "") || name.hasSuffix(".lock") {
      try files.removeItem(atPath: "\(goldens)/\(name)")
    }
  }

  /// Files that this version writes have the same content.
  @Test(arguments: Golden.all) func rereads(_ golden: Golden) async throws {
    let folder = try TemporaryFolder()
    try await golden.write(folder.path(golden.name))
    #expect(try await golden.read(folder.path(golden.name)) == golden.content)
  }

  private static let python = (try? CommandRun(["python3", "-c", "import sqlite3"]))?.status == 0

  @Test(.enabled(if: python, "python3 with sqlite3 is not installed"), arguments: [true, false])
  func `python reads them from the articles alone`(isCommitted: Bool) async throws {
    // Also files that this version writes, so the articles describe both.
    let folder = try TemporaryFolder()
    let readable = Golden.all.filter(\.isReadByPython)
    if !isCommitted {
      for golden in readable { try await golden.write(folder.path(golden.name)) }
    }
    let script = Self.folder.appending(path: "read-formats.py").path(percentEncoded: false)
    let run = try CommandRun(
      ["python3", script, isCommitted ? Self.goldens : folder.path] + readable.map(\.name))
    try #require(run.status == 0, "\(run.errors)")
    let read = try JSONDecoder().decode([String: [String: String]].self, from: Data(run.output.utf8))
    for golden in readable { #expect(read[golden.name] == golden.content, "\(golden.name)") }
  }
}
