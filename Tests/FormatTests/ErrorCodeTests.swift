import Foundation
import Testing

/// Each code of the article "Errors" is produced by a test.
@Suite struct ErrorCodeTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// The codes of the table, and those that modules add.
  private static func codes() throws -> [Substring] {
    let path = root.appending(path: "Modules/Larder/Larder.docc/Errors.md")
    return try String(contentsOf: path, encoding: .utf8).split(separator: "\n")
      .filter { $0.hasPrefix("| `") }
      .compactMap { $0.split(separator: "`").dropFirst().first } + ["staleReceipt", "notUnique", "indexIncomplete"]
  }

  /// The lines of all tests that expect the code of an error.
  private static func expectations() throws -> [Substring] {
    let files = FileManager.default.enumerator(at: root.appending(path: "Tests"), includingPropertiesForKeys: nil)
    var lines: [Substring] = []
    for case let file as URL in files ?? .init() where file.pathExtension == "swift" {
      lines += try String(contentsOf: file, encoding: .utf8).split(separator: "\n").filter { line in
        ["expectStoreError(.", "code == .", "Code.", "throws: StoreError"].contains { line.contains($0) }
      }
    }
    return lines
  }

  @Test func `every code is expected by a test`() throws {
    let (codes, lines) = (try Self.codes(), try Self.expectations())
    #expect(codes.count > 15)
    for code in codes {
      #expect(lines.contains { $0.contains(".\(code)") }, "no test expects the code \(code)")
    }
  }
}
