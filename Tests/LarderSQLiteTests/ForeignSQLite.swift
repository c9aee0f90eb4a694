#if SQLite
import TestSupport

/// Programs that access SQLite files and share at most the C library with Larder.
enum ForeignSQLite {
  /// The reason why the command `sqlite3` cannot run, or `nil` if it can.
  static let obstacle: String? = {
    do {
      guard try CommandRun(["sqlite3", "-version"]).status == 0 else { return "sqlite3 fails" }
      return nil
    } catch {
      return "there is no command sqlite3: \(error)"
    }
  }()

  struct Failed: Error, CustomStringConvertible {
    let description: String
  }

  /// Runs SQL with the command `sqlite3`, and returns the lines that it prints.
  @discardableResult
  static func run(_ path: String, _ sql: String) throws -> [Substring] {
    let run = try CommandRun(["sqlite3", "-batch", path], input: sql)
    guard run.status == 0, run.errors.isEmpty else { throw Failed(description: "\(sql) fails: \(run.errors)") }
    return run.lines
  }

  /// Runs a Python program, whose arguments start at `argv[1]`, and returns the lines that it prints.
  static func python(_ program: String, _ arguments: String...) throws -> [Substring] {
    let run = try CommandRun(["python3", "-c", "import sqlite3\nfrom sys import argv\n" + program] + arguments)
    guard run.status == 0 else { throw Failed(description: "the Python program fails: \(run.errors)") }
    return run.lines
  }
}
#endif
