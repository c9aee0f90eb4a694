#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderExpiry
import LarderJSON
import LarderQueue
import LarderSQLite
import LarderTesting
import LarderWorker
import TestSupport
import Testing

extension CookbookTests {
  /// The answers about opening, changing, moving, closing and testing.
  @Suite struct Operations {
    private struct UserV1: Codable, Sendable {
      var name: String
    }

    /// The code under test.
    private struct SignUp<Users: DataStore<User>>: Sendable {
      let users: Users

      /// Returns `false` if there is no space.
      func register(_ user: User) async throws -> Bool {
        do {
          try await users.setValue(user, forKey: StoreKey(user.email))
          return true
        } catch StoreError.Code.full {
          return false
        }
      }
    }

    private let ada = User(email: "ada@example.com", name: "Ada")

    @Test func `a URL chooses the store`() async throws {
      // snippet.how-do-i-choose-the-store
      let registry = StoreRegistry(providers: [MemoryStoreProvider(), JSONFileStoreProvider(), SQLiteStoreProvider()])

      func openUsers(_ url: String) async throws -> AnyDataStore<User> {
        try await registry.open(url, codec: .json(User.self))
      }

      let url = ProcessInfo.processInfo.environment["STORE_URL"] ?? "memory:"
      let users = try await openUsers(url)
      // snippet.end

      try await users.setValue(ada, forKey: "1")
      #expect(try await users.value(forKey: "1") == ada)
      let temporary = try TemporaryFolder()
      for url in ["json:\(temporary.path)/users.json", "sqlite:\(temporary.path)/users.sqlite"] {
        let store = try await openUsers(url)
        try await store.setValue(ada, forKey: "1")
        try await store.close()
        let again = try await openUsers(url)
        #expect(try await again.value(forKey: "1") == ada)
        try await again.close()
      }
      await expectStoreError(.unsupported) { try await openUsers("redis:users") }
    }

    @Test func `a type changes`() async throws {
      let temporary = try TemporaryFolder()
      let folder = temporary.path
      let old = try await JSONFileStore(path: folder + "/users.json", codec: JSONCodec<UserV1>().versioned(1))
      try await old.setValue(UserV1(name: "Ada"), forKey: "1")
      try await old.close()

      // snippet.how-do-i-change-the-type
      let codec = try JSONCodec<User>().versioned(
        2, ValueMigration(from: 1, .json(UserV1.self)) { old in User(email: "", name: old.name) })
      let users = try await JSONFileStore(path: folder + "/users.json", codec: codec)
      // snippet.end

      #expect(try users.value(forKey: "1") == User(email: "", name: "Ada"))
      try await users.setValue(ada, forKey: "1")
      try await users.close()
      await expectStoreError(.versionMismatch) {
        try await JSONFileStore(path: folder + "/users.json", codec: JSONCodec<UserV1>().versioned(1))
      }
    }

    @Test func `a backup is restored`() async throws {
      let temporary = try TemporaryFolder()
      let folder = temporary.path
      let users = try await SQLiteStore<User>(path: folder + "/users.sqlite")
      try await users.setValue(ada, forKey: "1")

      // snippet.how-do-i-back-up-a
      try await users.backup(to: folder + "/monday.sqlite")  // while the store is in use

      let backup = try await SQLiteStore<User>(path: folder + "/monday.sqlite", access: .readOnly)
      try await backup.restore(to: folder + "/restored.sqlite")  // a path at which nothing exists
      try await backup.close()
      // snippet.end

      try await users.removeAll()
      try await users.close()
      let restored = try await SQLiteStore<User>(path: folder + "/restored.sqlite")
      #expect(try restored.value(forKey: "1") == ada)
      try await restored.close()
    }

    @Test func `entries move to another store`() async throws {
      let temporary = try TemporaryFolder()
      let folder = temporary.path
      let filled = try await JSONFileStore<User>(path: folder + "/users.json")
      try await filled.setValue(ada, forKey: "1")
      try await filled.close()

      // snippet.how-do-i-move-to-another
      let old = try await JSONFileStore<User>(path: folder + "/users.json")
      let new = try await SQLiteStore<User>(path: folder + "/users.sqlite")
      let outcome = try await old.copy(to: new)
      print(outcome.copiedCount, "entries were copied")
      // snippet.end

      #expect(outcome.copiedCount == 1)
      #expect(try new.value(forKey: "1") == ada)
      try await old.close()
      try await new.close()
    }

    @Test func `a program shuts down`() async throws {
      let temporary = try TemporaryFolder()
      let jobs = try await QueueStore<String>(path: temporary.path("jobs"))
      try await jobs.enqueue("resize")
      let sessions = MemoryStore<Expiring<String>>().expiring(.after(.seconds(60)))
      let (started, startedContinuation) = AsyncStream.makeStream(of: Void.self)
      let (ending, endingContinuation) = AsyncStream.makeStream(of: Void.self)
      let worker = QueueWorker([
        QueueHandler(jobs) { delivery in
          startedContinuation.yield()
          for await _ in ending { break }
          try await sessions.setValue(delivery.value, forKey: "last")
        }
      ])
      let working = Task { try await worker.run() }
      let purging = Task { try await sessions.purger(every: .seconds(60)).run() }
      for await _ in started { break }
      let finishing = Task {
        for _ in 0..<100 { await Task.yield() }
        endingContinuation.yield()
      }

      // snippet.how-do-i-shut-down
      worker.shutDown()  // takes no further items
      try await working.value  // the running closures have ended
      purging.cancel()
      try await purging.value
      try await jobs.close()
      try await sessions.close()  // the outermost layer closes all layers
      // snippet.end

      await finishing.value
      // The job that was running has finished, and was acknowledged, although it wrote to a store.
      #expect(worker.statistics().processed == 1 && worker.statistics().failed == 0)
      await expectStoreError(.closed) { try await sessions.value(forKey: "last") }
      await expectStoreError(.closed) { try await jobs.enqueue("late") }
    }

    @Test func `a store fails on demand`() async throws {
      let user = ada

      // snippet.how-do-i-test-that-my
      let store = MemoryStore<User>().faulty()
      let service = SignUp(users: store)

      store.schedule(.error(.full), on: .apply)
      #expect(try await service.register(user) == false)
      #expect(try await service.register(user) == true)  // only the next call failed
      // snippet.end

      #expect(store.operationCount == 2)
      #expect(try store.base.value(forKey: "ada@example.com") == ada)
    }
  }
}
#endif
