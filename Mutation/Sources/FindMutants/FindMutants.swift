import Foundation
import SwiftOperators
import SwiftParser
import SwiftSyntax

/// Prints the mutants of Swift files as JSON, for `Scripts/mutants`.
@main
enum FindMutants {
  static func main() throws {
    var found: [Mutant] = []
    for path in CommandLine.arguments.dropFirst() {
      let text = try String(contentsOfFile: path, encoding: .utf8)
      // An operator that the standard library does not have leaves its expression unfolded, and so without mutants.
      let tree = OperatorTable.standardOperators.foldAll(Parser.parse(source: text)) { _ in }
      let finder = MutantFinder(file: path, text: text)
      finder.walk(tree)
      found += finder.found
    }
    FileHandle.standardOutput.write(try JSONEncoder().encode(found))
  }
}

/// A change of the source.
///
/// The text between `start` and `end` is replaced by `prefix`, the choice of the mutant, `infix`, that text and `suffix`. The
/// text keeps its lines, and further mutants inside of it nest.
struct Mutant: Encodable {
  let file: String

  /// The range, as offsets in UTF-8.
  let start, end: Int

  /// The number of the line on which the range begins, from 1.
  let line: Int

  /// The text that is changed, and what it becomes, on one line.
  let old, new: String

  let prefix, infix, suffix: String
}
