import Larder
import LarderTesting
import TestSupport
import Testing

/// Transactions over typed views of a store in memory.
@Suite struct StoreTransactionTests {
  private struct Oops: Error {}

  private let store: FaultyStore<MemoryStore<[UInt8]>>
  private let accounts: TypedView<FaultyStore<MemoryStore<[UInt8]>>, Int>
  private let names: TypedView<FaultyStore<MemoryStore<[UInt8]>>, String>

  init() async throws {
    store = MemoryStore<[UInt8]>().faulty()
    accounts = store.typed(Int.self, prefix: "account/", codec: .json())
    names = store.typed(String.self, prefix: "name/", codec: .json())
    try await accounts.setValue(100, forKey: "a")
    try await accounts.setValue(0, forKey: "b")
    try await names.setValue("Ada", forKey: "a")
  }

  private func sum() async throws -> Int {
    try await accounts.values(forKeys: ["a", "b"]).compactMap(\.self).reduce(0, +)
  }

  // MARK: Reading and writing

  @Test func `several views change together`() async throws {
    let name = try await store.transaction { tx in
      let name = try await tx.value(forKey: "a", in: names)
      try await tx.update("a", in: accounts) { $0 = ($0 ?? 0) - 10 }
      try await tx.update("b", in: accounts) { $0 = ($0 ?? 0) + 10 }
      try await tx.setValue("Bob", forKey: "b", in: names)
      try await tx.removeValue(forKey: "a", in: names)
      return .commit(name)
    }
    #expect(name == "Ada")
    #expect(try await accounts.values(forKeys: ["a", "b"]) == [90, 10])
    #expect(try await names.values(forKeys: ["a", "b"]) == [nil, "Bob"])
  }

  @Test func `reads see the transactions own writes`() async throws {
    try await store.transaction { tx in
      try await tx.setValue(7, forKey: "a", in: accounts)
      #expect(try await tx.value(forKey: "a", in: accounts) == 7)
      try await tx.removeValue(forKey: "b", in: accounts)
      #expect(try await tx.values(forKeys: ["a", "b", "c"], in: accounts) == [7, nil, nil])
      #expect(try await !tx.contains("b", in: accounts))
      let stored = try await tx.storedValues(forKeys: ["account/a"])
      #expect(stored == [Array("100".utf8)])
      return .discard(())
    }
    #expect(try await accounts.values(forKeys: ["a", "b"]) == [100, 0])
  }

  @Test func `reads are repeatable`() async throws {
    let reads = try await store.transaction { tx in
      let first = try await tx.value(forKey: "a", in: accounts)
      if first == 100 { try await accounts.setValue(1, forKey: "a") }
      let second = try await tx.value(forKey: "a", in: accounts)
      return .discard([first, second])
    }
    // A single read was true at one moment, whatever happened afterward.
    #expect(reads == [100, 100])
  }

