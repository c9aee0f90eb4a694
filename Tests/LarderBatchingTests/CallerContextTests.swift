import Larder
import LarderBatching
import LarderTesting
import TestSupport
import Testing

/// A commit runs in the context, such as the traces, of the callers that it serves.
@Suite struct CallerContextTests {
  @TaskLocal private static var caller: Context?

  private struct Group: Equatable {
    let names: [String]
    let count: Int
  }

  private final class Notes: Sendable {
    let groups = Locked<[Group]>([])
  }

  private struct Context: CallerContext {
    let name: String
    let notes: Notes

    func run<Result>(
      for callers: [any CallerContext], among count: Int, _ body: () async throws -> Result
    ) async throws -> Result {
      let names = callers.compactMap { ($0 as? Context)?.name }
      notes.groups.withLock { $0.append(Group(names: names, count: count)) }
      return try await body()
    }
  }

  @Test func `a group is committed in the context of all its callers`() async throws {
    let faulty = MemoryStore<Int>().faulty()
    let store = faulty.batched()
    let notes = Notes()
    CallerContexts.register { CallerContextTests.caller }
    @Sendable func write(_ name: String) async throws {
      try await CallerContextTests.$caller.withValue(Context(name: name, notes: notes)) {
        try await store.setValue(1, forKey: StoreKey(name))
      }
    }
    faulty.schedule(.suspension(), on: .apply, number: 1)
    async let first: Void = write("first")
    try await faulty.waitForSuspended()
    async let second: Void = write("second")
    while store.waitingCount < 1 { await Task.yield() }
    async let third: Void = write("third")
    while store.waitingCount < 2 { await Task.yield() }
    // This caller has no context.
    async let fourth: Void = store.setValue(1, forKey: "fourth")
    while store.waitingCount < 3 { await Task.yield() }
    faulty.resume()
    _ = try await (first, second, third, fourth)
    // The first caller made its write itself, in its own task.
    #expect(notes.groups.withLock { $0 } == [Group(names: ["second", "third"], count: 3)])
  }
}
