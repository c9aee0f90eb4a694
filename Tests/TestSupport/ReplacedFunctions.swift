#if os(Linux)
import Foundation

/// Functions in C that replace those of the same names in the libraries of a process.
package struct ReplacedFunctions: Sendable {
  /// The environment variables of a process with the functions; see ``TestProcess``.
  package let variables: [String]

  /// Compiles the functions.
  ///
  /// Without a compiler, it prints the reason and returns `nil`.
  ///
  /// - Parameters:
  ///   - source: The functions.
  ///   - folder: A folder for the library.
  package init?(_ source: String, in folder: String) throws {
    let (text, library) = (folder + "/functions.c", folder + "/functions.so")
    try source.write(toFile: text, atomically: true, encoding: .utf8)
    // Swift brings this compiler along.
    let run = try CommandRun(["clang", "-O1", "-shared", "-fPIC", "-o", library, text])
    guard run.status == 0 else {
      print("No function is replaced, because clang fails: \(run.errors)")
      return nil
    }
    variables = ["LD_PRELOAD=\(library)"]
  }
}
#endif
