#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderCrypto
import LarderIndexes
import LarderJSON
import LarderQueue
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

/// The texts of errors on the page `Modules/Larder/Larder.docc/Troubleshooting.md`.
///
/// Each test produces the error of a symptom, and the page must have its text, with the folder `/srv/app`.
@Suite struct TroubleshootingTests {
  private struct User: Codable, Sendable, Equatable {
    var name: String
  }

  private struct Account: Codable, Sendable {
    var balance: Int
  }

  private let temporary: TemporaryFolder
  private var folder: String { temporary.path }

  init() throws {
    temporary = try TemporaryFolder()
  }

  /// Expects that a closure throws an error with a code, and that the page has its text.
  private func expectText<Result>(
    _ code: StoreError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Result
  ) async throws {
    let error = await expectStoreError(code, sourceLocation: sourceLocation, body)
    var text = try #require(error, sourceLocation: sourceLocation).description.replacing(folder, with: "/srv/app")
    // The keys of rings and the names of temporary files are random.
    text.replace(/key [0-9a-f]{16}/, with: "key 6d604a5c4221e312")
    text.replace(/\.larder-tmp-[0-9a-f]+/, with: "")
    let page = try TroubleshootingTests.text(of: TroubleshootingTests.page)
    #expect(page.contains(text), "\(text)", sourceLocation: sourceLocation)
  }

  private static let page = "Modules/Larder/Larder.docc/Troubleshooting.md"

  /// Returns the text of a file of the repository, with one space in place of each line break, because pages wrap long texts.
  private static func text(of path: String) throws -> String {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../" + path)
    return try String(contentsOf: file, encoding: .utf8).split(whereSeparator: \.isWhitespace).joined(separator: " ")
  }

  @Test func locked() async throws {
    let users = try await JSONFileStore<User>(path: folder + "/users.json")
    try await expectText(.locked) { try await JSONFileStore<User>(path: folder + "/users.json") }
    try await users.close()
  }

  @Test func full() async throws {
    let disk = SimulatedFileSystem(seed: SeededGenerator.seedOfProcess)
    try disk.createDirectory(at: "/srv")
    try disk.createDirectory(at: "/srv/app")
    let users = try await JSONFileStore(path: "/srv/app/users.json", codec: .json(User.self), fileSystem: disk)
    try await users.setValue(User(name: "Ada"), forKey: "1")
    disk.capacity = 0
    try await expectText(.full) { try await users.setValue(User(name: "Bob"), forKey: "2") }
    disk.capacity = nil
    try await users.setValue(User(name: "Bob"), forKey: "2")
    try await users.close()

    let jobs = try await QueueStore<User>(
      path: folder + "/jobs", configuration: QueueConfiguration(capacity: QueueCapacity(items: 1)))
    try await jobs.enqueue(User(name: "Ada"))
    try await expectText(.full) { try await jobs.enqueue(User(name: "Bob")) }
    try await jobs.close()
  }

  @Test func conflict() async throws {
    let users = try await JSONFileStore<User>(path: folder + "/users.json")
    try await users.setValue(User(name: "Ada"), forKey: "1")
    try FileManager.default.moveItem(atPath: folder + "/users.json", toPath: folder + "/away.json")
    try await expectText(.conflict) { try await users.setValue(User(name: "Bob"), forKey: "2") }
    await expectStoreError(.conflict) { try await users.close() }
  }

  @Test func undecodable() async throws {
    let accounts = try await JSONFileStore<Account>(path: folder + "/users.json")
    try await accounts.setValue(Account(balance: 7), forKey: "1")
    try await accounts.close()
    let users = try await JSONFileStore<User>(path: folder + "/users.json")
    try await expectText(.undecodable) { try users.value(forKey: "1") }
    try await users.close()
  }

  @Test func corrupted() async throws {
    let bytes = MemoryStore<[UInt8]>(name: "users.sqlite")
    let users = bytes.typed(User.self, codec: .json().checksummed())
    try await users.setValue(User(name: "Ada"), forKey: "1")
    try await bytes.update("1") { $0?[9] ^= 1 }
    try await expectText(.corrupted) { try await users.value(forKey: "1") }
  }

  @Test func versionMismatch() async throws {
    let codec = try JSONCodec<User>().versioned(
      2, ValueMigration(from: 1, .json(User.self)) { $0 })
    let users = try await JSONFileStore(path: folder + "/users.json", codec: codec)
    try await users.setValue(User(name: "Ada"), forKey: "1")
    try await users.close()
    try await expectText(.versionMismatch) {
      try await JSONFileStore(path: folder + "/users.json", codec: JSONCodec<User>().versioned(1))
    }
  }

  @Test func keyUnavailable() async throws {
    func open(_ ring: KeyRing) async throws -> SQLiteStore<User> {
      try await SQLiteStore(
        path: folder + "/users.sqlite", codec: .json(User.self).encrypted(with: ring, purpose: "users"))
    }
    var users = try await open(.open(in: .file(folder + "/keys.json"), createsIfMissing: true))
    try await users.setValue(User(name: "Ada"), forKey: "1")
    try await users.close()
    users = try await open(.open(in: .file(folder + "/other.json"), createsIfMissing: true))
    let error = expectStoreError(.keyUnavailable) { try users.value(forKey: "1") }
    #expect(error?.isRetryable == true)
    try await expectText(.keyUnavailable) { try await users.checkingValues() }
  }

  @Test func notFound() async throws {
    try await expectText(.notFound) {
      try await JSONFileStore<User>(path: folder + "/users.json", createsIfMissing: false)
    }
  }

  /// The wait for another process is tested with LMDB, so only the text is compared here.
  @Test func `timed out`() throws {
    let code = try TroubleshootingTests.text(of: "Modules/Stores/LarderLMDB/Environment/WriteTurn.swift")
    let message = "another writer held the lock of the environment for longer than"
    #expect(code.contains("\"" + message + " \\(busyTimeout); try again\""))
    #expect(try TroubleshootingTests.text(of: TroubleshootingTests.page).contains(message + " 5.0 seconds; try again"))
  }

  @Test func closed() async throws {
    let users = try await JSONFileStore<User>(path: folder + "/users.json")
    try await users.close()
    try await expectText(.closed) { try users.value(forKey: "1") }
  }

  @Test func staleReceipt() async throws {
    let jobs = try await QueueStore<User>(path: folder + "/jobs")
    try await jobs.enqueue(User(name: "Ada"))
    let delivery = try #require(try await jobs.receive(lease: .seconds(60)))
    try await jobs.acknowledge(delivery.receipt)
    try await expectText(.staleReceipt) { try await jobs.acknowledge(delivery.receipt) }
    try await jobs.close()
  }

  @Test func indexes() async throws {
    let bytes = MemoryStore<[UInt8]>(name: "users.sqlite")
    let plain = bytes.typed(User.self, prefix: "v/", codec: .json())
    try await plain.setValue(User(name: "Ada"), forKey: "1")
    let byName = StoreIndex<User>("name", isUnique: true) { _, user in [[user.name]] }
    let users = try await bytes.indexed(by: [byName], codec: .json(User.self), valuePrefix: "v/")
    try await expectText(.indexIncomplete) { try await users.count(where: byName, in: .all) }
    try await users.rebuildIndexes()
    try await expectText(.notUnique) { try await users.setValue(User(name: "Ada"), forKey: "2") }
  }
}
#endif
