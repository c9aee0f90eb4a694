import Foundation
import Larder

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// The folder of a PostgreSQL server, and a process that ends the server and removes the folder when this process has
/// ended, even by SIGKILL.
///
/// The other process is a shell that reads from a pipe. Only this process holds the other end of it.
final class PostgresFolder: Sendable {
  /// The path, which is short, because the path of a Unix socket has at most 107 bytes.
  let path: String

  private let watchdog: pid_t
  private let pipe: Locked<Int32?>

  /// Creates a folder.
  ///
  /// - Parameter installation: The installation of the server, which keeps its files in `data`.
  init(_ installation: PostgresInstallation) throws {
    var template = Array("/tmp/larder-postgres-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw PostgresFailure("mkdtemp in /tmp fails: error \(errno)") }
    path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    let pipePath = "\(path)/watchdog"
    guard mkfifo(pipePath, 0o600) == 0 else { throw PostgresFailure("mkfifo \(pipePath) fails: error \(errno)") }
    // A named pipe can be opened so that no process that is started at the same moment inherits it, on all platforms.
    let descriptor = open(pipePath, O_RDWR | O_CLOEXEC)
    guard descriptor >= 0 else { throw PostgresFailure("open \(pipePath) fails: error \(errno)") }
    pipe = Locked(descriptor)
    let stop = installation.command("pg_ctl", ["-D", "\(path)/data", "-m", "immediate", "-w", "stop"], in: path)
    // A process that was being started can create files after their removal, so the shell looks again.
    let script = """
      trap '' HUP INT TERM
      cat >/dev/null
      folder=$1
      shift
      while [ -e "$folder" ]; do
        "$@"
        rm -rf "$folder"
        sleep 1
      done
      """
    watchdog = try CommandRun.start(
      ["/bin/sh", "-c", script, "larder-postgres-watchdog", path] + ["/usr/bin/env"] + stop,
      files: [pipePath, "/dev/null", "/dev/null"], inOwnGroup: true)
    guard PostgresInstallation.isRoot else { return }
    try FileManager.default.setAttributes(
      [.ownerAccountName: "postgres", .groupOwnerAccountName: "postgres"], ofItemAtPath: path)
  }

  deinit {
    if let descriptor = pipe.withLock({ $0 }) { close(descriptor) }
  }

  /// Removes the folder, whose server is not running, and waits for the end of the other process.
  ///
  /// A second call does nothing.
  func remove() throws {
    guard let descriptor = pipe.withLock({ $0.take() }) else { return }
    let removal = Result { try FileManager.default.removeItem(atPath: path) }
    close(descriptor)
    _ = try CommandRun.wait(for: watchdog)
    try removal.get()
  }
}
