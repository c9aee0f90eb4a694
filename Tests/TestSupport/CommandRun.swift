import Foundation

/// What a command of the system has printed, and how it ended.
package struct CommandRun {
  /// Its exit code, or the number of the signal that ended it.
  package let status: Int32
  /// What it wrote to standard output.
  package let output: String
  /// What it wrote to standard error.
  package let errors: String

  /// Runs a command and waits for its end.
  ///
  /// - Parameters:
  ///   - command: Its name, looked for as a shell does, or its path; and its arguments.
  ///   - input: What it reads from standard input.
  package init(_ command: [String], input: String = "") throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "larder-command-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer { CommandRun.remove(folder) }
    // Files instead of pipes: whatever the command writes and in whatever order, it never waits for this process.
    let urls = ["input", "output", "errors"].map { folder.appending(path: $0) }
    try Data(input.utf8).write(to: urls[0])
    for url in urls.dropFirst() { try Data().write(to: url) }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = command
    process.standardInput = try FileHandle(forReadingFrom: urls[0])
    process.standardOutput = try FileHandle(forWritingTo: urls[1])
    process.standardError = try FileHandle(forWritingTo: urls[2])
    try process.run()
    process.waitUntilExit()
    status = process.terminationStatus
    output = String(decoding: try Data(contentsOf: urls[1]), as: UTF8.self)
    errors = String(decoding: try Data(contentsOf: urls[2]), as: UTF8.self)
  }

  /// The lines of the output.
  package var lines: [Substring] { output.split(separator: "\n") }

  private static func remove(_ folder: URL) {
    do {
      try FileManager.default.removeItem(at: folder)
    } catch {
      print("could not remove \(folder.path): \(error)")
    }
  }
}
