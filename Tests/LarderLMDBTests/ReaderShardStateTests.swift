import Testing

@testable import LarderLMDB

@Suite struct ReaderShardStateTests {
  private let read = ReaderShardState.ActiveRead(reader: ReaderIdentity(handle: 1, root: 1), thread: .current)
  // The pointers are only compared, never dereferenced.
  private let first = OpaquePointer(bitPattern: 0x10)
  private let second = OpaquePointer(bitPattern: 0x20)

  private func transaction(_ pointer: OpaquePointer?) throws -> ReadTransaction {
    ReadTransaction(pointer: try #require(pointer))
  }

  /// Expects that a read is admitted with a cached transaction, or with none.
  private func expectRenewed(
    _ pointer: OpaquePointer?, _ admission: ReaderShardState.Admission,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    var renewed: OpaquePointer?
    if case .renew(let transaction) = admission { renewed = transaction.pointer }
    #expect(renewed == pointer, sourceLocation: sourceLocation)
  }

  @Test func aTransactionIsUsedByOneReadAtATime() throws {
    var state = ReaderShardState()
    expectRenewed(nil, state.admit(read))
    expectRenewed(nil, state.admit(read))
    #expect(state.active == [read, read])
    let firstEnding = state.end(read, returning: try transaction(first))
    let secondEnding = state.end(read, returning: try transaction(second))
    #expect(firstEnding == .ended(hasWaiters: false) && secondEnding == .ended(hasWaiters: false))
    #expect(state.active.isEmpty)
    expectRenewed(second, state.admit(read))
    expectRenewed(first, state.admit(read))
    expectRenewed(nil, state.admit(read))
  }

  @Test func aReadThatFailedReturnsNothing() {
    var state = ReaderShardState()
    _ = state.admit(read)
    _ = state.end(read, returning: nil)
    #expect(state.active.isEmpty)
    #expect(state.idle.isEmpty)
  }

  @Test func readsEndOnlyTheirOwnTransaction() {
    let other = ReaderShardState.ActiveRead(reader: ReaderIdentity(handle: 2, root: 1), thread: .current)
    var state = ReaderShardState()
    _ = state.admit(read)
    _ = state.admit(other)
    _ = state.end(read, returning: nil)
    #expect(state.active == [other])
  }

  @Test func endedReadsAreReportedWhileACallerWaits() {
    var state = ReaderShardState()
    state.waiterCount = 2
    _ = state.admit(read)
    let watched = state.end(read, returning: nil)
    #expect(watched == .ended(hasWaiters: true))
    state.waiterCount = 0
    _ = state.admit(read)
    let unwatched = state.end(read, returning: nil)
    #expect(unwatched == .ended(hasWaiters: false))
  }

  @Test func theCapacityLimitsTheCachedTransactions() throws {
    var state = ReaderShardState()
    for _ in 0...ReaderShardState.idleCapacity { _ = state.admit(read) }
    for _ in 0..<ReaderShardState.idleCapacity { _ = state.end(read, returning: try transaction(first)) }
    let surplus = state.end(read, returning: try transaction(second))
    #expect(surplus == .isSurplus)
    // The read stays active until its transaction has ended.
    #expect(state.active == [read])
    #expect(state.idle.map(\.pointer) == [first, first])
    let ending = state.end(read, returning: nil)
    #expect(ending == .ended(hasWaiters: false) && state.active.isEmpty)
  }

  @Test func takingReleasesEveryTransactionOnce() throws {
    var state = ReaderShardState()
    _ = state.end(read, returning: try transaction(first))
    _ = state.end(read, returning: try transaction(second))
    let idle = state.takeIdle()
    #expect(idle.map(\.pointer) == [first, second])
    #expect(state.idle.isEmpty)
    expectRenewed(nil, state.admit(read))
  }
}
