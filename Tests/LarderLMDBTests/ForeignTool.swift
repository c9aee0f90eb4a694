#if LMDB
import CLMDB
import Foundation
import TestSupport
import Testing

@testable import LarderLMDB

/// Programs that access LMDB files and share at most the C library with Larder.
enum ForeignTool {
  /// The reason why LMDB's own commands cannot run, or `nil` if they can.
  static let commandObstacle: String? = {
    let missing = ["mdb_stat", "mdb_dump", "mdb_load"].filter { !runs([$0, "-V"]) }
    guard missing.isEmpty else {
      return "missing: \(missing.joined(separator: ", ")) (Debian's lmdb-utils, Homebrew's lmdb)"
    }
    // Those of Debian have the library inside.
    let version = (try? CommandRun(["mdb_stat", "-V"]).output) ?? ""
    return version.contains("LMDB \(DataFileFormat.linked.library)") ? nil : "the commands are those of \(version)"
  }()

  /// The first Python with the module `lmdb`.
  static let python: String? = ["/usr/bin/python3", "python3", "/opt/homebrew/bin/python3"]
    .first { runs([$0, "-c", "import lmdb"]) }

  /// The reason why Python cannot be used, or `nil` if it can.
  static let pythonObstacle: String? =
    python == nil ? "no python3 here has the module lmdb (Debian's python3-lmdb)" : nil

  /// The folder with LMDB 1.0, from `Scripts/set-up-lmdb`.
  static let otherLibrary = ProcessInfo.processInfo.environment["LARDER_LMDB_1"].flatMap { $0.isEmpty ? nil : $0 }

  /// The reason why Python cannot be run with the major version of LMDB that this process does not have, or `nil`.
  static let otherLibraryObstacle: String? =
    pythonObstacle ?? (otherLibrary == nil ? "LARDER_LMDB_1 names no folder with LMDB 1.0" : nil)

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

  /// Writes to an environment with the library alone.
  ///
  /// This process must not have the environment open.
  static func write(to path: String, _ body: (_ transaction: OpaquePointer) throws -> Void) throws {
    var environment: OpaquePointer?
    try LMDBError.check(mdb_env_create(&environment))
    let pointer = try #require(environment)
    defer { mdb_env_close(pointer) }
    try LMDBError.check(mdb_env_set_maxdbs(pointer, 4))
    try LMDBError.check(mdb_env_open(pointer, path, UInt32(MDB_NOTLS), 0o600))
    var transaction: OpaquePointer?
    try LMDBError.check(mdb_txn_begin(pointer, nil, 0, &transaction))
    let write = try #require(transaction)
    try body(write)
    try LMDBError.check(mdb_txn_commit(write))
  }

  /// Runs a command, and returns the lines that it prints.
  static func lines(of command: [String]) throws -> [Substring] {
    let run = try CommandRun(command)
    guard run.status == 0 else { throw Failed(description: "\(command) fails: \(run.errors)") }
    return run.lines
  }
}
#endif
