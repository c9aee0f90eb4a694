import Larder
import LarderTesting
import TestSupport
import Testing

@Suite struct LoadingStoreTests {
  private struct Failure: Error {}

  /// A closure that other tests can watch and hold.
  private final class Loader: Sendable {
    private struct State: Sendable {
      var keys: [StoreKey] = []
      var running = 0
      var maximum = 0
      var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Locked(State())

    var keys: [StoreKey] { state.withLock { $0.keys } }
    var maximum: Int { state.withLock { $0.maximum } }

    /// Loads the length of a key, or nothing for the key `none`, after it has waited for other calls.
    ///
    /// - Parameter count: The number of calls that have to run at the same time before the first of them ends.
    func load(_ key: StoreKey, beside count: Int = 1) async -> Int? {
      await withCheckedContinuation { continuation in
        let resumed = state.withLock { state in
          state.keys.append(key)
          state.running += 1
          state.maximum = max(state.maximum, state.running)
          state.waiters.append(continuation)
          guard state.maximum >= count else { return [CheckedContinuation<Void, Never>]() }
          defer { state.waiters = [] }
          return state.waiters
        }
        for waiter in resumed { waiter.resume() }
      }
      // A call that were not held back would begin in this time.
      for _ in 0..<20 { await Task.yield() }
      state.withLock { $0.running -= 1 }
      return key == "none" ? nil : key.count
    }
  }

  @Test func `each read calls the closure`() async throws {
    let loader = Loader()
    let store = LoadingStore<Int> { await loader.load($0) }
    #expect(try await store.value(forKey: "abc") == 3)
    #expect(try await store.value(forKey: "none") == nil)
    #expect(try await store["abc"] == 3)
    #expect(loader.keys == ["abc", "none", "abc"])
    await expectStoreError(.invalidKey) { try await store.value(forKey: "") }
    await expectStoreError(.invalidKey) { try await store.values(forKeys: ["a", ""]) }
    #expect(loader.keys.count == 3)
  }

  @Test func `a stored nil differs from a missing key`() async throws {
    let store = LoadingStore<Int?> { key in key == "none" ? nil : .some(key == "nil" ? nil : 1) }
    #expect(try await store.values(forKeys: ["nil", "none", "a", "nil"]) == [.some(nil), nil, .some(1), .some(nil)])
    #expect(try await store.value(forKey: "nil") == .some(nil))
  }

  /// Twenty keys, of which three are loaded at the same time.
  @Test func `several keys are loaded within a limit`() async throws {
    let loader = Loader()
    let store = LoadingStore<Int>(concurrencyLimit: 3) { await loader.load($0, beside: 3) }
    let keys = (0..<20).map { StoreKey("key\($0)") } + ["none"]
    let values = try await store.values(forKeys: keys + keys.reversed())
    #expect(
      values == keys.map { $0 == "none" ? nil : $0.count } + keys.reversed().map { $0 == "none" ? nil : $0.count })
    #expect(loader.maximum == 3)
    #expect(loader.keys.sorted() == keys.sorted())
    #expect(try await store.values(forKeys: []) == [])
    let serial = Loader()
    let slow = LoadingStore<Int>(concurrencyLimit: 0) { await serial.load($0) }
    #expect(try await slow.values(forKeys: ["a", "b", "c"]) == [1, 1, 1])
    #expect(serial.maximum == 1)
  }

  @Test func `errors of the closure are wrapped`() async throws {
    let store = LoadingStore<Int>(name: "server") { key in
      switch key {
      case "slow":
        throw StoreError(
          .timedOut, during: .open, store: "inner", key: "inner", message: "no answer", isRetryable: true)
      case "cancelled": throw CancellationError()
      default: throw Failure()
      }
    }
    let failure = await expectStoreError(.ioFailed) { try await store.value(forKey: "a") }
    #expect(failure?.key == "a" && failure?.store == "server" && failure?.operation == .value)
    #expect(failure?.underlying is Failure && failure?.isRetryable == false)
    let timeout = await expectStoreError(.timedOut) { try await store.values(forKeys: ["slow"]) }
    #expect(timeout?.key == "slow" && timeout?.store == "server" && timeout?.operation == .values)
    #expect(timeout?.message == "no answer" && timeout?.isRetryable == true)
    // The task of the reader was not cancelled.
    #expect(await expectStoreError(.ioFailed) { try await store.value(forKey: "cancelled") }?.key == "cancelled")
  }

  @Test func `cancellation reaches the closure`() async throws {
    let store = LoadingStore<Int> { key in
      // A library of requests ends a cancelled one with an error of its own.
      do { try await Task.sleep(for: .seconds(3600)) } catch { throw Failure() }
      return 1
    }
    for keys: [StoreKey] in [["a"], ["a", "b", "c", "d", "e", "f"]] {
      let read = Task { try await keys.count == 1 ? [store.value(forKey: "a")] : store.values(forKeys: keys) }
      await Task.yield()
      read.cancel()
      await #expect(throws: CancellationError.self) { try await read.value }
    }
  }

  /// The failure of one key ends the loads of the others.
  @Test func `a failure cancels the other loads`() async throws {
    let store = LoadingStore<Int> { key in
      if key == "b" { throw Failure() }
      try await Task.sleep(for: .seconds(3600))
      return 1
    }
    #expect(await expectStoreError(.ioFailed) { try await store.values(forKeys: ["a", "b", "c"]) }?.key == "b")
  }

  @Test func `nothing can be written or listed`() async throws {
    let store = LoadingStore<Int> { $0.count }
    #expect(store.information.access == .readOnly && store.information.sharing == .betweenHosts)
    #expect(store.information.readsMayBeCopies == true)
    await expectStoreError(.notPermitted) { try await store.setValue(1, forKey: "a") }
    await expectStoreError(.notPermitted) { try await store.removeAll() }
    await expectStoreError(.notPermitted) { try await store.update("a") { _ in Issue.record("the body ran") } }
    await expectStoreError(.unsupported) { try await store.entries(in: .all, limit: 1) }
    await expectStoreError(.unsupported) { try await store.keys(in: .all, limit: 1) }
    await expectStoreError(.unsupported) { try await store.count() }
    await expectStoreError(.unsupported) { try await store.contains("a") }
    await expectStoreError(.invalidArgument) { try await store.entries(in: .all, limit: -1) }
    try await store.synchronize()
  }

  @Test func `closing waits for reads`() async throws {
    let loader = Loader()
    let store = LoadingStore<Int> { await loader.load($0, beside: 2) }
    let read = Task { try await store.value(forKey: "abc") }
    while loader.keys.isEmpty { await Task.yield() }
    let closing = Task { await store.close() }
    while (try? await store.synchronize()) != nil { await Task.yield() }
    // The second call lets the first one end.
    _ = await loader.load("x", beside: 2)
    await closing.value
    #expect(try await read.value == 3)
    await expectStoreError(.closed) { try await store.value(forKey: "a") }
    await expectStoreError(.closed) { try await store.values(forKeys: ["a"]) }
    await expectStoreError(.closed) { try await store.setValue(1, forKey: "a") }
    await expectStoreError(.closed) { try await store.keys(in: .all, limit: 1) }
    await store.close()
  }
}
