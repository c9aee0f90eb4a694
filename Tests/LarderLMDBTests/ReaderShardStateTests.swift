import Testing

@testable import LarderLMDB

@Suite struct ReaderShardStateTests {
  private let read = ReaderShardState.ActiveRead(reader: ReaderIdentity(lease: 1, root: 1), thread: .current)
  // Only told apart, never followed.
  private let first = OpaquePointer(bitPattern: 0x10)
  private let second = OpaquePointer(bitPattern: 0x20)

  private func transaction(_ pointer: OpaquePointer?) throws -> ReadTransaction {
    ReadTransaction(pointer: try #require(pointer))
  }

  /// Expects that a read is let in with a transaction that was kept, or with none.
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
    #expect(firstEnding == .ended(isWatched: false) && secondEnding == .ended(isWatched: false))
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

  @Test func onlyReadsOfTheirOwnEnd() {
    let other = ReaderShardState.ActiveRead(reader: ReaderIdentity(lease: 2, root: 1), thread: .current)
    var state = ReaderShardState()
    _ = state.admit(read)
    _ = state.admit(other)
    _ = state.end(read, returning: nil)
    #expect(state.active == [other])
  }

  @Test func endsAreToldWhileSomeoneWaits() {
    var state = ReaderShardState()
    state.watcherCount = 2
    _ = state.admit(read)
    let watched = state.end(read, returning: nil)
    #expect(watched == .ended(isWatched: true))
    state.watcherCount = 0
    _ = state.admit(read)
    let unwatched = state.end(read, returning: nil)
    #expect(unwatched == .ended(isWatched: false))
  }

  @Test func noMoreTransactionsThanTheCapacityAreKept() throws {
    var state = ReaderShardState()
    for _ in 0...ReaderShardState.idleCapacity { _ = state.admit(read) }
    for _ in 0..<ReaderShardState.idleCapacity { _ = state.end(read, returning: try transaction(first)) }
    let surplus = state.end(read, returning: try transaction(second))
    #expect(surplus == .isSurplus)
    // It goes on until its transaction has ended.
    #expect(state.active == [read])
    #expect(state.idle.map(\.pointer) == [first, first])
    let ending = state.end(read, returning: nil)
    #expect(ending == .ended(isWatched: false) && state.active.isEmpty)
  }

  @Test func takingGivesUpEveryTransactionOnce() throws {
    var state = ReaderShardState()
    _ = state.end(read, returning: try transaction(first))
    _ = state.end(read, returning: try transaction(second))
    let idle = state.takeIdle()
    #expect(idle.map(\.pointer) == [first, second])
    #expect(state.idle.isEmpty)
    expectRenewed(nil, state.admit(read))
  }
}
