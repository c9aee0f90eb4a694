#if Crypto
import Foundation
import LarderFiles
import Synchronization
import TestSupport
import Testing

@testable import LarderCrypto

/// The Secret Service source with a real GNOME Keyring.
///
/// Each check runs in a process of its own, because libsecret uses the bus in the environment of its process.
@Suite(
  .limitedParallelism,
  .enabled(if: KeyringSession.obstacle == nil, Comment(rawValue: KeyringSession.obstacle ?? "")))
struct SecretServiceTests {
  private static let marked = "MARKED-SECRET"
  private static let content = Array(#"{"keys":[{"k":"\#(marked)"}]}"#.utf8)

  private static var source: SecretServiceKeySource { .secretService(application: "Notes", name: "main") }

  /// Returns the code of the error of a closure, after a search for the marked texts in it.
  private static func code(_ body: () async throws -> Void) async throws -> KeyRingError.Code {
    do {
      try await body()
    } catch let error as KeyRingError {
      var dumped = ""
      dump(error, to: &dumped)
      let text = "\(error) \(String(reflecting: error)) \(dumped)"
      try #require(!text.contains(marked) && !text.contains(KeyringSession.password))
      return error.code
    }
    return try #require(nil, "there was no error")
  }

  /// Requires that neither loading nor saving works, and that both say so.
  private static func requireUnavailable() async throws {
    try #require(try await code { _ = try await source.load() } == .unavailable)
    try #require(try await code { try await source.save([1], replacing: nil) } == .unavailable)
    try #require(try await code { try await source.save([1], replacing: content) } == .unavailable)
  }

  // MARK: Unlocked

  @Test func `keys are saved in an unlocked keyring`() async throws {
    let session = try KeyringSession()
    try session.startKeyring()
    await #expect(processExitsWith: .success) { [environment = session.environment as [String: String]] in
      KeyringSession.enter(environment)
      let source = SecretServiceTests.source
      try #require(try await source.load() == nil)
      try await source.save([1], replacing: nil)
      try #require(try await source.load() == [1])
      try await source.save(SecretServiceTests.content, replacing: [1])
      try #require(try await source.load() == SecretServiceTests.content)
      // Another name, another application.
      for other in [("Notes", "other"), ("Other", "main")] {
        let other: SecretServiceKeySource = .secretService(application: other.0, name: other.1)
        try #require(try await other.load() == nil)
        try await other.save([2], replacing: nil)
      }
      try #require(try await source.load() == SecretServiceTests.content)
    }
    // They outlive the keyring.
    try session.killKeyring()
    try session.startKeyring()
    await #expect(processExitsWith: .success) { [environment = session.environment as [String: String]] in
      KeyringSession.enter(environment)
      try #require(try await SecretServiceTests.source.load() == SecretServiceTests.content)
    }
    let files = try CommandRun(["grep", "-r", "-c", SecretServiceTests.marked, session.folder.path])
    #expect(files.lines.allSatisfy { $0.hasSuffix(":0") }, "\(files.output)")
  }

  @Test func `other content is never replaced`() async throws {
    let session = try KeyringSession()
    try session.startKeyring()
    await #expect(processExitsWith: .success) { [environment = session.environment as [String: String]] in
      KeyringSession.enter(environment)
      let source = SecretServiceTests.source
      try #require(try await SecretServiceTests.code { try await source.save([2], replacing: [1]) } == .changed)
      try await source.save([1], replacing: nil)
      try #require(try await SecretServiceTests.code { try await source.save([2], replacing: nil) } == .changed)
      try #require(try await SecretServiceTests.code { try await source.save([2], replacing: [3]) } == .changed)
      try #require(try await source.load() == [1])
    }
  }

  @Test func `one of two processes creates the keys`() async throws {
    let session = try KeyringSession()
    try session.startKeyring()
    await withTaskGroup { group in
      for number in 1...2 as ClosedRange<UInt8> {
        group.addTask { [environment = session.environment, path = session.folder.path("won")] in
          await #expect(processExitsWith: .success) {
            [environment = environment as [String: String], path = path as String, number = number as UInt8] in
            KeyringSession.enter(environment)
            do {
              try await SecretServiceTests.source.save([number], replacing: nil)
              try Data([number]).write(to: URL(filePath: path), options: .withoutOverwriting)
            } catch KeyRingError.Code.changed {
              return
            }
          }
        }
      }
    }
    let winner = try Data(contentsOf: URL(filePath: session.folder.path("won")))
    await #expect(processExitsWith: .success) {
      [environment = session.environment as [String: String], winner = Array(winner) as [UInt8]] in
      KeyringSession.enter(environment)
      try #require(try await SecretServiceTests.source.load() == winner)
    }
  }

  @Test(.enabled(if: KeyringSession.isInstalled("secret-tool"), "secret-tool is not installed"))
  func `secret tool prints the keys`() async throws {
    let session = try KeyringSession()
    try session.startKeyring()
    await #expect(processExitsWith: .success) { [environment = session.environment as [String: String]] in
      KeyringSession.enter(environment)
      try await SecretServiceTests.source.save(SecretServiceTests.content, replacing: nil)
    }
    let attributes = ["xdg:schema", "larder.KeyRing", "application", "Notes", "name", "main"]
    let run = try session.run(["secret-tool", "lookup"] + attributes)
    #expect(run.output == String(decoding: SecretServiceTests.content, as: UTF8.self))
    // A second item makes it unknown which has the right keys.
    let stored = try session.run(
      ["secret-tool", "store", "--label=copy", "--collection=session"] + attributes, input: "other")
    try #require(stored.status == 0, "\(stored.errors)")
    await #expect(processExitsWith: .success) { [environment = session.environment as [String: String]] in
      KeyringSession.enter(environment)
      try #require(
        try await SecretServiceTests.code { _ = try await SecretServiceTests.source.load() } == .corrupted)
    }
  }

  // MARK: Not available

  @Test func `a keyring that was never unlocked is not empty`() async throws {
    let session = try KeyringSession()
    try session.startKeyring()
    await #expect(processExitsWith: .success) { [environment = session.environment as [String: String]] in
      KeyringSession.enter(environment)
      try await SecretServiceTests.source.save(SecretServiceTests.content, replacing: nil)
    }
    try session.killKeyring()
    try session.startKeyring(isUnlocked: false)
    await #expect(processExitsWith: .success) { [environment = session.environment as [String: String]] in
      KeyringSession.enter(environment)
      try await SecretServiceTests.requireUnavailable()
      // A ring that may be created is not created.
      try #require(
        try await SecretServiceTests.code {
          _ = try await KeyRing.open(in: SecretServiceTests.source, createsIfMissing: true)
        } == .unavailable)
    }
    try session.killKeyring()
    try session.startKeyring()
    await #expect(processExitsWith: .success) { [environment = session.environment as [String: String]] in
      KeyringSession.enter(environment)
      try #require(try await SecretServiceTests.source.load() == SecretServiceTests.content)
    }
  }

  @Test func `a ring outlives the process that created it`() async throws {
    let session = try KeyringSession()
    try session.startKeyring()
    await #expect(processExitsWith: .success) { [environment = session.environment as [String: String]] in
      KeyringSession.enter(environment)
      let ring = try await KeyRing.open(in: SecretServiceTests.source, createsIfMissing: true)
      try await ring.rotate()
      try #require(ring.keys.count == 2)
    }
    await #expect(processExitsWith: .success) { [environment = session.environment as [String: String]] in
      KeyringSession.enter(environment)
      try #require(try await KeyRing.open(in: SecretServiceTests.source).keys.count == 2)
    }
  }

  @Test(arguments: [true, false])
  func `a keyring that is locked in between is not empty`(hasItem: Bool) async throws {
    let session = try KeyringSession()
    try session.startKeyring()
    await #expect(processExitsWith: .success) {
      [environment = session.environment as [String: String], hasItem = hasItem as Bool] in
      KeyringSession.enter(environment)
      if hasItem { try await SecretServiceTests.source.save(SecretServiceTests.content, replacing: nil) }
      try #require(try await SecretServiceTests.source.load() == (hasItem ? SecretServiceTests.content : nil))
    }
    try session.lock()
    await #expect(processExitsWith: .success) { [environment = session.environment as [String: String]] in
      KeyringSession.enter(environment)
      try await SecretServiceTests.requireUnavailable()
    }
  }

  @Test func `a bus without a keyring is not empty`() async throws {
    let session = try KeyringSession()
    await #expect(processExitsWith: .success) { [environment = session.environment as [String: String]] in
      KeyringSession.enter(environment)
      try await SecretServiceTests.requireUnavailable()
    }
  }

  @Test func `a session without a bus is not empty`() async throws {
    let session = try KeyringSession()
    await #expect(processExitsWith: .success) { [environment = session.environment as [String: String]] in
      KeyringSession.enter(environment)
      setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1)
      try await SecretServiceTests.requireUnavailable()
      unsetenv("DBUS_SESSION_BUS_ADDRESS")
      try await SecretServiceTests.requireUnavailable()
    }
  }

  @Test(arguments: [false, true])
  func `a keyring that is killed in between is not empty`(killsBus: Bool) async throws {
    let session = try KeyringSession()
    try session.startKeyring()
    let killed = killsBus ? session.busProcess : try #require(try session.keyring())
    await #expect(processExitsWith: .success) {
      [environment = session.environment as [String: String], killed = killed as Int32] in
      KeyringSession.enter(environment)
      let source = SecretServiceTests.source
      try await source.save(SecretServiceTests.content, replacing: nil)
      try #require(try await source.load() == SecretServiceTests.content)
      kill(killed, SIGKILL)
      // GLib would end this process when the bus is gone.
      try await SecretServiceTests.requireUnavailable()
    }
    guard !killsBus else { return }
    try session.startKeyring()
    await #expect(processExitsWith: .success) { [environment = session.environment as [String: String]] in
      KeyringSession.enter(environment)
      try #require(try await SecretServiceTests.source.load() == SecretServiceTests.content)
    }
  }

  // MARK: Other

  @Test func `a save waits for the lock of another process`() async throws {
    let session = try KeyringSession()
    try session.startKeyring()
    await #expect(processExitsWith: .success) { [environment = session.environment as [String: String]] in
      KeyringSession.enter(environment)
      let path = (environment["XDG_RUNTIME_DIR"] ?? "") + "/larder-secret-service.lock"
      // A lock belongs to the opened file, so this one excludes the source like one of another process.
      let lock = try #require(try FileLock.acquire(path, in: POSIXFileSystem()))
      let clock = CountingClock()
      let source = SecretServiceKeySource(application: "Notes", name: "main", clock: clock)
      try #require(
        try await SecretServiceTests.code { try await source.save([1], replacing: nil) } == .unavailable)
      try #require(clock.sleepCount == 3000)
      try #require(try await source.load() == nil)
      try lock.release()
      try await source.save([1], replacing: nil)
      try #require(try await source.load() == [1])
    }
  }

  @Test func `saving needs a folder for the lock`() async throws {
    let session = try KeyringSession()
    try session.startKeyring()
    await #expect(processExitsWith: .success) { [environment = session.environment as [String: String]] in
      KeyringSession.enter(environment)
      let source = SecretServiceTests.source
      for folder in [nil, "", "relative", "/nonexistent"] as [String?] {
        unsetenv("XDG_RUNTIME_DIR")
        if let folder { setenv("XDG_RUNTIME_DIR", folder, 1) }
        try #require(try await source.load() == nil)
        try #require(try await SecretServiceTests.code { try await source.save([1], replacing: nil) } == .unavailable)
        try #require(try await source.load() == nil)
      }
    }
  }

  @Test(arguments: [("", "main"), ("Notes", ""), ("No\0tes", "main"), ("Notes", "ma\0in")])
  func `names that mean nothing are refused`(application: String, name: String) async throws {
    let source: SecretServiceKeySource = .secretService(application: application, name: name)
    #expect(try await SecretServiceTests.code { _ = try await source.load() } == .invalidArgument)
  }

  @Test func `a missing library is named`() throws {
    let error = #expect(throws: KeyRingError.self) { try SecretServiceConnection(attributes: [], library: nil) }
    #expect(error?.code == .unsupported && error?.message.contains("libsecret-1-0") == true)
    #expect(LibSecret(path: "libsecret-none.so.0") == nil)
    // A library without its functions.
    #expect(LibSecret(path: "libc.so.6") == nil)
  }
}

/// A clock whose sleeps do not wait.
private final class CountingClock: Clock {
  private let count = Atomic<Int>(0)

  var sleepCount: Int { count.load(ordering: .relaxed) }
  var now: ContinuousClock.Instant { .now }
  var minimumResolution: Duration { .zero }

  func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
    count.add(1, ordering: .relaxed)
  }
}
#endif
