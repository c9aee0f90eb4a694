#if ServiceLifecycle
import Foundation
import Larder
import LarderSQLite
import LarderService
import LarderTesting
import Testing

@Suite(.timeLimit(.minutes(5)))
final class BackupTaskTests: Sendable {
  private let clock = ManualClock()
  private let folder = FileManager.default.temporaryDirectory.appending(path: "larder-service-\(UUID().uuidString)")
    .path

  init() throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  deinit {
    // The folder of a test is of no use afterward.
    try? FileManager.default.removeItem(atPath: folder)
  }

  private var names: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: folder + "/backups").sorted() }
  }

  private func service(
    keeping count: Int,
    opening: @escaping @Sendable (String) async throws -> FaultyStore<SQLiteStore<Int>> = { path in
      FaultyStore(try await SQLiteStore<Int>(path: path, codec: .json(), access: .readOnly))
    }
  ) -> StoreService<SQLiteStore<Int>> {
    let (clock, folder) = (clock, folder)
    return StoreService(
      checkEvery: .seconds(1_000_000),
      tasks: [
        .compacting(every: .seconds(1_000_000)),
        .backingUp(
          every: .seconds(60), in: folder + "/backups", named: "shop", keeping: count, now: { clock.date },
          opening: opening),
      ],
      clock: clock
    ) { try await SQLiteStore<Int>(path: folder + "/shop.sqlite", codec: .json()) }
  }

  @Test func `backups are written kept and removed`() async throws {
    let service = service(keeping: 2)
    let store = try await service.open()
    let run = Task { try await service.run() }
    for number in 1...4 {
      try await clock.waitForSleepers(3)
      try await store.setValue(number, forKey: "number")
      clock.advance(by: .seconds(60))
      try await clock.waitForSleepers(3)
    }
    #expect(try names == ["shop-20260101T000300Z.backup", "shop-20260101T000400Z.backup"])
    #expect(service.health().tasks.map(\.successCount) == [0, 5])
    run.cancel()
    try await run.value
    let backup = try await SQLiteStore<Int>(
      path: folder + "/backups/shop-20260101T000300Z.backup", codec: .json(), access: .readOnly)
    #expect(try backup.value(forKey: "number") == 3)
    try await backup.close()
  }

  /// A backup that cannot be verified displaces no older one, and is not kept as if it were good.
  @Test func `a damaged backup is removed and older ones stay`() async throws {
    let isDamaged = Locked(false)
    let service = service(keeping: 1) { path in
      if isDamaged.withLock({ $0 }) {
        // The bytes of the value, which the file has once.
        var bytes = try Data(contentsOf: URL(filePath: path))
        let range = try #require(bytes.range(of: Data("12345".utf8)))
        bytes.replaceSubrange(range, with: Data("x2345".utf8))
        try bytes.write(to: URL(filePath: path))
      }
      return FaultyStore(try await SQLiteStore<Int>(path: path, codec: .json(), access: .readOnly))
    }
    let store = try await service.open()
    try await store.setValue(12_345, forKey: "number")
    let run = Task { try await service.run() }
    try await clock.waitForSleepers(3)
    isDamaged.withLock { $0 = true }
    clock.advance(by: .seconds(60))
    try await clock.waitForSleepers(3)
    #expect(try names == ["shop-20260101T000000Z.backup"])
    let report = service.health().tasks[1]
    #expect(report.failureCount == 1)
    #expect(report.problem?.contains("was not found intact") == true, "\(report.problem ?? "")")
    isDamaged.withLock { $0 = false }
    clock.advance(by: .seconds(60))
    try await clock.waitForSleepers(3)
    #expect(try names == ["shop-20260101T000200Z.backup"])
    run.cancel()
    try await run.value
  }

  /// An error of opening or reading the new backup says nothing about older ones.
  @Test func `a backup that cannot be read is removed`() async throws {
    try FileManager.default.createDirectory(atPath: folder + "/backups", withIntermediateDirectories: true)
    try Data("x".utf8).write(to: URL(filePath: folder + "/backups/shop-20250101T000000Z.backup"))
    for place in [StoreOperation.open, .verify] {
      let service = service(keeping: 1) { path in
        let store = FaultyStore(try await SQLiteStore<Int>(path: path, codec: .json(), access: .readOnly))
        guard place == .verify else {
          try await store.close()
          throw StoreError(.ioFailed, during: .open, store: "s", message: "m")
        }
        store.schedule(.error(.ioFailed), on: .verify)
        return store
      }
      let run = Task { try await service.run() }
      try await clock.waitForSleepers(3)
      #expect(try names == ["shop-20250101T000000Z.backup"], "\(place)")
      #expect(service.health().tasks[1].failureCount == 1)
      run.cancel()
      try await run.value
    }
  }

  @Test func `other files stay and those of a backup go with it`() async throws {
    try FileManager.default.createDirectory(atPath: folder + "/backups", withIntermediateDirectories: true)
    let others = ["notes.txt", "shop-2.backup", "other-20250101T000000Z.backup"]
    let old = "shop-20250101T000000Z.backup"
    for name in others + [old, old + ".dictionaries", old + "-wal"] {
      try Data("x".utf8).write(to: URL(filePath: folder + "/backups/" + name))
    }
    let service = service(keeping: 1)
    let run = Task { try await service.run() }
    // The newest backup is old, so the first run is due.
    try await clock.waitForSleepers(3)
    #expect(try names == (others + ["shop-20260101T000000Z.backup"]).sorted())
    run.cancel()
    try await run.value
  }

  /// A clock that was once ahead has dated a backup.
  @Test func `a backup of the future is the first to go`() async throws {
    try FileManager.default.createDirectory(atPath: folder + "/backups", withIntermediateDirectories: true)
    try Data("x".utf8).write(to: URL(filePath: folder + "/backups/shop-20990101T000000Z.backup"))
    let service = service(keeping: 2)
    let run = Task { try await service.run() }
    try await clock.waitForSleepers(3)
    #expect(try names == ["shop-20260101T000000Z.backup", "shop-20990101T000000Z.backup"])
    clock.advance(by: .seconds(60))
    try await clock.waitForSleepers(3)
    #expect(try names == ["shop-20260101T000000Z.backup", "shop-20260101T000100Z.backup"])
    run.cancel()
    try await run.value
  }

  @Test func `a restart does not postpone the next backup`() async throws {
    for _ in 1...4 {
      let service = service(keeping: 9)
      let run = Task { try await service.run() }
      try await clock.waitForSleepers(3)
      clock.advance(by: .seconds(25))
      try await clock.waitForSleepers(3)
      run.cancel()
      try await run.value
    }
    #expect(try names == ["shop-20260101T000000Z.backup", "shop-20260101T000115Z.backup"])
  }
}
#endif
