import Foundation
import Larder
import LarderTesting
import Testing

@testable import LarderObservation

/// The bounds and the readers of a sequence of changes.
@Suite(.timeLimit(.minutes(60))) struct StoreChangesTests {
  /// The longest keys, of which 10,000 have 5 MB.
  private static func key(_ number: Int) -> StoreKey {
    let digits = "\(number)".utf8
    return StoreKey(bytes: Array(repeating: 0x6B, count: 511 - digits.count) + digits)
  }

  @Test func `a sleeping reader holds little`() async throws {
    for pending in [200, 256, 257, 10_000] {
      let list = StoreObservers()
      let changes = Reporter(observers: list).changes()
      for number in 0..<pending { list.report([Self.key(number)]) }
      list.close()
      var held: [StoreChange] = []
      for await change in changes { held.append(change) }
      let size = held.reduce(0) { $0 + $1.range.lowerBound.count + ($1.range.upperBound?.count ?? 0) }
      #expect(size + held.count * MemoryLayout<StoreChange>.stride <= 1 << 20)
      #expect(held == (pending > 256 ? [.range(.all)] : (0..<pending).map { .key(Self.key($0)) }))
    }
  }

  /// A reader that always has a pending change takes 100,000 of them, of 50 MB.
  ///
  /// A process of its own is measured, because other tests need memory too.
  @Test func `the memory of a reader that never catches up is bounded`() async throws {
    await #expect(processExitsWith: .success) {
      let list = StoreObservers()
      var changes = Reporter(observers: list).changes().makeAsyncIterator()
      list.report([StoreChangesTests.key(0)])
      for number in 1..<1_000 {
        list.report([StoreChangesTests.key(number)])
        #expect(await changes.next() == .key(StoreChangesTests.key(number - 1)))
      }
      let before = StoreChangesTests.maximumResidentSize
      for number in 1_000..<100_000 {
        list.report([StoreChangesTests.key(number)])
        #expect(await changes.next() == .key(StoreChangesTests.key(number - 1)))
      }
      #expect(StoreChangesTests.maximumResidentSize - before < 16 << 20)
    }
  }

  /// The largest size of the process so far in bytes.
  private static var maximumResidentSize: Int {
    var usage = rusage()
    #if canImport(Darwin)
    getrusage(RUSAGE_SELF, &usage)
    return usage.ru_maxrss
    #else
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return usage.ru_maxrss << 10
    #endif
  }

  @Test func `readers of one sequence share it and end one by one`() async throws {
    let list = StoreObservers()
    let changes = Reporter(observers: list).changes()
    // The readers wait, or will find that they are cancelled. Either way they end, and take nothing.
    let cancelled = (0..<4).map { _ in
      Task {
        var iterator = changes.makeAsyncIterator()
        let first = await iterator.next()
        return (first, await iterator.next())
      }
    }
    for task in cancelled { task.cancel() }
    for task in cancelled { #expect(await task.value == (nil, nil)) }
    let readers = (0..<3).map { _ in
      Task {
        var taken: [StoreChange] = []
        for await change in changes { taken.append(change) }
        return taken
      }
    }
    let keys = (0..<200).map { StoreKey("\($0)") }
    for key in keys { list.report([key]) }
    list.close()
    var taken: [StoreChange] = []
    for reader in readers { taken += await reader.value }
    #expect(Set(taken) == Set(keys.map { .key($0) }))
    #expect(taken.count == keys.count)
    // An iterator stays at the end.
    var iterator = changes.makeAsyncIterator()
    for _ in 0..<2 { #expect(await iterator.next() == nil) }
  }

  @Test func `a waiting reader is resumed by a change a cancellation and the end`() async throws {
    for round in 0..<300 {
      let list = StoreObservers()
      let changes = Reporter(observers: list).changes()
      let reader = Task {
        var iterator = changes.makeAsyncIterator()
        return await iterator.next()
      }
      for _ in 0..<round % 7 { await Task.yield() }
      switch round % 3 {
      case 0: list.report(["a"])
      case 1: reader.cancel()
      default: list.close()
      }
      #expect(await reader.value == (round % 3 == 0 ? .key("a") : nil))
    }
  }

  @Test func `many changes of a commit become one range`() async throws {
    let store = MemoryStore<Int>().observable()
    var changes = store.changes(in: "k100"...).makeAsyncIterator()
    try await store.apply(ChangeBatch((0...10_000).map { .set(StoreKey("k\(10_000 + $0)"), $0) }))
    #expect(await changes.next() == .range("k10000"..<StoreKey("k20000").successor))
    try await store.apply(ChangeBatch((0..<256).map { .set(StoreKey("k\(100 + $0)"), $0) }))
    for number in 0..<256 { #expect(await changes.next() == .key(StoreKey("k\(100 + number)"))) }
  }
}

/// A store without entries, whose changes a test reports itself.
private struct Reporter: ObservableStore {
  let observers: StoreObservers

  var information: StoreInformation {
    StoreInformation(name: "reporter", durability: .volatile, sharing: .exclusive)
  }

  func value(forKey key: StoreKey) -> Int? { nil }

  func values(forKeys keys: [StoreKey]) -> [Int?] { keys.map { _ in nil } }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) -> [StoreEntry<Int>] { [] }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) -> [StoreKey] { [] }

  func count(in range: KeyRange) -> Int { 0 }

  func apply(_ changes: ChangeBatch<Int>) {}

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Int>) -> UpdateDecision<Result>
  ) throws -> Result {
    var slots = UpdateSlots(stored: values(forKeys: keys))
    return body(&slots).result
  }

  func synchronize() {}

  func close() {}

  func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
    observers.add(range, observer)
  }

  func weakReference() -> @Sendable () -> Self? {
    { [weak observers] in observers.map(Reporter.init) }
  }
}
