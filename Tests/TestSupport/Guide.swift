import Foundation

/// An article of a DocC catalog, a page of `Docs/`, or the README, whose Swift code also appears in a test that
/// compiles and runs it.
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

  /// Returns the code blocks that a test file does not contain, regardless of their indentation.
  ///
  /// - Parameter file: The test file. Defaults to the caller's file.
  public func piecesMissing(from file: String = #filePath) throws -> [String] {
    let code = try Guide.unindented(String(contentsOf: URL(filePath: file), encoding: .utf8))
    return pieces.filter { !code.contains(Guide.unindented($0)) }
  }

  /// Returns the paragraphs of the code blocks that a test file does not contain, for blocks that appear there in
  /// parts.
  ///
  /// - Parameter file: The test file. Defaults to the caller's file.
  public func paragraphsMissing(from file: String = #filePath) throws -> [String] {
    let code = try Guide.unindented(String(contentsOf: URL(filePath: file), encoding: .utf8))
    return pieces.flatMap { $0.components(separatedBy: "\n\n") }
      .filter { !code.contains(Guide.unindented($0.trimmingCharacters(in: .newlines))) }
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
