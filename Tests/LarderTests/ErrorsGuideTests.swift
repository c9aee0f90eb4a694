import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Larder/Larder.docc/Errors.md`.
///
/// `Scripts/guide-code` writes it into the guide.
@Suite struct ErrorsGuideTests {
  private static let path = "Modules/Larder/Larder.docc/Errors.md"

  struct User: Codable, Hashable {
    var name: String
  }

  private func saveLater(_ user: User) async throws -> Bool { false }
  private func log(_ text: String) {}

  // snippet.overview
  func save(_ user: User, in store: some DataStore<User>) async throws -> Bool {
    do {
      try await store.setValue(user, forKey: "user:1")
      return true
    } catch StoreError.Code.full {
      return false  // show it to the user
    } catch let error as StoreError where error.isRetryable {
      return try await saveLater(user)
    } catch let error as StoreError where error.outcome == .unknown {
      // The write may have taken effect. Read the entry to find out.
      return try await store.value(forKey: "user:1") == user
    }
  }
  // snippet.end

  // snippet.damage
  func readableEntries(of store: some DataStore<User>) async throws -> [StoreEntry<User>] {
    var found: [StoreEntry<User>] = []
    for try await part in store.salvage() {
      switch part {
      case .entries(let entries): found += entries
      case .unreadable(let keys, let error): log("lost: \(keys) because of \(error)")
      }
    }
    return found
  }
  // snippet.end

  @Test func `each kind of error has its response`() async throws {
    let ada = User(name: "Ada")
    #expect(try await save(ada, in: MemoryStore<User>()))

    func answer(to fault: StoreFault) async throws -> Bool {
      let store = MemoryStore<User>().faulty()
      store.schedule(fault, on: .apply)
      return try await save(ada, in: store)
    }
    #expect(try await !answer(to: .error(.full)))
    #expect(try await !answer(to: .error(.ioFailed, outcome: .unknown)))
    #expect(try await answer(to: .error(.ioFailed, .after)))
    await expectStoreError(.notPermitted) { try await answer(to: .error(.notPermitted)) }
  }

  @Test func `a scan continues behind a damaged entry`() async throws {
    let bytes = MemoryStore<[UInt8]>()
    let users = bytes.typed(User.self, prefix: "user/", codec: .json())
    for name in ["a", "b", "c", "d"] { try await users.setValue(User(name: name), forKey: StoreKey(name)) }
    try await bytes.setValue(Array("{".utf8), forKey: "user/b")
    try await bytes.setValue(Array("[]".utf8), forKey: "user/d")
    #expect(try await readableEntries(of: users).map(\.value.name) == ["a", "c"])
    try await users.close()
    await expectStoreError(.closed) { try await readableEntries(of: users) }
  }

  /// The codes in the source of `StoreError`, because a type cannot list its static properties.
  @Test func `the table has every code`() throws {
    let repository = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
    func text(_ path: String) throws -> String {
      try String(contentsOf: repository.appending(path: path), encoding: .utf8)
    }
    let declared = try text("Modules/Larder/Contract/StoreError.swift").matches(of: /static let (\w+) = Code\(/)
      .map { String($0.1) }
    let listed = try text(ErrorsGuideTests.path).matches(of: /(?m)^\| `(\w+)` \|/).map { String($0.1) }
    #expect(declared.count > 10)
    #expect(Set(declared) == Set(listed))
  }
}
