import Foundation

/// A page of `Docs/`, or the README, whose pieces of Swift stand in a test too, so that they compile and do what it says.
public struct Guide {
  /// The pieces of Swift, in order.
  public var pieces: [String]

  /// Reads a page.
  ///
  /// - Parameters:
  ///   - path: Where it is in the repository.
  ///   - file: A file of the tests, two folders deep in the repository.
  public init(_ path: String, file: String = #filePath) throws {
    let repository = URL(filePath: file).deletingLastPathComponent().appending(path: "../..")
    let text = try String(contentsOf: repository.appending(path: path), encoding: .utf8)
    pieces = text.components(separatedBy: "```swift\n").dropFirst().map { $0.components(separatedBy: "```")[0] }
  }

  /// The pieces that a file of the tests does not hold, however they are indented there.
  ///
  /// - Parameter file: The file; the caller's unless given.
  public func piecesMissing(from file: String = #filePath) throws -> [String] {
    let code = try Guide.unindented(String(contentsOf: URL(filePath: file), encoding: .utf8))
    return pieces.filter { !code.contains(Guide.unindented($0)) }
  }

  /// The paragraphs of the pieces that a file of the tests does not hold: of pieces that stand there in parts.
  ///
  /// - Parameter file: The file; the caller's unless given.
  public func paragraphsMissing(from file: String = #filePath) throws -> [String] {
    let code = try Guide.unindented(String(contentsOf: URL(filePath: file), encoding: .utf8))
    return pieces.flatMap { $0.components(separatedBy: "\n\n") }
      .filter { !code.contains(Guide.unindented($0.trimmingCharacters(in: .newlines))) }
  }

  /// The lines of a text as they are wherever it stands: without their indentation, and with one space before a comment,
  /// which a guide brings into line with others and a formatter does not.
  private static func unindented(_ text: String) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.trimmingCharacters(in: .whitespaces).replacing(/[ ]+\/\//, with: " //") }.joined(separator: "\n")
  }
}
