import Foundation

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// The result of a finished command: its output and its exit status.
package struct CommandRun {
  /// The exit code, or the number of the signal that ended the command.
  package let status: Int32
  /// The standard output.
  package let output: String
  /// The standard error.
  package let errors: String

  /// Runs a command and waits for its end.
  ///
  /// - Parameters:
  ///   - command: The name, which is looked up as by a shell, or the path of the command, and its arguments.
  ///   - input: The standard input. Defaults to none.
  package init(_ command: [String], input: String = "") throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "larder-command-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer { CommandRun.remove(folder) }
    // Uses files instead of pipes, so that the command never waits for this process, whatever it writes.
    let urls = ["input", "output", "errors"].map { folder.appending(path: $0) }
    try Data(input.utf8).write(to: urls[0])
    for url in urls.dropFirst() { try Data().write(to: url) }
    status = try CommandRun.run(["/usr/bin/env"] + command, urls.map { $0.path(percentEncoded: false) })
    output = String(decoding: try Data(contentsOf: urls[1]), as: UTF8.self)
    errors = String(decoding: try Data(contentsOf: urls[2]), as: UTF8.self)
  }

  /// The lines of the output.
  package var lines: [Substring] { output.split(separator: "\n") }

  /// Starts a program and waits for its end.
  ///
  /// Foundation's `Process` is not used. To find the files that are open here, it copies directory entries, and with
  /// some
  /// 1,300 of them it reads beyond their memory, which has ended a whole test run.
  ///
  /// - Parameters:
  ///   - command: The path of the program, and its arguments.
  ///   - paths: The files for standard input, output and error.
  private static func run(_ command: [String], _ paths: [String]) throws -> Int32 {
    // The program inherits no other file of this process, nor its locks, because all are opened with O_CLOEXEC.
    #if canImport(Darwin)
    var actions: posix_spawn_file_actions_t?
    #else
    var actions = posix_spawn_file_actions_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (descriptor, path) in paths.enumerated() {
      posix_spawn_file_actions_addopen(&actions, Int32(descriptor), path, descriptor == 0 ? O_RDONLY : O_WRONLY, 0)
    }
    var arguments = command.map { strdup($0) } + [nil]
    defer { arguments.forEach { free($0) } }
    var process: pid_t = 0
    let code = posix_spawn(&process, command[0], &actions, nil, &arguments, environ)
    guard code == 0 else { throw CommandFailure(description: "\(command) cannot be started: error \(code)") }
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 {
      guard errno == EINTR else { throw CommandFailure(description: "\(command) cannot be waited for: error \(errno)") }
    }
    // The lower seven bits are the signal, or 0 for an exit, whose code is in the next eight bits.
    return status & 0x7F == 0 ? status >> 8 & 0xFF : status & 0x7F
  }

  private static func remove(_ folder: URL) {
    do {
      try FileManager.default.removeItem(at: folder)
    } catch {
      print("could not remove \(folder.path): \(error)")
    }
  }
}

/// The reason why a command could not be run.
private struct CommandFailure: Error, CustomStringConvertible {
  let description: String
}
