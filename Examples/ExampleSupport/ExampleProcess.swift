import Foundation

/// A process that runs a program of this package, for tests that signal and kill it.
package final class ExampleProcess: Sendable {
  /// The error of a process that did not do what a test waits for.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  private let process: Process
  private let output: String
  private let isTemporary: Bool

  /// Starts a program.
  ///
  /// - Parameters:
  ///   - name: The name of the program.
  ///   - arguments: The arguments.
  ///   - environment: The variables that differ from those of this process. Defaults to an empty dictionary.
  ///   - output: The path of the file for the standard output and the standard error. It must not exist. Defaults to one in the
  ///     temporary folder, which is removed when the object is released.
  package init(
    _ name: String, _ arguments: [String], environment: [String: String] = [:], output: String? = nil
  ) throws {
    let path = output ?? FileManager.default.temporaryDirectory.appending(path: "larder-\(name)-\(UUID())").path
    try Data().write(to: URL(filePath: path), options: .withoutOverwriting)
    let handle = try FileHandle(forWritingTo: URL(filePath: path))
    process = Process()
    process.executableURL = Self.folder.appending(path: name)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    (process.standardOutput, process.standardError) = (handle, handle)
    self.output = path
    isTemporary = output == nil
    try process.run()
    try handle.close()
  }

  deinit {
    guard isTemporary else { return }
    // The output of a test is of no use afterward.
    try? FileManager.default.removeItem(atPath: output)
  }

  /// The folder of the built programs, which is that of the tests.
  private static var folder: URL {
    #if canImport(Darwin)
    let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") } ?? .main
    return bundle.bundleURL.deletingLastPathComponent()
    #else
    return Bundle.main.bundleURL
    #endif
  }

  /// The text that the process has printed until now.
  package var text: String {
    get throws { String(decoding: try Data(contentsOf: URL(filePath: output)), as: UTF8.self) }
  }

  /// The complete lines that the process has printed until now.
  package var lines: [Substring] {
    get throws {
      let text = try text
      return text[..<(text.lastIndex(of: "\n") ?? text.startIndex)].split(separator: "\n")
    }
  }

  /// Waits for a line.
  ///
  /// - Parameter condition: A closure that returns whether it is the line.
  /// - Returns: The first such line.
  /// - Throws: ``Failure`` if the process ends without it, or after a minute. `CancellationError`.
  package func line(where condition: (Substring) -> Bool) async throws -> Substring {
    let end = ContinuousClock.now + .seconds(60)
    while true {
      let isRunning = process.isRunning
      if let line = try lines.first(where: condition) { return line }
      guard isRunning, ContinuousClock.now < end else {
        throw Failure(description: "the process did not print the line, but: \(try text)")
      }
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  /// Sends a signal to the process, if it runs.
  package func signal(_ number: Int32) {
    if process.isRunning { kill(process.processIdentifier, number) }
  }

  /// Waits until the process has ended.
  ///
  /// - Returns: The status, or `nil` if a signal has ended it.
  /// - Throws: ``Failure`` after a minute. `CancellationError`.
  @discardableResult
  package func waitForEnd() async throws -> Int32? {
    let end = ContinuousClock.now + .seconds(60)
    while process.isRunning {
      guard ContinuousClock.now < end else { throw Failure(description: "the process did not end: \(try text)") }
      try await Task.sleep(for: .milliseconds(5))
    }
    return process.terminationReason == .exit ? process.terminationStatus : nil
  }

  /// Kills the process, and waits until it has ended.
  package func end() async throws {
    signal(SIGKILL)
    try await waitForEnd()
  }
}
