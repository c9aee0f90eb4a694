import Larder
#if Crypto
import Testing

@testable import LarderCrypto

/// The keychain source over a keychain in memory that behaves as Apple documents.
struct KeychainTests {
  private static let marked = "MARKED-SECRET"
  private static let content = Array(marked.utf8)
  private static let query = KeychainQuery(
    service: "service", account: "keys", accessGroup: nil, accessible: .afterFirstUnlockThisDeviceOnly)

  private let items = MemoryItems()

  private var source: KeychainKeySource { KeychainKeySource(KeychainTests.query, in: items) }

  private func code(_ body: () async throws -> Void) async throws -> KeyRingError.Code {
    do {
      try await body()
    } catch let error as KeyRingError {
      var dumped = ""
      dump(error, to: &dumped)
      #expect(!"\(error) \(dumped)".contains(KeychainTests.marked))
      return error.code
    }
    return try #require(nil, "there was no error")
  }

  @Test func `the item is added once and then updated in place`() async throws {
    #expect(try await source.load() == nil)
    try await source.save(KeychainTests.content, replacing: nil)
    #expect(try await source.load() == KeychainTests.content)
    try await source.save([2], replacing: KeychainTests.content)
    #expect(try await source.load() == [2])
    #expect(items.calls == ["copy", "copy", "add", "copy", "copy", "update", "copy"])
    let revisions = items.revisions
    #expect(revisions.count == 2 && Set(revisions).count == 2 && revisions.allSatisfy { $0?.count == 16 })
  }

  @Test func `other content is never replaced`() async throws {
    try await source.save([1], replacing: nil)
    #expect(try await code { try await source.save([2], replacing: nil) } == .changed)
    #expect(try await code { try await source.save([2], replacing: [3]) } == .changed)
    items.remove()
    #expect(try await code { try await source.save([2], replacing: [1]) } == .changed)
    #expect(try await source.load() == nil)
  }

  @Test func `another process that is faster is noticed`() async throws {
    // After the comparison, and before the item is added, updated, or updated after a removal.
    items.beforeNextChange { $0 = KeychainContent(data: [9], revision: [9]) }
    #expect(try await code { try await source.save([1], replacing: nil) } == .changed)
    #expect(try await source.load() == [9])
    items.beforeNextChange { $0 = KeychainContent(data: [8], revision: [8]) }
    #expect(try await code { try await source.save([1], replacing: [9]) } == .changed)
    #expect(try await source.load() == [8])
    items.beforeNextChange { $0 = nil }
    #expect(try await code { try await source.save([1], replacing: [8]) } == .changed)
    #expect(try await source.load() == nil)
  }

  @Test func `an item without a revision is updated`() async throws {
    items.put(KeychainContent(data: [1], revision: nil))
    try await source.save([2], replacing: [1])
    #expect(try await source.load() == [2])
    #expect(items.revisions.last??.count == 16)
  }

  @Test(arguments: [
    (KeychainStatus.interactionNotAllowed, KeyRingError.Code.unavailable), (KeychainStatus.notAvailable, .unavailable),
    (KeychainStatus.userCanceled, .unavailable), (KeychainStatus.missingEntitlement, .notPermitted),
    (KeychainStatus.authenticationFailed, .notPermitted), (KeychainStatus.diskFull, .full),
    (KeychainStatus.cannotDecode, .corrupted), (-50, .ioFailed),
  ])
  func `a failure is never a missing item`(status: Int32, expected: KeyRingError.Code) async throws {
    try await source.save(KeychainTests.content, replacing: nil)
    items.fail("copy", with: status)
    #expect(try await code { _ = try await source.load() } == expected)
    #expect(try await code { try await source.save([2], replacing: KeychainTests.content) } == expected)
    items.fail("update", with: status)
    #expect(try await code { try await source.save([2], replacing: KeychainTests.content) } == expected)
    items.fail(nil, with: status)
    #expect(try await source.load() == KeychainTests.content)
    items.remove()
    items.fail("add", with: status)
    #expect(try await code { try await source.save([2], replacing: nil) } == expected)
    #expect(items.content == nil)
  }

  @Test func `the systems text is in the error`() async throws {
    items.fail("copy", with: -50)
    let error = await #expect(throws: KeyRingError.self) { try await source.load() }
    #expect(error?.message.hasSuffix("(status -50: text of -50)") == true)
  }

  @Test func `an item without data is damaged`() async throws {
    items.fail("copy", with: KeychainStatus.success)
    #expect(try await code { _ = try await source.load() } == .corrupted)
  }
}

/// A keychain with one item.
private final class MemoryItems: KeychainItems {
  private struct State {
    var content: KeychainContent?
    var calls: [String] = []
    var revisions: [[UInt8]?] = []
    var failing: (call: String, status: Int32)?
    var change: (@Sendable (inout KeychainContent?) -> Void)?
  }

  private let state = Locked(State())

  var calls: [String] { state.withLock { $0.calls } }
  var content: KeychainContent? { state.withLock { $0.content } }
  /// The revisions that were written.
  var revisions: [[UInt8]?] { state.withLock { $0.revisions } }

  func put(_ content: KeychainContent) { state.withLock { $0.content = content } }
  func remove() { state.withLock { $0.content = nil } }

  func fail(_ call: String?, with status: Int32) {
    state.withLock { state in state.failing = call.map { ($0, status) } }
  }

  /// Acts as another process that is faster than the next change.
  func beforeNextChange(_ change: @escaping @Sendable (inout KeychainContent?) -> Void) {
    state.withLock { $0.change = change }
  }

  func copy(_ query: KeychainQuery) -> (status: Int32, content: KeychainContent?) {
    state.withLock { state in
      state.calls.append("copy")
      if let failing = state.failing, failing.call == "copy" { return (failing.status, nil) }
      guard let content = state.content else { return (KeychainStatus.itemNotFound, nil) }
      return (KeychainStatus.success, content)
    }
  }

  func add(_ content: KeychainContent, at query: KeychainQuery) -> Int32 {
    change("add") { state in
      guard state.content == nil else { return KeychainStatus.duplicateItem }
      state.content = content
      state.revisions.append(content.revision)
      return KeychainStatus.success
    }
  }

  func update(_ query: KeychainQuery, revision: [UInt8]?, to content: KeychainContent) -> Int32 {
    change("update") { state in
      guard let current = state.content, revision == nil || current.revision == revision else {
        return KeychainStatus.itemNotFound
      }
      state.content = content
      state.revisions.append(content.revision)
      return KeychainStatus.success
    }
  }

  private func change(_ call: String, _ body: (inout State) -> Int32) -> Int32 {
    state.withLock { state in
      state.calls.append(call)
      if let failing = state.failing, failing.call == call { return failing.status }
      state.change?(&state.content)
      state.change = nil
      return body(&state)
    }
  }

  func message(for status: Int32) -> String? { "text of \(status)" }
}
#endif
