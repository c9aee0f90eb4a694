import Foundation

/// The program as it was built, run as a process of its own.
enum Program {
  /// What it says in the end.
  static let success = "Every event that was recorded has been received, in order within each batch."

  /// Where it is: in the folder of the tests.
  static var url: URL {
    #if canImport(Darwin)
    let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") } ?? .main
    return bundle.bundleURL.deletingLastPathComponent().appending(path: "EventUploader")
    #else
    return Bundle.main.bundleURL.appending(path: "EventUploader")
    #endif
  }

  /// Runs it, with many failures.
  ///
  /// - Parameters:
  ///   - folder: Where its output is kept meanwhile.
  ///   - events: How many events it records.
  ///   - arguments: What else it gets.
  ///   - moment: How long after its start it is killed, unless it has ended by then; never unless given.
  /// - Returns: What it ended with, and what it printed.
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
  /// Ends when the process does; ask for it before the process is run.
  var end: AsyncStream<Never> {
    let (end, continuation) = AsyncStream<Never>.makeStream()
    terminationHandler = { _ in continuation.finish() }
    return end
  }
}
