import TestSupport

/// Programs that read and write LMDB's files and share no code with Larder but the C library, or not even that.
enum ForeignTool {
  /// Why LMDB's own commands cannot be run, or `nil` where they can.
  static let commandObstacle: String? = {
    let missing = ["mdb_stat", "mdb_dump", "mdb_load"].filter { !runs([$0, "-V"]) }
    return missing.isEmpty ? nil : "missing: \(missing.joined(separator: ", ")) (Debian's lmdb-utils, Homebrew's lmdb)"
  }()

  /// The first Python that has the module `lmdb`.
  private static let python: String? = ["/usr/bin/python3", "python3", "/opt/homebrew/bin/python3"]
    .first { runs([$0, "-c", "import lmdb"]) }

  /// Why Python cannot be used, or `nil` where it can.
  static let pythonObstacle: String? =
    python == nil ? "no python3 here has the module lmdb (Debian's python3-lmdb)" : nil

  private static func runs(_ command: [String]) -> Bool {
    do {
      return try CommandRun(command).status == 0
    } catch {
      return false
    }
  }

  struct Failed: Error, CustomStringConvertible {
    let description: String
  }

  /// Runs a command, and returns the lines that it prints.
  static func lines(of command: String...) throws -> [Substring] {
    try lines(of: command)
  }

  /// Runs a program in Python, which finds the arguments from `argv[1]` on, and returns the lines that it prints.
  static func lines(ofPython program: String, _ arguments: String...) throws -> [Substring] {
    guard let python else { throw Failed(description: "there is no Python") }
    return try lines(of: [python, "-c", "import lmdb, sys\nargv = sys.argv\n" + program] + arguments)
  }

  /// Runs a command, and returns the lines that it prints.
  static func lines(of command: [String]) throws -> [Substring] {
    let run = try CommandRun(command)
    guard run.status == 0 else { throw Failed(description: "\(command) fails: \(run.errors)") }
    return run.lines
  }
}
