import Foundation

#if canImport(Darwin)
package import Darwin
#else
package import Glibc
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
  ///   - input: The standard input. Defaults to an empty text.
  package init(_ command: [String], input: String = "") throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "larder-command-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer { CommandRun.remove(folder) }
    // Uses files instead of pipes, so that the command never waits for this process, whatever it writes.
    let urls = ["input", "output", "errors"].map { folder.appending(path: $0) }
    try Data(input.utf8).write(to: urls[0])
    for url in urls.dropFirst() { try Data().write(to: url) }
    let process = try CommandRun.start(["/usr/bin/env"] + command, files: urls.map { $0.path(percentEncoded: false) })
    status = try CommandRun.wait(for: process)
    output = String(decoding: try Data(contentsOf: urls[1]), as: UTF8.self)
    errors = String(decoding: try Data(contentsOf: urls[2]), as: UTF8.self)
  }

  /// The lines of the output.
  package var lines: [Substring] { output.split(separator: "\n") }

  /// Starts a program without waiting for its end.
  ///
  /// Foundation's `Process` is not used. To find the files that are open here, it copies directory entries, and with
  /// some 1,300 of them it reads beyond their memory, which has ended a whole test run.
  ///
  /// - Parameters:
  ///   - command: The path of the program, and its arguments.
  ///   - files: The paths of the files for standard input, output and error.
  ///   - inOwnGroup: A Boolean value that indicates whether the program gets a process group of its own, so it does not
  ///     receive the signals that a terminal sends to this process. Defaults to `false`.
  /// - Returns: The number of the process, for ``wait(for:)``.
  package static func start(_ command: [String], files: [String], inOwnGroup: Bool = false) throws -> pid_t {
    // The program inherits no other file of this process, nor its locks, because all are opened with O_CLOEXEC.
    #if canImport(Darwin)
    var actions: posix_spawn_file_actions_t?
    var attributes: posix_spawnattr_t?
    #else
    var actions = posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // Threads of Dispatch block signals, such as the alarm that ends pgbench, and programs would inherit that.
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    let flags = POSIX_SPAWN_SETSIGMASK | (inOwnGroup ? POSIX_SPAWN_SETPGROUP : 0)
    posix_spawnattr_setflags(&attributes, Int16(flags))
    for (descriptor, path) in files.enumerated() {
      posix_spawn_file_actions_addopen(&actions, Int32(descriptor), path, descriptor == 0 ? O_RDONLY : O_WRONLY, 0)
    }
    var arguments = command.map { strdup($0) } + [nil]
    defer { arguments.forEach { free($0) } }
    var process: pid_t = 0
    let code = posix_spawn(&process, command[0], &actions, &attributes, &arguments, environ)
    guard code == 0 else { throw CommandFailure(description: "\(command) cannot be started: error \(code)") }
    return process
  }

  /// Waits for the end of a program, and returns its exit code, or the number of the signal that ended it.
  package static func wait(for process: pid_t) throws -> Int32 {
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 {
      guard errno == EINTR else { throw CommandFailure(description: "waitpid(\(process)) fails: error \(errno)") }
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
