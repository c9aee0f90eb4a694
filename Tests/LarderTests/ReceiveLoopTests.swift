import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

/// The loop that leases and decodes items, on a queue whose leases are given by the test.
@Suite struct ReceiveLoopTests {
  private typealias Reading = Result<QueueDelivery<Int>, FailedDelivery>

  private static func receipt(_ number: Int, attempt: UInt32 = 1) -> DeliveryReceipt {
    DeliveryReceipt(sequence: UInt128(number), attempt: attempt, epoch: 7)
  }

  private static func item(_ number: Int, isSuspect: Bool = false) -> Reading {
    .success(
      QueueDelivery(
        key: StoreKey("\(number)"), value: number, receipt: receipt(number),
        enqueueDate: Date(timeIntervalSince1970: 0),
        isSuspect: isSuspect))
  }

  private static func failure(_ number: Int, _ reason: FailedDelivery.Reason, attempt: UInt32 = 1) -> Reading {
    .failure(
      FailedDelivery(
        receipt: receipt(number, attempt: attempt), reason: reason,
        error: StoreError(.corrupted, during: .receive, message: "item \(number)")))
  }

  private static func lease(_ readings: Reading..., hasMore: Bool = false) -> Result<LeasedDeliveries<Int>, StoreError>
  {
    .success(LeasedDeliveries(readings: readings, hasMore: hasMore))
  }

  private static let outage = StoreError(.ioFailed, during: .receive, message: "the test has an outage")

  private func values(_ queue: ScriptedQueue, max: Int) async throws -> [Int] {
    try await queue.receive(max: max, lease: .seconds(60)).map(\.value)
  }

  // MARK: Items

  @Test func `leases the rest while there is more`() async throws {
    let queue = ScriptedQueue([
      Self.lease(Self.item(1), Self.item(2), hasMore: true), Self.lease(Self.item(3), hasMore: true),
      Self.lease(Self.item(4)),
    ])
    #expect(try await values(queue, max: 9) == [1, 2, 3, 4])
    #expect(queue.calls == [.lease(9, isFirst: true), .lease(7, isFirst: false), .lease(6, isFirst: false)])
  }

  @Test func `stops at the number that is wanted`() async throws {
    let queue = ScriptedQueue([Self.lease(Self.item(1), hasMore: true), Self.lease(Self.item(2), hasMore: true)])
    #expect(try await values(queue, max: 2) == [1, 2])
  }

  @Test func `a suspect item ends the call`() async throws {
    let queue = ScriptedQueue([Self.lease(Self.item(1, isSuspect: true), hasMore: true)])
    #expect(try await values(queue, max: 9) == [1])
  }

  // MARK: Errors of the store

  @Test func `the items before an error are returned`() async throws {
    let queue = ScriptedQueue([Self.lease(Self.item(1), hasMore: true), .failure(Self.outage)])
    #expect(try await values(queue, max: 9) == [1])
  }

  @Test func `an error after failures only ends their leases`() async throws {
    let queue = ScriptedQueue([Self.lease(Self.failure(1, .damaged)), .failure(Self.outage)])
    await expectStoreError(.ioFailed) { try await values(queue, max: 9) }
    #expect(queue.calls.last == .end([1], .damaged, delay: .seconds(60)))
  }

  @Test func `items are returned although leases cannot be ended`() async throws {
    let queue = ScriptedQueue(
      [Self.lease(Self.item(1), Self.failure(2, .damaged)), Self.lease()], endingFails: true)
    #expect(try await values(queue, max: 9) == [1])
  }

  /// The leases that could not be ended hide the items until they end.
  @Test(arguments: [FailedDelivery.Reason.damaged, .deferred])
  func `leases that cannot be ended are an unknown outcome`(
    _ reason: FailedDelivery.Reason
  ) async throws {
    let received = ScriptedQueue([Self.lease(Self.failure(2, reason)), Self.lease()], endingFails: true)
    #expect(await expectStoreError(.ioFailed) { try await values(received, max: 9) }?.outcome == .unknown)
    let waited = ScriptedQueue([], endingFails: true)
    let error = await expectStoreError(.ioFailed) {
      try await waited.result(of: Self.failure(2, reason), .seconds(60))
    }
    #expect(error?.outcome == .unknown)
  }

  // MARK: Items that cannot be decoded

  @Test func `a damaged item is replaced by the next`() async throws {
    let queue = ScriptedQueue([Self.lease(Self.failure(1, .damaged)), Self.lease(Self.item(2)), Self.lease()])
    #expect(try await values(queue, max: 1) == [2])
    #expect(queue.calls.last == .end([1], .damaged, delay: .seconds(60)))
  }

  @Test func `an undecodable item waits for its retry once others were decoded`() async throws {
    let queue = ScriptedQueue([Self.lease(Self.item(1), Self.failure(2, .undecodable, attempt: 3)), Self.lease()])
    #expect(try await values(queue, max: 9) == [1])
    // 10 s, doubled for each attempt after the first one.
    #expect(queue.calls.last == .end([2], .undecodable, delay: .seconds(40)))
  }

  @Test func `a program that decodes nothing stops and counts no delivery`() async throws {
    let queue = ScriptedQueue([
      Self.lease(Self.failure(1, .undecodable), hasMore: true),
      Self.lease(Self.failure(2, .undecodable), hasMore: true),
      Self.lease(Self.failure(3, .undecodable), hasMore: true),
    ])
    await expectStoreError(.corrupted) { try await values(queue, max: 9) }
    #expect(queue.calls.last == .end([1, 2, 3], .refused, delay: .seconds(10)))
  }

