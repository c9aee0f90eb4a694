import Foundation

/// An article of a DocC catalog, a page of `Docs/`, or the README, whose Swift code `Scripts/guide-code` writes from the tests.
public struct Guide {
  /// The code blocks in Swift, in order.
  public var pieces: [String]

  /// Reads a page.
  ///
  /// - Parameters:
  ///   - path: The path of the page in the repository.
  ///   - file: A test file, two folders deep in the repository. Defaults to the caller's file.
  public init(_ path: String, file: String = #filePath) throws {
    let repository = URL(filePath: file).deletingLastPathComponent().appending(path: "../..")
    let text = try String(contentsOf: repository.appending(path: path), encoding: .utf8)
    pieces = text.components(separatedBy: "```swift\n").dropFirst().map { $0.components(separatedBy: "```")[0] }
  }

  /// Returns the lines of a text without their indentation, and with one space before a trailing comment, because a
  /// guide aligns comments and the formatter does not.
  public static func unindented(_ text: String) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false)
      .map { line in
        let trimmed = line.trimmingCharacters(in: .whitespaces)
        // The search takes long, and most lines have no comment.
        return trimmed.utf8.contains(UInt8(ascii: "/")) ? trimmed.replacing(/[ ]+\/\//, with: " //") : trimmed
      }
      .joined(separator: "\n")
  }
}
