import Foundation

/// The exit code and the output of a finished process.
struct ToolRun: Equatable {
  var status: Int32
  var output: String
  var errors: String

  /// Runs a program to its end.
  static func run(_ executable: String, _ arguments: [String], input: String = "") async throws -> ToolRun {
    // Files instead of pipes, because a full pipe would block the process.
    let folder = try TemporaryFolder()
    let inputPath = try folder.write(input, to: "input")
    let outputPath = try folder.write("", to: "output")
    let errorsPath = try folder.write("", to: "errors")
    let process = Process()
    process.executableURL = URL(fileURLWithPath: executable)
    process.arguments = arguments
    let handles = [
      try FileHandle(forReadingFrom: URL(fileURLWithPath: inputPath)),
      try FileHandle(forWritingTo: URL(fileURLWithPath: outputPath)),
      try FileHandle(forWritingTo: URL(fileURLWithPath: errorsPath)),
    ]
    process.standardInput = handles[0]
    process.standardOutput = handles[1]
    process.standardError = handles[2]
    try await process.runToEnd()
    // The handles stay open after the process has ended, and thousands of runs would use up all descriptors.
    for handle in handles { try handle.close() }
    return ToolRun(
      status: process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus,
      output: try String(contentsOfFile: outputPath, encoding: .utf8),
      errors: try String(contentsOfFile: errorsPath, encoding: .utf8))
  }
}

extension Process {
  /// Starts the process and waits for its end without blocking a thread.
  func runToEnd() async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      terminationHandler = { _ in continuation.resume() }
      do {
        try run()
      } catch {
        continuation.resume(throwing: error)
      }
    }
  }
}
