#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderIndexes
// snippet.observing-stores
import LarderJSON
import LarderObservation
// snippet.end
import LarderSQLite
import TestSupport
import Testing

/// The answers of `Modules/Larder/Larder.docc/Cookbook.md`.
///
/// The code of each answer must appear in a test unchanged, and it must do what the answer says. This file has the page itself and
/// the answers about entries. The others are in the files beside it.
@Suite struct CookbookTests {
  struct User: Codable, Sendable, Equatable {
    var email: String
    var name: String
  }

  struct Order: Codable, Sendable, Equatable {
    var number: Int
    var date = Date(timeIntervalSince1970: 0)
  }

  private struct Settings: Codable, Sendable, Equatable {
    var theme = "light"
    var fontSize = 14
  }

  private struct Note: Codable, Sendable, Equatable {
    var title: String
    var tags: [String]
    var created = Date(timeIntervalSince1970: 0)
  }

  // MARK: The page

  private static let page = "Modules/Larder/Larder.docc/Cookbook.md"

  /// Each answer has one block of at most 15 lines, the products, and a link to a guide.
  @Test func `each answer is short`() throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../" + CookbookTests.page)
    let answers = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n### ").dropFirst()
    #expect(answers.count >= 20)
    for answer in answers {
      let title = answer.prefix { $0 != "\n" }
      let blocks = answer.components(separatedBy: "```swift\n").dropFirst().map { $0.components(separatedBy: "```")[0] }
      #expect(title.hasPrefix("How do I ") && title.hasSuffix("?"), "\(title)")
      #expect(blocks.count == 1, "\(title)")
      #expect(blocks.allSatisfy { $0.split(separator: "\n", omittingEmptySubsequences: false).count <= 16 }, "\(title)")
      #expect(answer.contains("\nProducts: `Larder") && answer.contains("\nMore:"), "\(title)")
    }
  }

  // MARK: Single entries

  @Test func settings() async throws {
    let temporary = try TemporaryFolder()
    let folder = temporary.path

    // snippet.how-do-i-keep-the-settings
    let store = try await JSONFileStore<Settings>(path: folder + "/settings.json")
    let settings = try store.value(forKey: "settings") ?? Settings()

    try await store.update("settings") { stored in
      var changed = stored ?? Settings()
      changed.fontSize = 16
      stored = changed
    }
    // snippet.end

    #expect(settings == Settings())
    try await store.close()
    let later = try await JSONFileStore<Settings>(path: folder + "/settings.json")
    #expect(try later.value(forKey: "settings") == Settings(theme: "light", fontSize: 16))
    try await later.close()
  }

  @Test func `one of many creates an entry`() async throws {
    let seats = MemoryStore<String>()

    // snippet.how-do-i-create-an-entry
    func reserve(_ seat: StoreKey, for name: String) async throws -> Bool {
      try await seats.insertValue(name, forKey: seat)
    }
    // snippet.end

    let winners = try await withThrowingTaskGroup(of: String?.self) { group in
      for number in 0..<20 {
        group.addTask { try await reserve("7A", for: "\(number)") ? "\(number)" : nil }
      }
      return try await group.reduce(into: [String]()) { $0 += $1.map { [$0] } ?? [] }
    }
    #expect(winners.count == 1)
    #expect(try seats.value(forKey: "7A") == winners.first)
  }

  @Test func `a changed entry is not overwritten`() async throws {
    let pages = MemoryStore<String>()
    try pages.apply([.set("home", "draft")])

    // snippet.how-do-i-save-a-change
    func save(_ edited: String, replacing original: String, forKey key: StoreKey) async throws -> Bool {
      try await pages.replaceValue(edited, forKey: key, expecting: original)
    }
    // snippet.end

    #expect(try await save("first", replacing: "draft", forKey: "home"))
    #expect(try await !save("second", replacing: "draft", forKey: "home"))
    #expect(try await !save("third", replacing: "draft", forKey: "missing"))
    #expect(try pages.value(forKey: "home") == "first" && pages.count(in: .all) == 1)
  }

  // MARK: Lists

  @Test func `newest first`() async throws {
    let orders = MemoryStore<Order>()
    try orders.apply([.set(StoreKey(components: "order", "Bob", Date.now, 7), Order(number: 7))])
    func add(_ order: Order) async throws -> [Int] { try await newest(after: order, of: "Ada", in: orders) }
    #expect(try await add(Order(number: 10)) == [10])
    #expect(try await add(Order(number: 2, date: Date(timeIntervalSince1970: 9))) == [2, 10])
    #expect(try await add(Order(number: 9)) == [2, 10, 9])
  }

  private func newest(
    after order: Order, of customer: String, in orders: any DataStore<Order>
  ) async throws -> [Int] {
    // snippet.how-do-i-list-entries-by
    let key = StoreKey(components: "order", customer, order.date, order.number)
    try await orders.setValue(order, forKey: key)

    let newest = try await orders.entries(
      in: .prefix(components: "order", customer), limit: 20, order: .descending)
    // snippet.end

    return newest.map(\.value.number)
  }

  @Test func `pages of a web interface`() async throws {
    let users = MemoryStore<User>()
    for number in 10..<55 {
      try users.apply([.set("user:\(number)", User(email: "\(number)@example.com", name: "\(number)"))])
    }
    try users.apply([.set("zoo", User(email: "", name: "not a user"))])

    // snippet.how-do-i-return-pages-from
    func listUsers(after cursor: String?) async throws -> (users: [User], next: String?) {
      let pages = users.pages(of: .prefix("user:"), size: 20)
      let start = try cursor.map { try PageCursor($0) }
      let page = try await pages.starting(after: start).page()
      return (page.entries.map(\.value), page.next?.text)
    }
    // snippet.end

    var names: [String] = []
    var sizes: [Int] = []
    var cursor: String?
    repeat {
      let page = try await listUsers(after: cursor)
      names += page.users.map(\.name)
      sizes.append(page.users.count)
      cursor = page.next
      // Removing an entry that was listed and adding one before it changes no later page.
      try users.apply([.remove("user:10"), .set("user:0", User(email: "", name: "new"))])
    } while cursor != nil
    #expect(names == (10..<55).map { "\($0)" } && sizes == [20, 20, 5])
    await expectStoreError(.invalidArgument) { try await listUsers(after: "no cursor") }
  }

  @Test func `entries by a property`() async throws {
    let bytes = MemoryStore<[UInt8]>()

    // snippet.how-do-i-find-entries-by
    let byTag = StoreIndex<Note>("tag") { _, note in note.tags.map { [$0, note.created] } }
    let notes = try await bytes.indexed(by: [byTag], codec: .json(Note.self))
    try await notes.rebuildIndexes()

    try await notes.setValue(Note(title: "Actors", tags: ["swift"]), forKey: "7")
    let page = try await notes.page(where: byTag, in: .prefix(components: "swift"), order: .descending)
    // snippet.end

    #expect(page.entries.map(\.value.title) == ["Actors"])
    try await notes.setValue(Note(title: "Tea", tags: ["home"]), forKey: "7")
    #expect(try await notes.count(where: byTag, in: .prefix(components: "swift")) == 0)
  }

  @Test func `an address is used once`() async throws {
    let temporary = try TemporaryFolder()
    let folder = temporary.path
    let user = User(email: "ADA@example.com", name: "Eve")
    var isTaken = false

    // snippet.how-do-i-make-sure-that
    let byEmail = StoreIndex<User>("email", isUnique: true) { _, user in [[user.email.lowercased()]] }
    let bytes = try await SQLiteStore(path: folder + "/users.sqlite", codec: .raw)
    let users = try await bytes.indexed(by: [byEmail], codec: .json(User.self))
    try await users.rebuildIndexes()
    try await users.setValue(User(email: "ada@example.com", name: "Ada"), forKey: "1")

    do {
      try await users.setValue(user, forKey: "2")
    } catch StoreError.Code.notUnique {
      isTaken = true  // another user has this address
    }
    // snippet.end

    #expect(isTaken)
    #expect(try await users.count() == 1)
    #expect(try await users.entries(where: byEmail, in: .prefix(components: user.email), limit: 1).isEmpty)
    try await users.close()
  }

  // MARK: Several entries

  @Test func `a repeated transfer is made once`() async throws {
    let bytes = MemoryStore<[UInt8]>()

    // snippet.how-do-i-move-money-only
    let balances = bytes.typed(Int.self, prefix: "balance/", codec: .json())
    let transfers = bytes.typed(Int.self, prefix: "transfer/", codec: .json())

    func send(_ amount: Int, from payer: StoreKey, to payee: StoreKey, id: StoreKey) async throws -> Bool {
      try await bytes.transaction { tx in
        if try await tx.contains(id, in: transfers) { return .discard(true) }  // repeated
        let balance = try await tx.value(forKey: payer, in: balances) ?? 0
        guard balance >= amount else { return .discard(false) }
        try await tx.setValue(balance - amount, forKey: payer, in: balances)
        try await tx.update(payee, in: balances) { $0 = ($0 ?? 0) + amount }
        try await tx.setValue(amount, forKey: id, in: transfers)
        return .commit(true)
      }
    }
    // snippet.end

    try await balances.setValue(100, forKey: "ada")
    let results = try await withThrowingTaskGroup(of: Bool.self) { group in
      for _ in 0..<10 { group.addTask { try await send(30, from: "ada", to: "bob", id: "request-1") } }
      return try await group.reduce(into: [Bool]()) { $0.append($1) }
    }
    #expect(results == Array(repeating: true, count: 10))
    #expect(try await balances.values(forKeys: ["ada", "bob"]) == [70, 30])
    #expect(try await !send(300, from: "ada", to: "bob", id: "request-2"))
    #expect(try await balances.values(forKeys: ["ada", "bob"]) == [70, 30])
    #expect(try await transfers.count() == 1)
  }

  @Test func `several types in one file`() async throws {
    let temporary = try TemporaryFolder()
    let folder = temporary.path
    let (user, order) = (User(email: "ada@example.com", name: "Ada"), Order(number: 17))

    // snippet.how-do-i-keep-several-types
    let bytes = try await SQLiteStore(path: folder + "/shop.sqlite", codec: .raw)
    let users = bytes.typed(User.self, prefix: "user/", codec: .json())
    let orders = bytes.typed(Order.self, prefix: "order/", codec: .json())

    try await bytes.transaction { tx in
      try await tx.setValue(user, forKey: "ada", in: users)
      try await tx.setValue(order, forKey: "17", in: orders)
      return .commit(())
    }
    // snippet.end

    #expect(try await users.value(forKey: "ada") == user)
    #expect(try await orders.entries(in: .all, limit: 9).map(\.value) == [order])
    #expect(try bytes.count(in: .all) == 2)
    try await bytes.close()
  }

  @Test func `many entries are loaded in batches`() async throws {
    let commits = Locked(0)
    let users = MemoryStore<User>().observable()
    let observation = users.observe(.all) { _ in commits.withLock { $0 += 1 } }
    let imported = (0..<2500).map { User(email: "\($0)@example.com", name: "\($0)") }

    // snippet.how-do-i-load-many-entries
    var batch = ChangeBatch<User>()
    for user in imported {
      batch.setValue(user, forKey: StoreKey(user.email))
      if batch.count == 1000 {
        try await users.apply(batch)
        batch = ChangeBatch()
      }
    }
    try await users.apply(batch)
    // snippet.end

    #expect(try await users.count() == 2500)
    #expect(commits.withLock { $0 } == 3)
    observation.cancel()
  }
}
#endif
