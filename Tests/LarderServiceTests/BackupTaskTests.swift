#if ServiceLifecycle
import Foundation
import Larder
import LarderSQLite
import LarderService
import LarderTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
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

  private func service(keeping count: Int) -> StoreService<SQLiteStore<Int>> {
    let (clock, folder) = (clock, folder)
    return StoreService(
      checkEvery: .seconds(1_000_000),
      tasks: [
        .compacting(every: .seconds(1_000_000)),
        .backingUp(every: .seconds(60), in: folder + "/backups", named: "shop", keeping: count) { clock.date },
      ],
      clock: clock
    ) { try await SQLiteStore<Int>(path: folder + "/shop.sqlite", codec: .json()) }
  }

  @Test func backupsAreWrittenKeptAndRemoved() async throws {
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

  @Test func otherFilesStayAndAnInterruptedBackupIsReplaced() async throws {
    try FileManager.default.createDirectory(atPath: folder + "/backups", withIntermediateDirectories: true)
    let others = ["notes.txt", "shop-2.backup", "other-20250101T000000Z.backup", "shop-20250101T000000Z.backup.txt"]
    for name in others + ["shop.partial", "shop-20250101T000000Z.backup"] {
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
  @Test func aBackupOfTheFutureIsTheFirstToGo() async throws {
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

  @Test func aRestartDoesNotPostponeTheNextBackup() async throws {
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
