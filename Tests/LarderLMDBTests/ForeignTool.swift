import TestSupport

/// Programs that access LMDB files and share at most the C library with Larder.
enum ForeignTool {
  /// The reason why LMDB's own commands cannot run, or `nil` if they can.
  static let commandObstacle: String? = {
    let missing = ["mdb_stat", "mdb_dump", "mdb_load"].filter { !runs([$0, "-V"]) }
    return missing.isEmpty ? nil : "missing: \(missing.joined(separator: ", ")) (Debian's lmdb-utils, Homebrew's lmdb)"
  }()

  /// The first Python with the module `lmdb`.
  private static let python: String? = ["/usr/bin/python3", "python3", "/opt/homebrew/bin/python3"]
    .first { runs([$0, "-c", "import lmdb"]) }

  /// The reason why Python cannot be used, or `nil` if it can.
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

  /// Runs a Python program, whose arguments start at `argv[1]`, and returns the lines that it prints.
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
