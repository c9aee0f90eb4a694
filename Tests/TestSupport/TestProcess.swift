#if os(Linux)
import Foundation

package import Glibc

/// A process that runs one test of this program.
///
/// Other than an exit test, it can have its own environment, its number is known, and no task waits for it.
package enum TestProcess {
  /// Starts a process, which ends with the status 0 if its test passes; see `CommandRun.wait(for:)`.
  ///
  /// - Parameters:
  ///   - test: A regular expression that matches the name of the test, which must be enabled by one of the variables only.
  ///   - variables: Environment variables, such as `NAME=value`.
  ///   - command: The beginning of a command that runs the rest of it. Defaults to an empty array.
  ///   - output: The path of a file for standard output and standard error.
  package static func start(
    _ test: String, variables: [String], by command: [String] = [], output: String
  ) throws -> pid_t {
    try "".write(toFile: output, atomically: true, encoding: .utf8)
    let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let arguments = ["--testing-library", "swift-testing", "--filter", test]
    return try CommandRun.start(
      ["/usr/bin/env"] + command + ["env"] + variables + [program] + arguments, files: ["/dev/null", output, output])
  }
}
#endif
