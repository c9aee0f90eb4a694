#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderCache
import LarderJSON
import LarderObservation
import LarderTesting
import TestSupport
import Testing

private struct User: Codable, Sendable {
  var name: String
  var visits = 0
}

// snippet.a-function-that-takes-or-returns-2
private func visits(of name: String, in store: some DataStore<User>) async throws -> Int {
  try await store.value(forKey: "user:\(name)")?.visits ?? 0
}
// snippet.end

// snippet.a-function-that-takes-or-returns
private func openUsers(in folder: String) async throws -> some DataStore<User> & InvalidatableStore {
  try await JSONFileStore<User>(path: folder + "/users.json").cached()
}
// snippet.end

// snippet.a-type-that-has-a-store-2
private struct Roster<Store: DataStore<User>>: Sendable {
  let store: Store

  func countVisit(of name: String) async throws {
    try await store.update("user:\(name)") { user in user?.visits += 1 }
  }
}
// snippet.end

/// The Swift code of the guide `Modules/Larder/Larder.docc/Existentials.md`.
///
/// `Scripts/guide-code` writes it into the guide.
@Suite struct ExistentialsGuideTests {
  @Test func `a generic type has a store of unknown layers`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    // snippet.a-type-that-has-a-store
    let roster = Roster(store: try await openUsers(in: folder))
    try await roster.countVisit(of: "Ada")
    // snippet.end
    #expect(try await visits(of: "Ada", in: roster.store) == 0)
    try await roster.store.setValue(User(name: "Ada"), forKey: "user:Ada")
    try await roster.countVisit(of: "Ada")
    try roster.store.invalidateAll()
    #expect(try await visits(of: "Ada", in: roster.store) == 1)
    try await roster.store.close()
    try location.remove()
  }

  @Test func `stores of several types are in one array`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder

    // snippet.a-store-that-is-chosen-at-4
    let stores: [any DataStore<User>] = [
      MemoryStore<User>(),
      try await JSONFileStore<User>(path: folder + "/copy.json"),
    ]
    for store in stores {
      try await store.setValue(User(name: "Ada", visits: 7), forKey: "user:Ada")
      print(store.information.name, try await visits(of: "Ada", in: store))
    }
    // snippet.end

    // snippet.a-store-that-is-chosen-at-3
    let users = AnyDataStore(stores[1]).cached()
    for try await entry in users.entries(in: .prefix("user:")) {
      print(entry.key, entry.value.visits)
    }
    // snippet.end

    // snippet.a-store-that-is-chosen-at-2
    let anyStore = AnyDataStore(stores[1])
    if let maintenance = anyStore.maintenance {
      try await maintenance.compact()
    }
    // snippet.end

    // snippet.a-store-that-is-chosen-at
    func cached(_ store: some DataStore<User>) -> any DataStore<User> {
      store.cached()
    }

    let cachedCopy = AnyDataStore(cached(stores[1]))
    if let maintenance = cachedCopy.maintenance {
      try await maintenance.compact()
    }
    // snippet.end
    // The capability is found at run time, although the compiler knew nothing of it.
    #expect(AnyDataStore(cached(MemoryStore<User>().observable())).observation != nil)
    #expect(AnyDataStore(cached(MemoryStore<User>())).observation == nil)

    for store in stores { #expect(try await visits(of: "Ada", in: store) == 7) }
    #expect(try await users.count() == 1)
    #expect(anyStore.maintenance != nil)
    for store in stores { try await store.close() }
    try location.remove()
  }
}
#endif
