import Larder
import LarderCache
import LarderTesting
import Testing

/// What the guide `Docs/Caching.md` shows of `CachedStore`.
@Suite struct CachedStoreGuideTests {
  struct User: Equatable {
    var name: String
  }

  @Test func aStoreBehindACache() async throws {
    let base = MemoryStore<User>()
    try base.apply([.set("user:1", User(name: "Ada"))])

    var options = CachedStoreOptions<User>(entryLimit: 50_000)
    options.missingLifetime = .seconds(5)
    options.expiry = .afterWrite(.seconds(30))
    let users = base.cached(options)

    let ada = try await users.value(forKey: "user:1")
    try await users.setValue(User(name: "Bob"), forKey: "user:2")
    #expect(ada == User(name: "Ada"))
    #expect(try base.value(forKey: "user:2") == User(name: "Bob"))

    try base.apply([.set("user:1", User(name: "Ada Lovelace"))])
    #expect(try await users.value(forKey: "user:1", policy: .cacheOnly) == ada)
    #expect(try await users.value(forKey: "user:1", policy: .reload)?.name == "Ada Lovelace")
    try users.invalidate("user:1")
    #expect(try await users.value(forKey: "user:1", policy: .cacheOnly) == nil)
    try users.invalidateAll()
    #expect(try await users.value(forKey: "user:2", policy: .cacheOnly) == nil)
    try await users.close()
  }
}
