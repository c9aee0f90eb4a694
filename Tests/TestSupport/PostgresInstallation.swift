import Foundation

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// The programs of PostgreSQL on this machine, and the way to run them.
struct PostgresInstallation {
  /// The folder with `initdb`, `pg_ctl` and `pg_basebackup`.
  let programs: String

  /// Finds the newest installation.
  ///
  /// - Throws: ``PostgresFailure``, which names the package to install.
  init() throws {
    // Debian has one folder for each version. Homebrew has one for each formula. Other systems have them on the path.
    let versions = ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt"].flatMap(PostgresInstallation.versions)
    let path = ProcessInfo.processInfo.environment["PATH", default: ""].split(separator: ":").map(String.init)
    guard let found = (versions + path).first(where: { FileManager.default.isExecutableFile(atPath: $0 + "/initdb") })
    else {
      throw PostgresFailure(
        "PostgreSQL is not installed: found no initdb in /usr/lib/postgresql/*/bin, Homebrew's folders or PATH. "
          + "Install the package postgresql (with Homebrew: postgresql@17), which Scripts/set-up does, or set "
          + "LARDER_POSTGRES to the connection string of a server for tests.")
    }
    programs = found
  }

  /// The `bin` folders of the versions in a folder, the newest one first.
  private static func versions(in folder: String) -> [String] {
    // The folder is missing where another package manager is used.
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    let versions = names.compactMap { name in
      Double(name.hasPrefix("postgresql@") ? String(name.dropFirst("postgresql@".count)) : name).map { (name, $0) }
    }
    return versions.sorted { $0.1 > $1.1 }.map { "\(folder)/\($0.0)/bin" }
  }

  /// The command that runs a program of PostgreSQL with a clean environment, as the user `postgres` if this process is
  /// root's, because servers refuse to run as root.
  ///
  /// - Parameters:
  ///   - program: The name of the program.
  ///   - arguments: Its arguments.
  ///   - folder: The working directory and home of the program.
  func command(_ program: String, _ arguments: [String], in folder: String) -> [String] {
    let environment = ["env", "-i", "HOME=\(folder)", "PATH=\(programs):/usr/bin:/bin", "LC_ALL=C"]
    let user =
      PostgresInstallation.isRoot
      ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--inh-caps=-all", "--"] : []
    // The user `postgres` may have no access to the working directory of this process.
    let shell = ["sh", "-c", #"cd "$0" && exec "$@""#, folder]
    return environment + user + shell + ["\(programs)/\(program)"] + arguments
  }

  /// Runs a program of PostgreSQL, and blocks the thread until its end.
  func run(_ program: String, _ arguments: [String], in folder: String) throws {
    let run = try CommandRun(command(program, arguments, in: folder))
    guard run.status == 0 else {
      // A server writes the reason why it does not start into its log.
      let log = (try? String(contentsOfFile: folder + "/log", encoding: .utf8)) ?? ""
      throw PostgresFailure("\(program) fails with status \(run.status): \(run.errors)\(log.suffix(2_000))")
    }
  }

  /// A Boolean value that indicates whether this process is root's.
  static var isRoot: Bool { geteuid() == 0 }
}

/// The reason why a PostgreSQL server for tests does not work.
package struct PostgresFailure: Error, CustomStringConvertible {
  package let description: String

  init(_ description: String) {
    self.description = description
  }
}