  @Test func `errors name the key of the view`() async throws {
    try await store.setValue([0xFF], forKey: "account/x")
    let error = await #expect(throws: StoreError.self) {
      try await store.transaction { tx in .commit(try await tx.value(forKey: "x", in: accounts)) }
    }
    #expect(error?.key == "x" && error?.operation == .transaction)
    await expectStoreError(.invalidKey) {
      try await store.transaction { tx in .commit(try await tx.setValue(1, forKey: "", in: accounts)) }
    }
  }

  // MARK: Conflicts

  @Test func `a stale read runs the body again`() async throws {
    var attempts = 0
    let result = try await store.transaction { tx in
      attempts += 1
      let value = try await tx.value(forKey: "a", in: accounts) ?? 0
      if attempts == 1 { try await accounts.setValue(5, forKey: "a") }
      try await tx.setValue(value + 1, forKey: "a", in: accounts)
      return .commit(value)
    }
    #expect(result == 5 && attempts == 2)
    #expect(try await accounts.value(forKey: "a") == 6)
  }

  @Test func `a missing key that appears is a conflict`() async throws {
    var attempts = 0
    let isNew = try await store.transaction { tx in
      attempts += 1
      guard try await !tx.contains("c", in: accounts) else { return .discard(false) }
      try await accounts.setValue(1, forKey: "c")
      try await tx.setValue(2, forKey: "c", in: accounts)
      return .commit(true)
    }
    #expect(!isNew && attempts == 2)
    #expect(try await accounts.value(forKey: "c") == 1)
  }

  /// Neither result could be explained by the state of any moment.
  @Test(arguments: [false, true]) func `what a stale read has caused is not passed on`(_ isThrown: Bool) async throws {
    var attempts = 0
    let sum = try await store.transaction { tx in
      attempts += 1
      let a = try await tx.value(forKey: "a", in: accounts) ?? 0
      if attempts == 1 { try await accounts.apply([.set("a", 50), .set("b", 50)]) }
      let b = try await tx.value(forKey: "b", in: accounts) ?? 0
      if isThrown, a + b != 100 { throw Oops() }
      return .discard(a + b)
    }
    #expect(sum == 100 && attempts == 2)
  }

  @Test func `an error of the body is passed on and nothing changes`() async throws {
    let before = store.operationCount
    await #expect(throws: Oops.self) {
      try await store.transaction { tx -> UpdateDecision<Void> in
        try await tx.setValue(1, forKey: "a", in: accounts)
        throw Oops()
      }
    }
    #expect(store.operationCount == before)
    #expect(try await accounts.value(forKey: "a") == 100)
  }

  @Test func `attempts are bounded`() async throws {
    var attempts = 0
    let error = await #expect(throws: StoreError.self) {
      try await store.transaction { tx in
        attempts += 1
        let value = try await tx.value(forKey: "a", in: accounts) ?? 0
        try await accounts.setValue(attempts, forKey: "a")
        return .commit(try await tx.setValue(value, forKey: "a", in: accounts))
      }
    }
    #expect(error?.code == .conflict && error?.isRetryable == true && attempts == 100)
    #expect(error?.outcome == .nothingChanged)
    #expect(try await accounts.value(forKey: "a") == 100)
  }

  /// The second attempt is alone, and the commits of first attempts wait for it.
  @Test func `a hot counter takes at most two attempts`() async throws {
    let most = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<8 {
        group.addTask {
          var most = 0
          for _ in 0..<100 {
            var attempts = 0
            try await store.transaction { tx in
              attempts += 1
              let value = try await tx.value(forKey: "b", in: accounts) ?? 0
              await Task.yield()
              return .commit(try await tx.setValue(value + 1, forKey: "b", in: accounts))
            }
            most = max(most, attempts)
          }
          return most
        }
      }
      return try await group.reduce(0) { max($0, $1) }
    }
    #expect(try await accounts.value(forKey: "b") == 800)
    #expect(most <= 2)
  }

  // MARK: Transactions that write nothing

  @Test func `a transaction that writes nothing makes no update`() async throws {
    let before = store.operationCount
    try await store.transaction { tx in .commit(try await tx.value(forKey: "a", in: accounts)) }
    // A single read needs no check.
    #expect(store.operationCount == before + 1)
    try await store.transaction { tx in
      _ = try await tx.value(forKey: "a", in: accounts)
      _ = try await tx.value(forKey: "b", in: accounts)
      return .commit(())
    }
    // Two reads, and one of both keys.
    #expect(store.operationCount == before + 4)
  }

  @Test func `a read only store has transactions`() async throws {
    let base = MemoryStore<[UInt8]>()
    try base.apply([.set("n/a", Array("1".utf8)), .set("n/b", Array("2".utf8))])
    let store = ReadOnlyStore(base: base)
    let numbers = store.typed(Int.self, prefix: "n/", codec: .json())
    let sum = try await store.transaction { tx in
      let a = try await tx.value(forKey: "a", in: numbers) ?? 0
      let b = try await tx.value(forKey: "b", in: numbers) ?? 0
      return .commit(a + b)
    }
    #expect(sum == 3)
    await expectStoreError(.notPermitted) {
      try await store.transaction { tx in .commit(try await tx.setValue(1, forKey: "a", in: numbers)) }
    }
  }

  // MARK: Misuse

  @Test func `a view of another store is refused`() async throws {
    let other = MemoryStore<[UInt8]>().faulty().typed(Int.self, prefix: "account/", codec: .json())
    await expectStoreError(.invalidArgument) {
      try await store.transaction { tx in .commit(try await tx.value(forKey: "a", in: other)) }
    }
  }

  @Test func `overlapping prefixes are refused`() async throws {
    let other = store.typed(Int.self, prefix: "account/x/", codec: .json())
    await expectStoreError(.invalidArgument) {
      try await store.transaction { tx in
        _ = try await tx.value(forKey: "a", in: accounts)
        return .commit(try await tx.value(forKey: "a", in: other))
      }
    }
    // The same view, made anew.
    let same = store.typed(Int.self, prefix: "account/", codec: .json())
    try await store.transaction { tx in
      try await tx.setValue(1, forKey: "a", in: accounts)
      #expect(try await tx.value(forKey: "a", in: same) == 1)
      return .discard(())
    }
  }

  @Test func `a transaction is useless after its end`() async throws {
    var kept: StoreTransaction<FaultyStore<MemoryStore<[UInt8]>>>?
    try await store.transaction { tx in
      kept = tx
      return .commit(())
    }
    let ended = try #require(kept)
    await expectStoreError(.closed) { _ = try await ended.value(forKey: "a", in: accounts) }
    await expectStoreError(.closed) { try await ended.setValue(1, forKey: "a", in: accounts) }
  }

  @Test func `a nested transaction of the same store is refused`() async throws {
    await expectStoreError(.invalidArgument) {
      try await store.transaction { _ in .commit(try await store.transaction { _ in .commit(()) }) }
    }
    let other = MemoryStore<[UInt8]>()
    try await store.transaction { tx in
      try await other.transaction { inner in .commit(try inner.setValue([1], forKey: "a")) }
      return .commit(())
    }
    #expect(try other.value(forKey: "a") == [1])
  }

  /// Each transaction runs alone and begins one of the other store, in opposite orders.
  @Test func `nested transactions of two stores do not wait for each other`() async throws {
    let other = MemoryStore<[UInt8]>().faulty()
    let stores = [store, other]
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<8 {
        group.addTask {
          for _ in 0..<20 {
            try await stores[number % 2].transaction { tx in
              let value = try await tx.value(forKey: "n") ?? [0]
              try await stores[1 - number % 2].transaction { inner in
                _ = try await inner.value(forKey: "n")
                await Task.yield()
                return .commit(())
              }
              return .commit(try tx.setValue([value[0] + 1], forKey: "n"))
            }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try await store.value(forKey: "n") == [80])
    #expect(try await other.value(forKey: "n") == [80])
  }

  @Test func `a cancelled transaction changes nothing`() async throws {
    let task = Task {
      try await store.transaction { tx in
        try await tx.setValue(1, forKey: "a", in: accounts)
        withUnsafeCurrentTask { $0?.cancel() }
        return .commit(())
      }
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try await accounts.value(forKey: "a") == 100)
  }

  // MARK: Tasks, views and errors

  /// The task inherits the values of the task that commits.
  @Test func `a task that a transaction creates has transactions of its own`() async throws {
    var task: Task<Void, any Error>?
    try await store.transaction { tx in
      let (stream, go) = AsyncStream.makeStream(of: Void.self)
      task = Task {
        await expectStoreError(.invalidArgument) { try await store.transaction { _ in .commit(()) } }
        go.finish()
        while true {
          do {
            return try await store.transaction { tx in .commit(try await tx.setValue(9, forKey: "a", in: accounts)) }
          } catch StoreError.Code.invalidArgument {
            await Task.yield()
          }
        }
      }
      for await _ in stream {}
      return .commit(())
    }
    try await task?.value
    #expect(try await accounts.value(forKey: "a") == 9)
  }

  @Test func `equal views have the same transactions`() async throws {
    func tenant() -> TypedView<FaultyStore<MemoryStore<[UInt8]>>, [UInt8]> {
      store.typed([UInt8].self, prefix: "tenant/7/", codec: .raw)
    }
    let notes = tenant().typed(Int.self, prefix: "note/", codec: .json())
    try await tenant().transaction { tx in .commit(try await tx.setValue(1, forKey: "a", in: notes)) }
    #expect(try await store.value(forKey: "tenant/7/note/a") == Array("1".utf8))
    await expectStoreError(.invalidArgument) {
      try await tenant().transaction { _ in .commit(try await tenant().transaction { _ in .commit(()) }) }
    }
    let other = store.typed([UInt8].self, prefix: "tenant/8/", codec: .raw)
    await expectStoreError(.invalidArgument) {
      try await other.transaction { tx in .commit(try await tx.setValue(1, forKey: "a", in: notes)) }
    }
  }

  @Test func `another decorator of the same store is refused`() async throws {
    let (first, second) = (AnyDataStore(store), AnyDataStore(MemoryStore<[UInt8]>().faulty()))
    let view = AnyDataStore(MemoryStore<[UInt8]>()).typed(Int.self, prefix: "account/", codec: .json())
    for erased in [first, second] {
      await expectStoreError(.invalidArgument) {
        try await erased.transaction { tx in .commit(try await tx.value(forKey: "a", in: view)) }
      }
    }
    let same = first.typed(Int.self, prefix: "account/", codec: .json())
    #expect(try await first.transaction { tx in .commit(try await tx.value(forKey: "a", in: same)) } == 100)
  }

  @Test func `errors of the commit name the key of the view`() async throws {
    store.schedule(.error(.ioFailed), on: .update)
    let error = await #expect(throws: StoreError.self) {
      try await store.transaction { tx in .commit(try await tx.setValue(1, forKey: "a", in: accounts)) }
    }
    #expect(error?.code == .ioFailed)
    #expect(try await accounts.value(forKey: "a") == 100)
  }
}

/// A store that is open for reading only.
private struct ReadOnlyStore<Base: DataStore>: PassingStore {
  let base: Base

  var information: StoreInformation {
    var information = base.information
    information.access = .readOnly
    return information
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Base.Value>) -> UpdateDecision<Result>
  ) async throws -> Result {
    try information.checkWritable(for: .update)
    return try await base.update(deciding: keys, body)
  }
}
