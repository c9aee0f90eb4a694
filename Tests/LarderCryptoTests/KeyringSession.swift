#if Crypto
import Foundation
import TestSupport
import Testing

/// A session bus with a GNOME Keyring of its own, which end with this object.
final class KeyringSession {
  /// The reason why there can be no session here, or `nil`.
  static let obstacle: String? = {
    #if os(Linux)
    let missing = ["dbus-daemon", "dbus-send", "gnome-keyring-daemon"].first { !isInstalled($0) }
    return missing.map { "\($0) is not installed; see Scripts/set-up" }
    #else
    return "there is no Secret Service here"
    #endif
  }()

  static func isInstalled(_ command: String) -> Bool {
    (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
      .contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(command)") }
  }

  /// The password of the keyring.
  static let password = "MARKED-PASSWORD"

  /// The environment of the programs of the session.
  private(set) var environment: [String: String]

  let folder: TemporaryFolder

  private var bus: Int32?

  /// Starts a bus without services.
  init() throws {
    folder = try TemporaryFolder()
    environment = [
      "HOME": folder.path, "XDG_DATA_HOME": folder.path("data"), "XDG_CONFIG_HOME": folder.path("config"),
      "XDG_CACHE_HOME": folder.path("cache"), "XDG_RUNTIME_DIR": folder.path("run"),
      // Without a display, the keyring cannot ask for a password.
      "DISPLAY": "", "WAYLAND_DISPLAY": "",
    ]
    try FileManager.default.createDirectory(
      atPath: folder.path("run"), withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    // No folders of services, so that the bus never starts one by itself.
    let configuration = """
      <busconfig>
        <type>session</type>
        <listen>unix:path=\(folder.path("bus"))</listen>
        <policy context="default">
          <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
        </policy>
      </busconfig>
      """
    try Data(configuration.utf8).write(to: URL(filePath: folder.path("bus.conf")))
    let started = try run([
      "dbus-daemon", "--config-file=\(folder.path("bus.conf"))", "--fork", "--print-address=1", "--print-pid=1",
    ])
    let lines = started.lines.map(String.init)
    try #require(started.status == 0 && lines.count == 2, "\(started.errors)")
    environment["DBUS_SESSION_BUS_ADDRESS"] = lines[0]
    bus = Int32(lines[1])
  }

  deinit {
    // The keyring ends when the bus does.
    if let bus { kill(bus, SIGKILL) }
  }

  /// Starts the keyring.
  ///
  /// - Parameter isUnlocked: A Boolean value that indicates whether it is started with its password. Defaults to
  ///   `true`.
  func startKeyring(isUnlocked: Bool = true) throws {
    let started = try run(
      ["gnome-keyring-daemon", isUnlocked ? "--unlock" : "--daemonize", "--components=secrets"],
      input: isUnlocked ? KeyringSession.password : "")
    try #require(started.status == 0, "\(started.errors)")
    // The program returns a little before the service has its name.
    for _ in 0..<1000 {
      if try keyring() != nil { return }
      usleep(10_000)
    }
    try #require(Bool(false), "the keyring does not start")
  }

  /// Kills the keyring, and waits until the bus knows it.
  func killKeyring() throws {
    kill(try #require(try keyring()), SIGKILL)
    while try keyring() != nil { usleep(1000) }
  }

  /// The process of the keyring, or `nil` if there isn't one on the bus.
  func keyring() throws -> Int32? {
    let answer = try run([
      "dbus-send", "--session", "--print-reply=literal", "--dest=org.freedesktop.DBus", "/org/freedesktop/DBus",
      "org.freedesktop.DBus.GetConnectionUnixProcessID", "string:org.freedesktop.secrets",
    ])
    return answer.output.split(separator: " ").last.flatMap { Int32($0.filter(\.isNumber)) }
  }

  /// The process of the bus.
  var busProcess: Int32 { bus ?? 0 }

  /// Locks the default keyring.
  func lock() throws {
    let answer = try run([
      "dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.secrets", "/org/freedesktop/secrets",
      "org.freedesktop.Secret.Service.Lock", "array:objpath:/org/freedesktop/secrets/collection/login",
    ])
    try #require(answer.status == 0, "\(answer.errors)")
  }

  /// Runs a program in the session.
  func run(_ command: [String], input: String = "") throws -> CommandRun {
    try CommandRun(["env"] + environment.map { "\($0)=\($1)" } + command, input: input)
  }

  /// Sets the environment of this process, which must be a process of one test.
  static func enter(_ environment: [String: String]) {
    for (name, value) in environment { setenv(name, value, 1) }
  }
}
#endif
