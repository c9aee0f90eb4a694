import Foundation

/// The built program, in a process of its own.
enum Program {
  /// The last line of its output.
  static let success = "Every recorded event was received, in order within each batch."

  /// The path of the program, in the folder of the tests.
  static var url: URL {
    #if canImport(Darwin)
    let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") } ?? .main
    return bundle.bundleURL.deletingLastPathComponent().appending(path: "EventUploader")
    #else
    return Bundle.main.bundleURL.appending(path: "EventUploader")
    #endif
  }

  /// Runs the program, with many failures.
  ///
  /// - Parameters:
  ///   - folder: The folder for its output.
  ///   - events: The number of events to record.
  ///   - arguments: More arguments.
  ///   - moment: The time after which it is killed if it is still running. Defaults to never.
  /// - Returns: The exit status and the output.
  static func run(
    in folder: String, events: Int, _ arguments: [String], killedAfter moment: Duration? = nil
  ) async throws -> (status: Int32, text: String) {
    let output = "\(folder)/output"
    try Data().write(to: URL(fileURLWithPath: output))
    let process = Process()
    process.executableURL = url
    process.arguments = ["--events", "\(events)", "--failure-rate", "0.3", "--seed", "3"] + arguments
    let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
    process.standardOutput = handle
    let end = process.end
    try process.run()
    if let moment {
      try await Task.sleep(for: moment)
      if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }
    for await _ in end {}
    try handle.close()
    return (process.terminationStatus, try String(contentsOfFile: output, encoding: .utf8))
  }
}

extension Process {
  /// Returns when the process ends.
  ///
  /// Call this before the process is run.
  var end: AsyncStream<Never> {
    let (end, continuation) = AsyncStream<Never>.makeStream()
    terminationHandler = { _ in continuation.finish() }
    return end
  }
}