  @Test func `a refused item is held back even if the policy has no delay`() async throws {
    let queue = ScriptedQueue([Self.lease(Self.failure(1, .undecodable)), Self.lease()], retryBase: .zero)
    await expectStoreError(.corrupted) { try await values(queue, max: 9) }
    #expect(queue.calls.last == .end([1], .refused, delay: .seconds(1)))
  }

  @Test func `a missing key releases all items of the call`() async throws {
    let queue = ScriptedQueue([
      Self.lease(Self.item(1), Self.failure(2, .damaged), hasMore: true), Self.lease(Self.failure(3, .deferred)),
    ])
    await expectStoreError(.corrupted) { try await values(queue, max: 9) }
    #expect(queue.calls.last == .release([1, 2, 3], countsAsAttempt: false))
    #expect(queue.decodingRecord.deferred == [3])
  }

  @Test func `damaged items of one call are limited`() async throws {
    let readings = (1...1_000).map { Self.failure($0, .damaged) }
    let queue = ScriptedQueue([.success(LeasedDeliveries(readings: readings, hasMore: true))])
    #expect(try await values(queue, max: 9) == [])
    #expect(queue.calls.count == 2)
  }

  // MARK: Waiting consumers

  @Test func `a waiting consumer gets the error of one item`() async throws {
    let queue = ScriptedQueue([])
    #expect(try await queue.result(of: Self.item(1), .seconds(60)).get().value == 1)
    await expectStoreError(.corrupted) { try await queue.result(of: Self.failure(2, .undecodable), .seconds(60)).get() }
    #expect(queue.calls == [.end([2], .undecodable, delay: .seconds(10))])
    await expectStoreError(.corrupted) { try await queue.result(of: Self.failure(3, .deferred), .seconds(60)) }
    #expect(queue.calls.last == .release([3], countsAsAttempt: false))
  }

  @Test func `a waiting consumer that decodes nothing stops at the third item`() async throws {
    let queue = ScriptedQueue([])
    for number in 1...2 {
      let result = try await queue.result(of: Self.failure(number, .undecodable), .seconds(60))
      #expect(throws: StoreError.self) { try result.get() }
    }
    await expectStoreError(.corrupted) {
      _ = try await queue.result(of: Self.failure(3, .undecodable), .seconds(60))
    }
    #expect(queue.calls.last == .end([3], .refused, delay: .seconds(10)))
  }

  // MARK: The record

  @Test func `a deferred item that is decoded makes all items due`() {
    let record = DecodingRecord()
    record.note(Self.failure(1, .deferred))
    record.note(Self.failure(2, .deferred))
    record.note(Self.failure(3, .damaged))
    record.note(Self.item(3))
    #expect(record.deferred == [1, 2] && record.hasDecoded)
    record.note(Self.item(2))
    #expect(record.deferred == [])
  }

  @Test func `every third failure stops until an item is decoded`() {
    let record = DecodingRecord()
    #expect((0..<6).map { _ in record.noteFailure() } == [false, false, true, false, false, true])
    record.note(Self.item(1))
    #expect((0..<6).allSatisfy { _ in !record.noteFailure() })
  }
}

/// A queue whose leases are given by a test, and which records its calls.
private final class ScriptedQueue: Sendable {
  enum Call: Equatable {
    case lease(Int, isFirst: Bool)
    case end([UInt128], FailedDelivery.Reason, delay: Duration)
    case release([UInt128], countsAsAttempt: Bool)
  }

  private struct State {
    var leases: [Result<LeasedDeliveries<Int>, StoreError>]
    var calls: [Call] = []
  }

  let decodingRecord = DecodingRecord()
  private let retrying: RetryDelays
  private let endingFails: Bool
  private let state: Locked<State>

  var calls: [Call] { state.withLock { $0.calls } }

  init(
    _ leases: [Result<LeasedDeliveries<Int>, StoreError>], endingFails: Bool = false, retryBase: Duration = .seconds(10)
  ) {
    retrying = RetryDelays(
      policy: RetryPolicy(base: retryBase, ceiling: .seconds(600), jitter: 0), clock: ManualClock(),
      generator: SeededGenerator(seed: 1))
    self.endingFails = endingFails
    state = Locked(State(leases: leases))
  }

  private var loop: ReceiveLoop<Int> {
    ReceiveLoop(
      decodingRecord: decodingRecord, retrying: retrying,
      lease: { wanted, _, _, isFirst in
        let next = self.state.withLock { state in
          state.calls.append(.lease(wanted, isFirst: isFirst))
          return state.leases.isEmpty ? nil : state.leases.removeFirst()
        }
        return try #require(next, "the call leases more often than the test expects").get()
      },
      release: { receipts, delay, countsAsAttempt in
        #expect(delay == .zero)
        self.state.withLock {
          $0.calls.append(.release(receipts.map(\.sequence), countsAsAttempt: countsAsAttempt))
        }
        try self.failEnding()
        return []
      },
      endLeases: { failures in
        let first = try #require(failures.first)
        #expect(failures.allSatisfy { $0.reason == first.reason && $0.delay == first.delay })
        self.state.withLock {
          $0.calls.append(.end(failures.map(\.receipt.sequence), first.reason, delay: first.delay))
        }
        try self.failEnding()
      })
  }

  private func failEnding() throws {
    guard endingFails else { return }
    throw StoreError(.ioFailed, during: .receive, message: "the test fails the end of leases")
  }

  func receive(max: Int, lease: Duration) async throws -> [QueueDelivery<Int>] { try await loop.receiveDue(max, lease) }

  func result(of reading: Result<QueueDelivery<Int>, FailedDelivery>, _ lease: Duration) async throws
    -> Result<QueueDelivery<Int>, StoreError>
  {
    try await loop.result(of: reading, lease)
  }
}
